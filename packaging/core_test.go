package packaging

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// core are the packages of which the same state, input and time must make the
// same output.
var core = []string{
	"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/route", "fabricsm/partition",
	"fabricsm/mcast", "fabricsm/qos", "fabricsm/proof", "fabricsm/keys", "fabricsm/sm", "fabricsm/topospec", "fabricsm/perfmgr",
	"firmware/image", "firmware/mfa2", "firmware/nvconfig", "firmware/pin", "firmware/policy",
}

// bannedInCore are the trees of the standard library through which a clock, a
// random number, a device or a scheduler could come in.
var bannedInCore = []string{
	"net", "os", "io/fs", "io/ioutil", "syscall", "context", "log", "math/rand", "crypto/rand",
	"plugin", "runtime/debug", "testing", "embed", "sync",
}

// allowedInCore are the exceptions, by package.
var allowedInCore = map[string][]string{
	"fabricsm/ib":   {"log/slog", "net/netip"}, // a key hides itself from slog; a GID is an address
	"fabricsm/keys": {"log/slog"},              // as ib
	// It reads the file of a key, and starts the program that speaks to tokens.
	"firmware/nvconfig/signkey": {"os", "os/exec", "context", "syscall", "net/url"},
	"fabricsm/mad":              {"sync"}, // a layout is compiled once, for all callers
	// Routing runs outside the core, as a job that returns only its result. It forks and joins, and the joined result does
	// not depend on which part was first.
	"fabricsm/route":         {"sync"},
	"fabricsm/route/nexthop": {"sync"},
}

// mayFork are the packages that may use goroutines and channels, for the reason
// given in allowedInCore.
var mayFork = []string{"fabricsm/route", "fabricsm/route/nexthop"}

// clock are the functions of package time that read or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestCoreImports(t *testing.T) {
	for _, root := range core {
		for _, p := range goList(t, "./"+root+"/...") {
			if forTests(p.ImportPath) {
				continue
			}
			for _, imported := range p.Imports {
				if withinAny(imported, bannedInCore) && !slices.Contains(allowedInCore[strings.TrimPrefix(p.ImportPath, ours+"/")], imported) {
					t.Errorf("%s imports %s: the core has no I/O, clock, randomness or log", p.ImportPath, imported)
				}
			}
		}
	}
}

// TestCoreSource looks for things that no import shows: goroutines, channels that are waited on, clocks and random numbers.
func TestCoreSource(t *testing.T) {
	for _, root := range core {
		for _, p := range goList(t, "./"+root+"/...") {
			if forTests(p.ImportPath) {
				continue
			}
			forks := slices.Contains(mayFork, strings.TrimPrefix(p.ImportPath, ours+"/"))
			for _, name := range p.GoFiles {
				for _, f := range impurities(t, filepath.Join(p.Dir, name), nil) {
					if !forks || f.clock {
						t.Errorf("%s: %s", f.at, f.what)
					}
				}
			}
		}
	}
}

// TestCoreSourceBreaks shows that the search finds what it must.
func TestCoreSourceBreaks(t *testing.T) {
	const source = `package p
import clk "time"
func init() {}
func f(c chan int) clk.Time {
	go f(c)
	select {}
	<-c
	c <- 1
	clk.Sleep(clk.Second)
	later := clk.AfterFunc
	_ = later
	return clk.Now().Add(clk.Second)
}
`
	got := []string{}
	for _, f := range impurities(t, "p.go", []byte(source)) {
		got = append(got, fmt.Sprintf("%s: %s", f.at, f.what))
	}
	want := []string{
		"p.go:3:1: init", "p.go:5:2: goroutine", "p.go:6:2: select", "p.go:7:2: receive", "p.go:8:2: send",
		"p.go:9:2: time.Sleep", "p.go:10:11: time.AfterFunc", "p.go:12:9: time.Now",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// impurity is a place where a file of the core forks, waits or reads a clock.
type impurity struct {
	at    token.Position
	what  string
	clock bool
}

// impurities lists those of one file. The source, when nil, is what the file
// holds.
func impurities(t *testing.T, path string, source any) []impurity {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	timeName := importName(file, "time")

	var found []impurity
	report := func(at token.Pos, what string) {
		found = append(found, impurity{files.Position(at), what, strings.HasPrefix(what, "time.")})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n.Pos(), "goroutine")
		case *ast.SelectStmt:
			report(n.Pos(), "select")
		case *ast.SendStmt:
			report(n.Pos(), "send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				report(n.Pos(), "receive")
			}
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				report(n.Pos(), "init")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				report(n.Pos(), "time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// importName returns the name under which a file imports a package, or "" if it does not import it.
func importName(file *ast.File, path string) string {
	for _, i := range file.Imports {
		if i.Path.Value != `"`+path+`"` {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path
	}
	return ""
}
