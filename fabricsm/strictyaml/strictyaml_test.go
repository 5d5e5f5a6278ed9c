package strictyaml

import (
	"errors"
	"strings"
	"testing"
	"time"
)

type shape struct {
	Boards []struct {
		PSID string `yaml:"psid"`
	} `yaml:"boards"`
	Floor uint32              `yaml:"floor"`
	Sites map[string]*section `yaml:"sites"`
	Main  section             `yaml:"main,omitempty"`
}

type section struct {
	Timeout time.Duration `yaml:"timeout"`
	Enabled bool          `yaml:"enabled"`
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "f.yaml: it is empty"},
		{"# nothing\n", "f.yaml: it is empty"},
		{"boardz:\n", "f.yaml: line 1: unknown key boardz; did you mean boards?"},
		{"x: 4\nyyyyyy: 5\n", "f.yaml: line 1: unknown key x; the keys here are boards, floor, sites, main\nf.yaml: line 2: unknown key yyyyyy; the keys here are boards, floor, sites, main"},
		{"boards: 3\nflor: 4\n", "f.yaml: line 1: int `3` does not belong here\nf.yaml: line 2: unknown key flor; did you mean floor?"},
		{"boards:\n- psid: a\n- pssid: b\n", "f.yaml: line 3: unknown key pssid; did you mean psid?"},
		{"sites: {north: {enabled: true}, south: {enabld: true}}\n", "f.yaml: line 1: unknown key enabld; did you mean enabled?"},
		{"timeout: 4s\n", "f.yaml: line 1: unknown key timeout; did you mean main.timeout?"},
		{"floor: new\nboards: {a: b}\n", "f.yaml: line 1: str `new` does not belong here\nf.yaml: line 2: map does not belong here"},
		{"floor: 1\nfloor: 2\n", "f.yaml: line 2: mapping key \"floor\" already defined at line 1"},
		{"boards: [\n", "f.yaml: line 2: did not find expected node content"},
		{"\x00", "f.yaml: control characters are not allowed (value: 0)"},
		{"- a\n", "f.yaml: line 1: seq does not belong here"},
		{"floor: 1\n---\nfloor: 2\n", "f.yaml: it has more than one document"},
		{"floor: " + strings.Repeat("[", 65) + strings.Repeat("]", 65), "f.yaml: line 1: exceeded max depth of 64"},
		{"#" + strings.Repeat("x", 1000), "f.yaml: more than 1000 bytes"},
	} {
		var s shape
		err := Load("f.yaml", []byte(tt.text), 1000, &s)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestOptional(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n  # at all\n"} {
		s := shape{Floor: 7}
		if err := LoadOptional("f.yaml", []byte(text), 1000, &s); err != nil || s.Floor != 7 {
			t.Errorf("%q: %+v, %v; want what was there", text, s, err)
		}
	}
	if err := LoadOptional("f.yaml", []byte("#23"), 2, &shape{}); err == nil {
		t.Error("a file of comments that is too large was read")
	}
}

// TestAliases: a value of a few bytes cannot stand for millions.
func TestAliases(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for _, level := range []string{"1", "2", "3", "4", "5"} {
		before := string(level[0] - 1)
		text += "a" + level + ": &a" + level + " [" + strings.Repeat("*a"+before+", ", 10) + "]\n"
	}
	var all map[string]any
	if err := Load("f.yaml", []byte(text), len(text), &all); err == nil || !strings.Contains(err.Error(), "f.yaml: ") {
		t.Errorf("error %v, want one about aliases", err)
	}
	if err := Load("f.yaml", []byte("a: &a [1]\nb: *a\n"), 100, &all); err != nil {
		t.Errorf("one alias: %v", err)
	}
}

// TestDocuments: mistakes in a later document are reported with the line of the file.
func TestDocuments(t *testing.T) {
	text := "# first\n---\nfloor: 1\n---\n# nothing\n---\nmain: {enabled: true}\n---\nflor: 2\nmain:\n  timeout: x\n"
	roots, err := Documents("f.yaml", []byte(text), 1000, 9)
	if err != nil || len(roots) != 3 {
		t.Fatalf("%d documents, %v; want 3", len(roots), err)
	}
	var first, second, third shape
	if err := errors.Join(Fill("f.yaml", roots[0], &first), Fill("f.yaml", roots[1], &second)); err != nil || first.Floor != 1 || !second.Main.Enabled {
		t.Errorf("%+v, %+v, %v", first, second, err)
	}
	err = Fill("f.yaml", roots[2], &third)
	if err == nil || !strings.Contains(err.Error(), "f.yaml: line 9: unknown key flor; did you mean floor?") || !strings.Contains(err.Error(), "f.yaml: line 11: ") {
		t.Errorf("mistakes of the third document: %v", err)
	}
	for text, want := range map[string]string{
		strings.Repeat("a: 1\n---\n", 10): "f.yaml: more than 9 documents",
		strings.Repeat("x", 1001):         "f.yaml: more than 1000 bytes",
		"a: 1\n---\nb: [\n":               "f.yaml: line 4: did not find expected node content",
		"a: 1\n---\nb: " + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "\n": "f.yaml: line 3: exceeded max depth of 64",
	} {
		if _, err := Documents("f.yaml", []byte(text), 1000, 9); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	roots, err = Documents("f.yaml", []byte("floor: 1\nfloor: 2\n"), 1000, 9)
	if err == nil {
		err = Fill("f.yaml", roots[0], &first)
	}
	if err == nil || !strings.Contains(err.Error(), "already defined at line 1") {
		t.Errorf("a doubled key: %v", err)
	}
}

func TestLineOf(t *testing.T) {
	root, err := Document("f.yaml", []byte("boards:\n- psid: a\n- psid: b\n\nmain:\n  timeout: 3s\n"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"boards": 1, "boards.1.psid": 3, "boards.7": 1, "main.timeout": 6, "main.enabled": 5, "floor": 0} {
		if got := LineOf(root, strings.Split(path, ".")...); got != want {
			t.Errorf("%s: line %d, want %d", path, got, want)
		}
	}
	if got := LineOf(nil, "floor"); got != 0 {
		t.Errorf("no file: line %d", got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("boards: [{psid: a}]\nmain: {timeout: 3s}\nsites: {a: {enabld: true}}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("floor: 1\nfloor: 2\nx: *y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s shape
		err := Load("f.yaml", data, 1<<16, &s)
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if strings.HasPrefix(line, "f.yaml: ") {
				return
			}
		}
		t.Fatalf("%v", err)
	})
}
