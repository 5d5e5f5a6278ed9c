package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestOperationsAreDocumented holds the operations of the client against those of the OpenAPI document.
func TestOperationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Load(text, &doc); err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]bool{
		"GET /version": true, // of every listener
		"GET /metrics": true, // as that
	}
	file, err := parser.ParseFile(token.NewFileSet(), "operations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		lit, ok := node.(*ast.BasicLit)
		if !ok {
			return true
		}
		o, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		asked[o] = true
		method, path, _ := strings.Cut(o, " ")
		if _, ok := doc.Paths[path][strings.ToLower(method)]; !ok && !elsewhere[o] {
			t.Errorf("%s is not in the document", o)
		}
		return true
	})
	for path, methods := range doc.Paths {
		for method := range methods {
			if o := strings.ToUpper(method) + " " + path; !asked[o] {
				t.Errorf("%s is not among the operations of the client", o)
			}
		}
	}
}
