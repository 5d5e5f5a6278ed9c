package api_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/fabricsm/ib"
)

func TestTokens(t *testing.T) {
	token, digest := api.NewToken()
	other, otherDigest := api.NewToken()
	tokens, err := api.ParseTokens("t.yaml", fmt.Appendf(nil, "tokens:\n- name: a\n  role: viewer\n  sha256: %s\n- name: b\n  role: operator\n  sha256: %s\n  p_keys: [0x0100-0x01ff, 0x0300]\n",
		digest, strings.ToUpper(otherDigest)))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := tokens.Find(token); !ok || !reflect.DeepEqual(p, api.Principal{Name: "a", Role: api.RoleViewer}) {
		t.Errorf("Find(first) = %v %v", p, ok)
	}
	if p, ok := tokens.Find(other); !ok || !reflect.DeepEqual(p, api.Principal{Name: "b", Role: api.RoleOperator, PKeys: []ib.PKeyRange{{First: 0x100, Last: 0x1FF}, {First: 0x300, Last: 0x300}}}) {
		t.Errorf("Find(second) = %v %v", p, ok)
	}
	for _, wrong := range []string{"", digest, token + " ", token[1:]} {
		if p, ok := tokens.Find(wrong); ok {
			t.Errorf("Find(%q) = %v, want nobody", wrong, p)
		}
	}
	var none *api.Tokens
	if _, ok := none.Find(token); ok {
		t.Error("no tokens file admits a token")
	}
}

func TestParseTokensReportsEveryProblem(t *testing.T) {
	_, digest := api.NewToken()
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"unknown key", "tokens: []\nrole: x\n", []string{"t.yaml", "line 2", "role"}},
		{"unknown role", "tokens:\n- {name: a, role: root, sha256: " + digest + "}\n", []string{"line 2", "want viewer or operator"}},
		{"short digest", "tokens:\n- {name: a, role: viewer, sha256: abcd}\n", []string{"token 1", "64 hexadecimal digits"}},
		{"missing all", "tokens:\n- {}\n", []string{"name is missing", "role is missing", "64 hexadecimal digits"}},
		{
			"wrong ranges", "tokens:\n- {name: a, role: viewer, sha256: " + digest + ", p_keys: [0x8001]}\n- {name: b, role: viewer, sha256: ab, p_keys: []}\n",
			[]string{`token 1 ("a"): p_keys`, "0x0001 and 0x7ffe", "token 2", "p_keys is empty"},
		},
		{
			"ranges that somebody took out", "tokens:\n- name: a\n  role: operator\n  sha256: " + digest + "\n  p_keys:\n  # - 0x0100-0x01ff\n",
			[]string{`token 1 ("a"): p_keys is empty`},
		},
		{
			"doubled", "tokens:\n- {name: a, role: viewer, sha256: " + digest + "}\n- {name: a, role: viewer, sha256: " + digest + "}\n",
			[]string{"name is used twice", "sha256 is used twice"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := api.ParseTokens("t.yaml", []byte(tt.in))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}
