package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return CheckBase64(data, v)
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
			err := decode(fmt.Appendf(nil, form, text), &b)
			if (err == nil) != ok || err != nil && text == "AR==" && !strings.Contains(err.Error(), place+": want base64") {
				t.Errorf("%s %q: %v, want success %v", place, text, err, ok)
			}
		}
	}
	var b body
	if err := decode([]byte(`{"whole":"\u0041\/==","text":"AR==","list":null,"maybe":null}`), &b); err == nil {
		t.Error("an escaped letter is taken for another")
	}
	if err := decode([]byte(`{"whole":"\/\u0041==","text":"AR==","list":null,"maybe":null}`), &b); err != nil || len(b.Whole) != 1 {
		t.Errorf("escaped letters: %v", err)
	}
}
