package proof_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// core is the files that a reviewer reads to check a verdict.
var core = []string{"doc.go", "model.go", "wiring.go", "keys.go", "ends.go", "pass.go", "reach.go", "ports.go", "result.go"}

// mostCore is how many lines of code they may have, without empty lines and comments, bitset included.
const mostCore = 1500

// The core of the prover is small, and complete: it compiles without the other files of the package.
func TestCore(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	var files []*ast.File
	lines := 0
	for _, name := range slices.Concat(core, []string{"bitset/bitset.go"}) {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		n := codeLines(t, name)
		t.Logf("%s: %d lines of code", name, n)
		lines += n
		if file.Name.Name == "proof" {
			files = append(files, file)
		}
	}
	if lines > mostCore {
		t.Errorf("the core has %d lines of code, more than %d", lines, mostCore)
	}
	// A test that was compiled without paths does not know where the standard library is.
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root))
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := config.Check("portcullis/fabricsm/proof", fset, files, nil)
	if err != nil {
		t.Fatalf("the core refers to another file: %v", err)
	}
	if pkg.Scope().Lookup("Prove") == nil || pkg.Scope().Lookup("CounterExample") != nil {
		t.Error("the core is not what Prove is in, or more than it needs")
	}
}

// codeLines counts the lines of a file that are neither empty nor a comment.
func codeLines(t *testing.T, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
