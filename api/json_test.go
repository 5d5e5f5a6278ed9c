package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		ok       bool
	}{
		{"object", `{"a":1,"b":[{"a":1},{"a":2}]}`, true},
		{"scalar", `7`, true},
		{"spaces", " {} \n", true},
		{"same key in two objects", `[{"a":1},{"a":1}]`, true},
		{"deepest", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), true},
		{"too deep", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), false},
		{"empty", ``, false},
		{"doubled key", `{"a":1,"a":1}`, false},
		{"doubled key by escape", `{"a":1,"\u0061":1}`, false},
		{"doubled key inside", `[{"x":{"a":1,"a":1}}]`, false},
		{"upper case key", `{"A":1}`, false},
		{"look-alike of k", "{\"\u212aey\":1}", false},
		{"two values", `{} {}`, false},
		{"trailing comma", `[1,]`, false},
		{"open", `{"a":`, false},
		{"mismatch", `[}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := checkJSON([]byte(tt.in), maxValues); (err == nil) != tt.ok {
				t.Errorf("checkJSON = %v, want success %v", err, tt.ok)
			}
		})
	}
}

func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c":"\u0061"}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkJSON(data, maxValues) == nil && !json.Valid(data) {
			t.Errorf("accepted %q, which is not JSON", data)
		}
	})
}

// A byte string has one encoding, wherever it stands.
func TestBase64(t *testing.T) {
	type inner struct {
		Key  []byte `json:"key"`
		Text string `json:"text"`
	}
	type body struct {
		inner
		Whole []byte            `json:"whole"`
		List  [][]byte          `json:"list"`
		Maybe *inner            `json:"maybe"`
		Many  []inner           `json:"many"`
		Named map[string][]byte `json:"named"`
		Self  *body             `json:"self"`
	}
	for place, form := range map[string]string{
		"body.whole": `{"whole":%q}`, "body.list[1]": `{"list":["",%q]}`, "body.maybe.key": `{"maybe":{"key":%q}}`,
		"body.many[0].key": `{"many":[{"key":%q,"text":"AB=="}]}`, "body.named.x": `{"named":{"x":%q}}`, "body.self.whole": `{"self":{"whole":%q}}`,
		"body.key": `{"key":%q}`,
	} {
		for text, ok := range map[string]bool{
			"": true, "AAAA": true, "AQ==": true, "AAE=": true, "+/+/": true,
			"AR==": false, "AAF=": false, "AQ": false, "AQ=": false, "_-_-": false, "AQ==\n": false, "AA\r\nAA": false, "AQ==AQ==": false,
		} {
			var b body
			err := unmarshalStrict(fmt.Appendf(nil, form, text), &b)
			if (err == nil) != ok || err != nil && text == "AR==" && !strings.Contains(err.Error(), place+": want base64") {
				t.Errorf("%s %q: %v, want success %v", place, text, err, ok)
			}
		}
	}
	var b body
	if err := unmarshalStrict([]byte(`{"whole":"\u0041\/==","text":"AR==","list":null,"maybe":null}`), &b); err == nil {
		t.Error("an escaped letter is taken for another")
	}
	if err := unmarshalStrict([]byte(`{"whole":"\/\u0041==","text":"AR==","list":null,"maybe":null}`), &b); err != nil || len(b.Whole) != 1 {
		t.Errorf("escaped letters: %v", err)
	}
}
