package credential_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/fabricsm/ib"
)

func TestTokens(t *testing.T) {
	token, digest := credential.New()
	other, otherDigest := credential.New()
	tokens, err := credential.Parse("t.yaml", fmt.Appendf(nil, "tokens:\n- name: a\n  role: viewer\n  sha256: %s\n- name: b\n  role: operator\n  sha256: %s\n  p_keys: [0x0100-0x01ff, 0x0300]\n",
		digest, strings.ToUpper(otherDigest)))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := tokens.Find(token, time.Now()); !ok || !reflect.DeepEqual(p, credential.Principal{Name: "a", Role: credential.Viewer}) {
		t.Errorf("Find(first) = %v %v", p, ok)
	}
	if p, ok := tokens.Find(other, time.Now()); !ok || !reflect.DeepEqual(p, credential.Principal{Name: "b", Role: credential.Operator, PKeys: []ib.PKeyRange{{First: 0x100, Last: 0x1FF}, {First: 0x300, Last: 0x300}}}) {
		t.Errorf("Find(second) = %v %v", p, ok)
	}
	for _, wrong := range []string{"", digest, token + " ", token[1:]} {
		if p, ok := tokens.Find(wrong, time.Now()); ok {
			t.Errorf("Find(%q) = %v, want nobody", wrong, p)
		}
	}
	var none *credential.Tokens
	if _, ok := none.Find(token, time.Now()); ok {
		t.Error("no tokens file admits a token")
	}
}

func TestParseTokensReportsEveryProblem(t *testing.T) {
	_, digest := credential.New()
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"unknown key", "tokens: []\nrole: x\n", []string{"t.yaml", "line 2", "role"}},
		{"unknown role", "tokens:\n- {name: a, role: root, sha256: " + digest + "}\n", []string{"line 2", "want viewer, tenant, scheduler, operator, "}},
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
			"dates", "tokens:\n- {name: a, role: viewer, sha256: " + digest + ", expires: tomorrow}\n- name: b\n  role: viewer\n  sha256: ab\n  expires:\n" +
				"- {name: c, role: viewer, sha256: ac, created: 2027-01-01T00:00:00Z, expires: 2026-01-01T00:00:00Z}\n",
			[]string{`token 1 ("a"): expires "tomorrow"`, `token 2 ("b"): expires ""`, `token 3 ("c"): expires 2026-01-01T00:00:00Z is not after created`},
		},
		{
			"tenants", "tokens:\n- {name: a, role: tenant, sha256: " + digest + "}\n- {name: b, role: viewer, sha256: ab, tenants: [acme]}\n- {name: c, role: tenant, sha256: ac, tenants: []}\n" +
				"- {name: d, role: tenant, sha256: ad, tenants: [Acme]}\n- {name: e, role: tenant, sha256: ae, tenants: [acme], p_keys: [0x0100]}\n- name: f\n  role: tenant\n  sha256: af\n  tenants:\n",
			[]string{
				`token 1 ("a"): tenants is missing`, `token 2 ("b"): tenants is for the role tenant alone`, `token 3 ("c"): tenants: 0 tenants`,
				`token 4 ("d"): tenants: "Acme" is no name`, `token 5 ("e"): tenants says what the token has to do with`, `token 6 ("f"): tenants: 0 tenants`,
			},
		},
		{
			"doubled", "tokens:\n- {name: a, role: viewer, sha256: " + digest + "}\n- {name: a, role: viewer, sha256: " + digest + "}\n",
			[]string{"name is used twice", "sha256 is used twice"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := credential.Parse("t.yaml", []byte(tt.in))
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

// A token counts until its end and not at it; the warnings name those that ended, end soon and have none.
func TestTokensEnd(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	entry := func(name, more string) (string, string) {
		token, digest := credential.New()
		return token, fmt.Sprintf("- {name: %s, role: viewer, sha256: %s%s}\n", name, digest, more)
	}
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	text, byName := "tokens:\n", map[string]string{}
	for name, more := range map[string]string{
		"endless": "", "endless2": ", created: " + at(-time.Hour),
		"ended": ", expires: " + at(0), "soon": ", expires: " + at(29*24*time.Hour), "later": ", expires: " + at(31*24*time.Hour),
		"short": ", created: " + at(-time.Hour) + ", expires: " + at(time.Hour), "shortsoon": ", created: " + at(-2*time.Hour) + ", expires: " + at(time.Hour),
	} {
		token, line := entry(name, more)
		text, byName[name] = text+line, token
	}
	tokens, err := credential.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range byName {
		who, ok := tokens.Find(token, now)
		if want := name != "ended"; ok != want || ok && who.Name != name {
			t.Errorf("%s: %v %v, want %v", name, who, ok, want)
		}
		if was, ended := tokens.Ended(token, now); ended != (name == "ended") || ended && was.Name != name {
			t.Errorf("%s: ended %v, %v", name, ended, was)
		}
	}
	if _, ok := tokens.Find(byName["ended"], now.Add(-time.Second)); !ok {
		t.Error("a second before its end a token is refused")
	}
	warned := strings.Join(tokens.Warnings(now), "\n")
	for _, want := range []string{`token "ended" ended at 2026-06-01T12:00:00Z`, `token "soon" ends at`, `token "shortsoon" ends at`, `no end: "endless", "endless2"`} {
		if !strings.Contains(warned, want) {
			t.Errorf("warnings lack %q:\n%s", want, warned)
		}
	}
	if strings.Contains(warned, `"later"`) || strings.Contains(warned, `"short"`) {
		t.Errorf("warnings of tokens that are good for long:\n%s", warned)
	}
}

// TestTenantsOfAToken: each is there once, in order.
func TestTenantsOfAToken(t *testing.T) {
	token, digest := credential.New()
	tokens, err := credential.Parse("t.yaml", []byte("tokens:\n- {name: a, role: tenant, sha256: "+digest+", tenants: [zeta, acme, zeta]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := tokens.Find(token, time.Now()); !ok || !reflect.DeepEqual(p.Tenants, []string{"acme", "zeta"}) {
		t.Errorf("tenants %q, want acme and zeta", p.Tenants)
	}
}
