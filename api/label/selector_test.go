package label_test

import (
	"strings"
	"testing"

	"portcullis/api/label"
)

// TestMatches has what the documentation of Kubernetes says of each operator ("Labels and Selectors").
func TestMatches(t *testing.T) {
	production, qa, none, empty := label.Set{"environment": "production", "tier": "frontend"}, label.Set{"environment": "qa", "tier": "backend"}, label.Set{}, label.Set{"environment": ""}
	for _, tt := range []struct {
		selector string
		want     [4]bool // production, qa, none, empty
	}{
		{"", [4]bool{true, true, true, true}},
		{"  ", [4]bool{true, true, true, true}},
		{"environment=production", [4]bool{true, false, false, false}},
		{"environment==production", [4]bool{true, false, false, false}},
		{"environment = production", [4]bool{true, false, false, false}},
		{"environment=", [4]bool{false, false, false, true}},
		{"tier!=frontend", [4]bool{false, true, true, true}},
		{"environment!=", [4]bool{true, true, true, false}},
		{"environment=production,tier!=frontend", [4]bool{false, false, false, false}},
		{"environment in (production, qa)", [4]bool{true, true, false, false}},
		{"environment in (qa,)", [4]bool{false, true, false, true}},
		{"environment in ()", [4]bool{false, false, false, true}},
		{"tier notin (frontend, backend)", [4]bool{false, false, true, true}},
		{"environment notin (,qa)", [4]bool{true, false, true, false}},
		{"environment", [4]bool{true, true, false, true}},
		{"!environment", [4]bool{false, false, true, false}},
		{"environment,!tier", [4]bool{false, false, false, true}},
		{"environment in (production),tier in (frontend)", [4]bool{true, false, false, false}},
		{"environment,environment notin (production)", [4]bool{false, true, false, true}},
		{"in,!notin", [4]bool{false, false, false, false}},
	} {
		s, err := label.Parse(tt.selector)
		if err != nil {
			t.Errorf("%q: %v", tt.selector, err)
			continue
		}
		if got := [4]bool{s.Matches(production), s.Matches(qa), s.Matches(none), s.Matches(empty)}; got != tt.want {
			t.Errorf("%q matches %v, want %v", tt.selector, got, tt.want)
		}
		if nil1, nil2 := s.Matches(nil), s.Matches(none); nil1 != nil2 {
			t.Errorf("%q: no labels match %v as nil, and %v as an empty set", tt.selector, nil1, nil2)
		}
	}
}

func TestString(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"x=a,y=b,z=c":                      "x=a,y=b,z=c",
		"z=c, x=a ,y == b":                 "x=a,y=b,z=c",
		"x!=a,y=b":                         "x!=a,y=b",
		"x in (b,a,b)":                     "x in (a,b)",
		"x in (a)":                         "x=a",
		"x notin (a)":                      "x!=a",
		"x notin (c,,a)":                   "x notin (,a,c)",
		"x in ()":                          "x=",
		"x\tin\n(a,\r b)":                  "x in (a,b)",
		"x,!y":                             "x,!y",
		"! y":                              "!y",
		"x,x,x=a,x":                        "x,x=a",
		"in in (in,notin)":                 "in in (in,notin)",
		"notin notin (in)":                 "notin!=in",
		"a.example/x in (1,2),a.example/x": "a.example/x,a.example/x in (1,2)",
	} {
		s, err := label.Parse(in)
		if err != nil || s.String() != want || s.Empty() != (want == "") {
			t.Errorf("%q: %q, %v, want %q", in, s, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for in, says := range map[string]string{
		"x=a||y=b":                              `selector, byte 3: value "a||y": want`,
		"x==a==b":                               `selector, byte 5: "==": want ","`,
		"!x=a":                                  `selector, byte 3: "=": want ","`,
		"x<a":                                   `selector, byte 2: "<": want =`,
		"x>1":                                   `selector, byte 2: ">": want =`,
		"x in a":                                `selector, byte 6: "a": want "("`,
		"x in (a":                               `the selector ends at byte 8: want ")"`,
		"x in":                                  `the selector ends at byte 5: want "("`,
		"x in (a b)":                            `selector, byte 9: "b": want ")"`,
		"x in (a=b)":                            `selector, byte 8: "=": want ")"`,
		"x not in (a)":                          `selector, byte 3: "not": want =`,
		"x IN (a)":                              `selector, byte 3: "IN": want =`,
		"x=a,":                                  `the selector ends at byte 5: want the key`,
		",x=a":                                  `selector, byte 1: ",": want the key`,
		"x=a,,y":                                `selector, byte 5: ",": want the key`,
		"!":                                     `the selector ends at byte 2: want the key`,
		"!!x":                                   `selector, byte 2: "!": want the key`,
		"=a":                                    `selector, byte 1: "=": want the key`,
		"(x)":                                   `selector, byte 1: "(": want the key`,
		"-x=a":                                  `selector, byte 1: label key "-x"`,
		"x=-a":                                  `selector, byte 3: value "-a"`,
		"x\x00=a":                               `selector, byte 1: label key`,
		"é":                                     `selector, byte 1: label key`,
		strings.Repeat("x", 1025):               `a selector of 1025 bytes: it has 1024 at most`,
		strings.Repeat("x", 1024):               `selector, byte 1: label key`,
		strings.Repeat("a,", 32) + "b":          `a selector of more than 32 requirements`,
		"x in (" + strings.Repeat("é", 4) + ")": `selector, byte 7: value`,
	} {
		if s, err := label.Parse(in); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%.40q: %q, %v, want %q", in, s, err, says)
		}
	}
	if _, err := label.Parse(strings.Repeat("a,", 31) + "b"); err != nil {
		t.Errorf("32 requirements: %v", err)
	}
}

// FuzzParse: whatever is parsed has a form that is read as the same selector, and decides as that.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a=b,c!=d,e in (x,y),f notin (z),g,!h", "a in (,)", "a==,b", "in in (in)", "a<1", "((", "!a!=b", "a\x00"} {
		f.Add(s, "a", "b")
	}
	f.Fuzz(func(t *testing.T, in, key, value string) {
		s, err := label.Parse(in)
		if err != nil {
			if len(err.Error()) > 600 {
				t.Errorf("%q: an error of %d bytes", in, len(err.Error()))
			}
			return
		}
		form := s.String()
		again, err := label.Parse(form)
		if len(form) > label.MostSelector { // " in (" became longer than what was left out
			return
		}
		if err != nil || again.String() != form {
			t.Fatalf("%q is %q, which is read as %q, %v", in, form, again, err)
		}
		for _, set := range []label.Set{nil, {key: value}, {"a": "b"}, {"a": ""}, {"in": "in"}} {
			if s.Matches(set) != again.Matches(set) {
				t.Errorf("%q and %q decide differently about %v", in, form, set)
			}
		}
	})
}
