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

// TestSkips finds tests that skip themselves. parttest alone does so: it fails instead where every real part is required.
func TestSkips(t *testing.T) {
	found := 0
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
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := method.X.(*ast.Ident); ok && slices.Contains(tests, of.Name) && slices.Contains(skips, method.Sel.Name) {
				if path != filepath.Join("..", "packaging", "parttest", "parttest.go") {
					t.Errorf("%v skips: call parttest.Need, which fails where every real part is required", set.Position(call.Pos()))
				}
				found++
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("not even parttest skips: this test looks for the wrong name")
	}
}
