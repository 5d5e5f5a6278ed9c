package packaging

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// skips are the methods that skip a test, and tests are the names that variables of a test have.
var (
	skips = []string{"Skip", "Skipf", "SkipNow"}
	tests = []string{"t", "b", "f", "tb", "rt"}
)

// eachCall reports each call of the form X.Name in the Go files of the project.
func eachCall(t *testing.T, report func(file *ast.File, at token.Position, of, name string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path != ".." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if method, ok := call.Fun.(*ast.SelectorExpr); ok {
					if of, ok := method.X.(*ast.Ident); ok {
						report(file, set.Position(call.Pos()), of.Name, method.Sel.Name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSkips finds tests that skip themselves. testenv alone does so: it fails instead where every real part is required.
func TestSkips(t *testing.T) {
	found := 0
	eachCall(t, func(_ *ast.File, at token.Position, of, name string) {
		if !slices.Contains(tests, of) || !slices.Contains(skips, name) {
			return
		}
		if at.Filename != filepath.Join("..", "packaging", "testenv", "testenv.go") {
			t.Errorf("%v skips: call testenv.Need, which fails where every real part is required", at)
		}
		found++
	})
	if found == 0 {
		t.Error("not even testenv skips: this test looks for the wrong name")
	}
}

// slept are the tests that may sleep in real time, or whose fake time another file starts, each with the reason.
var slept = map[string]string{
	"api/leader/faulty_test.go":                    "runs in the bubbles of property_test.go",
	"packaging/vm/inside/softhca/zz_leaks_test.go": "kmemleak reports nothing that is younger than 5 s, and has no event",
	"packaging/vm/inside/softhca/softhca_test.go":  "makes one of two orders likely; the test holds for both",
}

// TestSleeps finds tests that sleep in real time. A test waits for an event, or runs in a bubble of testing/synctest.
func TestSleeps(t *testing.T) {
	unused := map[string]bool{}
	for file := range slept {
		unused[file] = true
	}
	eachCall(t, func(file *ast.File, at token.Position, of, name string) {
		if of != "time" || name != "Sleep" || !strings.HasSuffix(at.Filename, "_test.go") {
			return
		}
		rel := filepath.ToSlash(strings.TrimPrefix(at.Filename, ".."+string(filepath.Separator)))
		if slept[rel] != "" {
			delete(unused, rel)
			return
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }) {
			t.Errorf("%v sleeps in real time: wait for the event, or use testing/synctest", at)
		}
	})
	for file := range unused {
		t.Errorf("%s does not sleep any more: take it out of the list", file)
	}
}
