package packaging

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store/etcd"
)

// TestStateFormat compares the parts of the service's state with the list of its format in state/. A change that earlier
// releases cannot read, or must not ignore, needs a new format. Earlier releases then refuse the state, instead of starting
// without a part of the decisions in it.
func TestStateFormat(t *testing.T) {
	got := strings.Join(slices.Concat(etcdVersion(t), collections(t)), "\n") + "\n"
	file := filepath.Join("state", fmt.Sprintf("%d.txt", etcd.Format))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("no list of format %d: %v: run \"make update\"", etcd.Format, err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the state is not that of format %d (-%s +source): if that format was released, raise Format in api/store/etcd and \"knows\" in packaging/scripts/portcullisd.preinst; then run \"make update\"\n%s", etcd.Format, file, d)
	}
	for format := 1; format < etcd.Format; format++ {
		if _, err := os.Stat(filepath.Join("state", fmt.Sprintf("%d.txt", format))); err != nil {
			t.Errorf("the list of an earlier format is gone: %v", err)
		}
	}
}

// TestPreinstKnowsTheFormat: the package refuses what the program in it would refuse.
func TestPreinstKnowsTheFormat(t *testing.T) {
	script, err := os.ReadFile("scripts/portcullisd.preinst")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\nknows=%d\n", etcd.Format); !strings.Contains(string(script), want) {
		t.Errorf("scripts/portcullisd.preinst does not say %q", want)
	}
}

// TestPreinstRefusesNewerState runs the script as dpkg and rpm do.
func TestPreinstRefusesNewerState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format string // "": no such file
		args   []string
		refuse bool
	}{
		{"", []string{"install"}, false},
		{fmt.Sprintf("%d 1.2.3\n", etcd.Format), []string{"upgrade", "1.2.3", "1.2.2"}, false},
		{fmt.Sprintf("%d 9.1.0\n", etcd.Format+1), []string{"upgrade", "9.1.0", "1.2.2"}, true},
		{fmt.Sprintf("%d 9.1.0\n", etcd.Format+1), []string{"install", "9.1.0", "1.2.2"}, true}, // removed before
		{fmt.Sprintf("%d", etcd.Format+1), []string{"2"}, true},                                 // rpm, and no end of line
		{fmt.Sprintf("%d 9.1.0\n", etcd.Format+1), []string{"abort-upgrade", "1.2.3"}, false},
		{"damaged\n", []string{"upgrade", "1.2.3", "1.2.2"}, false}, // the program says so
	} {
		root := t.TempDir()
		if c.format != "" {
			write(t, filepath.Join(root, "var/lib/portcullis/format"), []byte(c.format), 0o600)
		}
		cmd := exec.Command("sh", append([]string{"scripts/portcullisd.preinst"}, c.args...)...)
		cmd.Env = append(os.Environ(), "DPKG_ROOT="+root)
		out, err := cmd.CombinedOutput()
		if refused := err != nil; refused != c.refuse {
			t.Errorf("%q with format %q: %v, want refused: %v\n%s", c.args, c.format, err, c.refuse, out)
		}
		if c.refuse && !strings.Contains(string(out), "hint: ") {
			t.Errorf("%q with format %q says no cure: %s", c.args, c.format, out)
		}
	}
}

// etcdVersion returns the series of etcd, on which the files of the member depend.
func etcdVersion(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "go.etcd.io/etcd/server/v3" {
			series := strings.SplitN(f[1], ".", 3)
			return []string{"etcd " + strings.Join(series[:2], ".")}
		}
	}
	t.Fatal("go.mod names no etcd server")
	return nil
}

// collections returns name and version of each collection that the source declares, as it is written there.
func collections(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("../api", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if strings.HasPrefix(types.ExprString(call.Fun), "store.NewCollection[") {
				found = append(found, types.ExprString(call.Args[0])+" "+types.ExprString(call.Args[1]))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("only %d collections were found: %v", len(found), found)
	}
	slices.Sort(found)
	return found
}
