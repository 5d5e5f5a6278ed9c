package ib

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"
)

// textValue is what every type with a text form can do.
type textValue interface {
	comparable
	fmt.Stringer
	encoding.TextMarshaler
}

// checkText demands that v survives its text form, alone and in JSON, and that
// String agrees with it.
func checkText[T textValue, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, v T) {
	t.Helper()
	text, err := v.MarshalText()
	if err != nil {
		t.Fatalf("marshal %v: %v", v, err)
	}
	if len(text) > 0 && string(text) != v.String() {
		t.Errorf("text %q, String %q", text, v.String())
	}
	var back T
	if err := P(&back).UnmarshalText(text); err != nil || back != v {
		t.Errorf("%q read back as %v, %v", text, back, err)
	}
	js, err := json.Marshal(map[string]T{"k": v})
	if err != nil {
		t.Fatalf("JSON of %v: %v", v, err)
	}
	var m map[string]T
	if err := json.Unmarshal(js, &m); err != nil || m["k"] != v {
		t.Errorf("%s read back as %v, %v", js, m["k"], err)
	}
}

// parseCase is one spelling and what comes of it; a wrong one names the error.
type parseCase[T comparable] struct {
	in   string
	want T
	err  string
}

func checkParse[T comparable](t *testing.T, parse func(string) (T, error), cases []parseCase[T]) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.in, func(t *testing.T) {
			got, err := parse(c.in)
			if c.err == "" && (err != nil || got != c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
			if c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("got %v, error %v, want error %q", got, err, c.err)
			}
			if c.err != "" && got != c.want {
				t.Errorf("got %v beside the error, want the zero value", got)
			}
		})
	}
}

// fuzzParse demands that whatever parse accepts survives its own text form.
func fuzzParse[T textValue, P interface {
	*T
	encoding.TextUnmarshaler
}](f *testing.F, parse func(string) (T, error), seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parse(s)
		if err != nil {
			var zero T
			if v != zero {
				t.Fatalf("%q gave %v beside error %v", s, v, err)
			}
			return
		}
		checkText[T, P](t, v)
	})
}
