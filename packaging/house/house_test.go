package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// project writes a module with two packages and goes to its root.
func project(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module portcullis\n\ngo 1.26\n",
		// a.go and b.go use each other, c.go uses both and is used by neither.
		"p/a.go":      "package p\n\ntype T struct{}\n\nfunc (T) A() { B() }\n",
		"p/b.go":      "package p\n\nfunc B() { var t T; t.A() }\n\nfunc (*T) B() {}\n",
		"p/c.go":      "package p\n\nfunc C() { B(); T{}.A() }\n",
		"p/a_test.go": "package p\n\nfunc (T) OfTests() {}\n",
		"q/q.go":      "package q\n\nconst Q = 1\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestMeasure(t *testing.T) {
	project(t)
	got, err := measure("./...")
	if err != nil {
		t.Fatal(err)
	}
	want := sizes{
		methods: map[string]int{"p.T": 2},
		lines:   map[string]int{"p": 5 + 5 + 3, "q": 3},
		circles: map[string]int{"p": 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sizes{})); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

func TestMeasureBroken(t *testing.T) {
	project(t)
	if err := os.WriteFile("q/q.go", []byte("package q\n\nconst Q = no\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := measure("./..."); err == nil || !strings.Contains(err.Error(), "portcullis/q") {
		t.Errorf("a package that does not compile: error %v, want one that names it", err)
	}
}

func TestLarge(t *testing.T) {
	s := sizes{methods: map[string]int{"p.T": 81, "p.U": 80}, lines: map[string]int{"p": 6001, "q": 6000}}
	if diff := cmp.Diff(map[string]int{"type p.T": 81, "package p": 6001}, s.large()); diff != "" {
		t.Errorf("large (-want +got):\n%s", diff)
	}
}

func TestKnown(t *testing.T) {
	large := map[string]int{"type p.T": 81, "package p": 6001}
	known, err := parseKnown(formatKnown(large))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(large, known); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"p 1\n", "type p\n", "type p 0\n", "file p 3\n", "type p 1\ntype p 1\n", "7\n"} {
		if _, err := parseKnown(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	known := map[string]int{"type p.Same": 90, "type p.More": 90, "type p.Less": 90}
	large := map[string]int{"type p.Same": 90, "type p.More": 91, "type p.Less": 89, "package p": 6001}
	want := []string{
		"package p: 6001 is too large: a type may have 80 methods, a package 6000 lines",
		"type p.More: 91, and 90 was known: it may only fall",
	}
	if diff := cmp.Diff(want, compare(known, large)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
