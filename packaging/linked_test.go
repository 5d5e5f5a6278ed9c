package packaging

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the lists of linked packages and of the state")

// never are what a program must not link, whatever its committed list says.
var never = map[string][]string{
	"portcullis-agent": {
		"go.etcd.io", "google.golang.org/grpc", "github.com/danielgtaylor/huma", "github.com/go-chi/chi",
		ours + "/api/store", ours + "/api/admission", ours + "/fabricsm", ours + "/agent/hca/hcasim",
	},
	"portcullis": {"go.etcd.io", "google.golang.org/grpc", ours + "/api/store", ours + "/fabricsm/driver"},
	// drills play the service, over a store in memory
	"portcullis-sim": {"go.etcd.io", "google.golang.org/grpc", ours + "/api/store/etcd", ours + "/agent"},
}

// always are exceptions to never.
var always = map[string][]string{
	"portcullis-agent": {ours + "/fabricsm/ib", ours + "/fabricsm/strictyaml"},
	// simulated adapters, which share their registers with the agent; in drills they are
	// read and locked as the agent does
	"portcullis-sim": {ours + "/agent/hca", ours + "/agent/lock"},
	// keys are taken from, and put back into, the facts of a stopped subnet manager
	"portcullis": {ours + "/fabricsm/driver/factfile", ours + "/fabricsm/driver/guid2lid", ours + "/fabricsm/driver/keystore"},
}

// played are test helpers that a program needs: hosts of drills, whose TPMs are
// software and whose evidence may be wrong in one way.
var played = map[string][]string{
	"portcullis-sim": {ours + "/attest/attesttest", ours + "/attest/eventlog/eventlogtest"},
}

// linked lists the packages a program links, without the standard library.
func linked(t *testing.T, program string) []string {
	t.Helper()
	paths := []string{}
	for _, p := range goList(t, "-deps", "./cmd/"+program) {
		if !p.Standard {
			paths = append(paths, p.ImportPath)
		}
	}
	slices.Sort(paths)
	return paths
}

// TestLinked compares what each program links with the committed list, so that
// growth is seen in review. Rewrite the lists with "make update".
func TestLinked(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			file := filepath.Join("linked", program+".txt")
			got := strings.Join(linked(t, program), "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s has no committed list of what it links: run \"make update\" and commit packaging/%s", program, file)
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("%s links other packages than packaging/%s says; if each is wanted, run \"make update\" (-committed +linked):\n%s", program, file, d)
			}
		})
	}
}

func TestNeverLinked(t *testing.T) {
	for _, program := range programs {
		paths := linked(t, program)
		for _, tree := range never[program] {
			if i := slices.IndexFunc(paths, func(path string) bool {
				return within(path, tree) && !withinAny(path, always[program])
			}); i >= 0 {
				t.Errorf("%s links %s, but must link nothing of %s", program, paths[i], tree)
			}
		}
	}
}

// TestNoTestHelpLinked keeps the helpers of tests out of the released programs.
func TestNoTestHelpLinked(t *testing.T) {
	for _, program := range programs {
		for _, path := range linked(t, program) {
			if path == "testing" || within(path, ours) && forTests(path) && !withinAny(path, played[program]) {
				t.Errorf("%s links %s, which only helps tests", program, path)
			}
			if within(path, ours+"/cmd/internal/wallclock") || within(path, ours+"/cmd/internal/slowsync") {
				t.Errorf("%s links %s, which harms processes on purpose", program, path)
			}
		}
	}
}
