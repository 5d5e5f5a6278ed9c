package label_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/label"
)

func TestCheckKey(t *testing.T) {
	n63, n253 := strings.Repeat("n", 63), strings.Repeat("p", 61)+"."+strings.Repeat("p", 63)+"."+strings.Repeat("p", 63)+"."+strings.Repeat("p", 63)
	for key, ok := range map[string]bool{
		"a": true, "A": true, "9": true, "env": true, "my-name": true, "MyName": true, "my.name": true, "my_name": true, "123-abc": true,
		"in": true, "notin": true, n63: true, n63 + "n": false,
		"example.com/MyName": true, "kubernetes.io/arch": true, "a/b": true, n253 + "/" + n63: true, "p" + n253 + "/a": false,
		"": false, "-a": false, "a-": false, ".a": false, "a.": false, "_a": false, "a b": false, "a=b": false, "ä": false, "a\x00": false, "a\n": false,
		"/a": false, "a/": false, "a/b/c": false, "Example.com/a": false, "a_b/c": false, "a..b/c": false, ".a/c": false, "a./c": false, "-a/c": false, "a-/c": false,
	} {
		if err := label.CheckKey(key); (err == nil) != ok {
			t.Errorf("key %q: %v, want it taken: %v", key, err, ok)
		}
	}
}

func TestCheckValue(t *testing.T) {
	v63 := strings.Repeat("v", 63)
	for value, ok := range map[string]bool{
		"": true, "a": true, "A.b_c-9": true, v63: true, v63 + "v": false,
		"-a": false, "a-": false, "a b": false, "a/b": false, "a,b": false, "é": false, " ": false, "a\n": false,
	} {
		if err := label.CheckValue(value); (err == nil) != ok {
			t.Errorf("value %q: %v, want it taken: %v", value, err, ok)
		}
	}
}

// many returns n labels with keys of so many characters and without values.
func many(n, length int) label.Set {
	s := label.Set{}
	for i := range n {
		s[fmt.Sprintf("%0*d", length, i)] = ""
	}
	return s
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  label.Set
		says string // of the error; "": none
	}{
		{"none", nil, ""},
		{"32", many(32, 2), ""},
		{"33", many(33, 2), "33 labels: an object has 32 at most"},
		{"4096 bytes", func() label.Set {
			s := label.Set{}
			for i := range 32 {
				s[fmt.Sprintf("%02d.example/%053d", i, i)] = strings.Repeat("v", 63)[:63-1]
			}
			s["00.example/"+fmt.Sprintf("%053d", 0)] = strings.Repeat("v", 62)
			n := 0
			for k, v := range s {
				n += len(k) + len(v)
			}
			if n > 4096 {
				t.Fatalf("the test makes %d bytes", n)
			}
			return s
		}(), ""},
		{"32 of the largest", func() label.Set {
			s := label.Set{}
			for i := range 32 {
				s[strings.Repeat("p.", 126)+"p/"+fmt.Sprintf("%063d", i)] = strings.Repeat("v", 63)
			}
			return s
		}(), "labels of 12160 bytes: keys and values of an object have 4096 together at most"},
		{"a bad value", label.Set{"a": "b "}, `label a: value "b "`},
	} {
		err := tt.set.Check()
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

// TestApply has the rules of RFC 7396 for an object of strings.
func TestApply(t *testing.T) {
	b := "b"
	bad := "b!"
	for _, tt := range []struct {
		name  string
		has   label.Set
		patch label.Patch
		want  label.Set
		ok    bool
	}{
		{"empty", label.Set{"a": "1"}, nil, label.Set{"a": "1"}, true},
		{"sets", nil, label.Patch{"a": &b}, label.Set{"a": "b"}, true},
		{"replaces", label.Set{"a": "1", "c": "2"}, label.Patch{"a": &b}, label.Set{"a": "b", "c": "2"}, true},
		{"removes", label.Set{"a": "1", "c": "2"}, label.Patch{"a": nil}, label.Set{"c": "2"}, true},
		{"removes what is not there", label.Set{"c": "2"}, label.Patch{"a": nil}, label.Set{"c": "2"}, true},
		{"bad value", nil, label.Patch{"a": &bad}, nil, false},
		{"bad key removed", nil, label.Patch{"a b": nil}, nil, false},
		{"one for one at the bound", many(32, 2), label.Patch{"00": nil, "x": &b}, func() label.Set {
			s := many(32, 2)
			delete(s, "00")
			s["x"] = "b"
			return s
		}(), true},
		{"one too many", many(32, 2), label.Patch{"x": &b}, nil, false},
	} {
		before := len(tt.has)
		got, err := tt.patch.Apply(tt.has)
		if (err == nil) != tt.ok || len(tt.has) != before {
			t.Errorf("%s: error %v; the labels before have %d entries now", tt.name, err, len(tt.has))
		} else if tt.ok {
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, d)
			}
		}
	}
	large := label.Patch{}
	for k := range many(65, 2) {
		large[k] = nil
	}
	if _, err := large.Apply(nil); err == nil {
		t.Error("a patch of 65 labels is taken")
	}
}

func TestSetString(t *testing.T) {
	if got := (label.Set{"c": "", "a": "b"}).String(); got != "a=b,c=" {
		t.Errorf("got %q", got)
	}
}
