package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func words(t *testing.T) []word {
	t.Helper()
	list, err := parseList("# comment\n\ngives?\treturns\nnobody\tthe role\n")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestList(t *testing.T) {
	if _, err := parseList(listText); err != nil {
		t.Errorf("list.txt: %v", err)
	}
	for text, want := range map[string]string{
		"gives\n":         "line 1: want a pattern, a tab, and what to write instead",
		"a\tb\ngives\t\n": "line 2: want a pattern, a tab, and what to write instead",
		"(\ta\n":          "line 1: error parsing regexp",
		"# only this\n":   "it has no words",
	} {
		if _, err := parseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("list %q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestScan(t *testing.T) {
	const quoted = "`nobody`"
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"comments": {"a.go", "package a\n\n// F gives what\n// nobody has.\nfunc F() {} // Gives\n", []string{
			`3: "gives": write returns`, `4: "nobody": write the role`, `5: "Gives": write returns`,
		}},
		"parts of words":          {"a.go", "package a\n\n// Forgives and given.\n", nil},
		"messages":                {"a.go", "package a\n\nvar a = \"nobody asked\"\nvar b = `x\nit gives`\n", []string{`3: "nobody": write the role`, `5: "gives": write returns`}},
		"a string that is a name": {"a.go", "package a\n\nvar a = \"nobody\"\n", nil},
		"strings of tests":        {"a_test.go", "package a\n\nvar a = \"nobody asked\" // it gives\n", []string{`3: "gives": write returns`}},
		"directives":              {"a.go", "package a\n\n//go:generate gives\n", nil},
		"documents":               {"docs/a.md", "It gives.\n\n    it gives\n\n```\ngives\n```\n" + quoted + " nobody\n", []string{`1: "gives": write returns`, `8: "nobody": write the role`}},
		"manual pages":            {"packaging/man/a.8", "It gives.\n", []string{`1: "gives": write returns`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.file, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			found, err := scan(words(t), c.file)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKind(t *testing.T) {
	for name, want := range map[string]kind{
		"a/b.go": source, "README.md": document, "packaging/man/portcullis.1": document, "CHANGELOG.md": other,
		"a/testdata/b.go": other, "packaging/words/list.go": other, "docs/benchmarks/sm.md": other, "Makefile": other,
	} {
		if got := kindOf(name); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	found := map[string][]finding{"b.go": {{}, {}}, "a b.md": {{}}}
	text := formatKnown(found)
	known, err := parseKnown(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"b.go": 2, "a b.md": 1}, known); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"0 a.go\n", "a.go\n", "-1 a.go\n", "1 a.go\n1 a.go\n"} {
		if _, err := parseKnown(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	known := map[string]int{"same.go": 1, "more.go": 1, "less.go": 2, "gone.go": 1}
	found := map[string][]finding{"same.go": {{}}, "more.go": {{}, {}}, "less.go": {{}}, "new.go": {{}}}
	more, less := compare(known, found)
	if diff := cmp.Diff([]string{"more.go", "new.go"}, more); diff != "" {
		t.Errorf("files with more (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gone.go", "less.go"}, less); diff != "" {
		t.Errorf("files with fewer (-want +got):\n%s", diff)
	}
}
