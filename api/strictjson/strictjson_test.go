package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
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
			if err := Check([]byte(tt.in), 4096); (err == nil) != tt.ok {
				t.Errorf("Check = %v, want success %v", err, tt.ok)
			}
		})
	}
}

func TestCheckOther(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		`{"_type":1,"keyId":2,"a":3}`: true, `{"keyid":1}`: false, `{"KeyId":1}`: false, `{"keyId":1,"keyId":2}`: false, `{"B":1}`: false,
	} {
		if err := CheckOther([]byte(in), 4096, "_type", "keyId"); (err == nil) != ok {
			t.Errorf("CheckOther(%s) = %v, want success %v", in, err, ok)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c":"\u0061"}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if Check(data, 4096) == nil && !json.Valid(data) {
			t.Errorf("accepted %q, which is not JSON", data)
		}
	})
}

// TestCheckMaps: keys of the named maps are data, and all others are held to the rules.
func TestCheckMaps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{`{"labels":{"A.b/C-d":"1","a":"2","A":"3"}}`, true},
		{`{"x":[{"labels":{"A":"1"}}]}`, true},
		{`{"labels":{"A":"1","A":"2"}}`, false},
		{`{"labels":{"labels":{"A":"1"}}}`, false},
		{`{"labels":[{"A":"1"}]}`, false},
		{`{"labels":{},"A":"1"}`, false},
		{`{"Labels":{"a":"1"}}`, false},
		{`{"other":{"A":"1"}}`, false},
	} {
		if err := CheckMaps([]byte(tt.text), 100, "labels"); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want it taken: %v", tt.text, err, tt.ok)
		}
	}
	if err := CheckMaps([]byte(`{"labels":{"a":"1","b":"2"}}`), 3, "labels"); !errors.Is(err, ErrTooMany) {
		t.Errorf("a map of more values than there may be: %v", err)
	}
}
