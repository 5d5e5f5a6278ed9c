package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// build compiles the product's programs once for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "demo-programs-")
	if err != nil {
		return "", err
	}
	return dir, testenv.Build(context.Background(), dir, "cmd/portcullisd", "cmd/portcullis-agent", "cmd/portcullis", "cmd/portcullis-sim")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := build(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func programs(t *testing.T) string {
	t.Helper()
	tpmtest.Require(t)
	dir, err := build()
	if err != nil {
		t.Fatalf("build the programs: %v", err)
	}
	return dir
}

// TestStory runs the whole demonstration with swtpm and the real programs: on
// our simulator as where no InfiniBand tool is installed, and on ibsim with
// smpquery. Its proofs are the assertions; here only the end is looked at.
func TestStory(t *testing.T) {
	dir := programs(t)
	for _, c := range []struct {
		fabric, reader string
		needs          []string // besides the TPM
		want           string
	}{
		{"portcullis-sim", "directed-route SMPs", nil, "portcullis verify finds it, and ends with status 1"},
		{"ibsim", "smpquery", []string{"smpquery"}, "it checks nothing by itself"},
	} {
		t.Run(c.fabric, func(t *testing.T) {
			if c.needs != nil {
				ibsimtest.Need(t, c.needs...)
			}
			t.Setenv("TMPDIR", shortDir(t))
			var out, complaint bytes.Buffer
			if code := run(t.Context(), []string{"--programs", dir, "--fabric", c.fabric, "--reader", c.reader}, &out, &complaint); code != exitProven {
				t.Fatalf("got status %d, want %d\n%s%s", code, exitProven, out.String(), complaint.String())
			}
			for _, want := range []string{
				c.want, c.fabric + " runs a fabric", "proven by " + c.reader,
				"refused, reason guid-conflict", "host-8   globex   globex-infer", "224 tables proven, none wrong",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the story lacks %q:\n%s", want, out.String())
				}
			}
			if locked := " devices have M_Keys, each its own"; strings.Contains(out.String(), locked) != (c.fabric == "portcullis-sim") {
				t.Errorf("the story has %q, or lacks it:\n%s", locked, out.String())
			}
			wantEmpty(t, os.Getenv("TMPDIR"))
		})
	}
}

// TestReadersAgree: our own reader and smpquery read the same tables, on both
// simulators.
func TestReadersAgree(t *testing.T) {
	dir := programs(t)
	ibsimtest.Need(t, "smpquery")
	for _, kind := range []fabricKind{ownSimulator, ibsimFabric} {
		t.Run(string(kind), func(t *testing.T) {
			hosts := plannedHosts()
			l, err := startFabric(t.Context(), kind, dir, shortDir(t), netlistText(hosts))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Stop(); err != nil {
					t.Error(err)
				}
			})
			for _, at := range []struct {
				route string
				port  ib.PortNum
			}{{toHCA(hosts[0].hcas[0]), 0}, {toHCA(hosts[7].hcas[1]), 0}, {toLeaf(1), 3}} {
				theirs, err := smpquery{l.Client()}.pkeys(t.Context(), at.route, at.port, ib.MKey{})
				if err != nil {
					t.Fatal(err)
				}
				ours, err := directReader{l.Client().Socket}.pkeys(t.Context(), at.route, at.port, ib.MKey{})
				if err != nil || len(ours) == 0 {
					t.Fatalf("%v, %v", ours, err)
				}
				if diff := cmp.Diff(theirs, ours); diff != "" {
					t.Errorf("at %s port %d: smpquery-, ours+\n%s", at.route, at.port, diff)
				}
			}
			for _, nowhere := range []string{"0,1,30", "1,2", "0,x"} {
				if keys, err := (directReader{l.Client().Socket}).pkeys(t.Context(), nowhere, 0, ib.MKey{}); err == nil {
					t.Errorf("at %s: %v, want an error", nowhere, keys)
				}
			}
		})
	}
}

// TestStopped stops the story in the middle, as Ctrl-C does.
func TestStopped(t *testing.T) {
	dir := programs(t)
	t.Setenv("TMPDIR", shortDir(t))
	ctx, stop := context.WithCancel(t.Context())
	var complaint bytes.Buffer
	out := &trigger{word: "windows are open", pull: stop}
	if code := run(ctx, []string{"--programs", dir}, out, &complaint); code != exitStopped {
		t.Fatalf("got status %d, want %d\n%s%s", code, exitStopped, out.text.String(), complaint.String())
	}
	wantEmpty(t, os.Getenv("TMPDIR"))
}

func TestUsage(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"help", []string{"--help"}, exitProven, "-keep"},
		{"wrong flag", []string{"--kep"}, exitUsage, "kep"},
		{"no such fabric", []string{"--fabric", "lab"}, exitUsage, "portcullis-sim or ibsim"},
		{"no such reader", []string{"--reader", "eyes"}, exitUsage, "smpquery"},
		{"argument", []string{"now"}, exitUsage, "--help"},
		{"not built", []string{"--programs", empty}, exitFailed, `run "make" first`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, complaint bytes.Buffer
			if code := run(t.Context(), c.args, &out, &complaint); code != c.code {
				t.Errorf("got status %d, want %d", code, c.code)
			}
			if !strings.Contains(complaint.String(), c.want) {
				t.Errorf("got %q, want something with %q", complaint.String(), c.want)
			}
		})
	}
}

// trigger pulls when a word was written.
type trigger struct {
	text bytes.Buffer
	word string
	pull func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.text.Write(p)
	if strings.Contains(w.text.String(), w.word) {
		w.pull()
	}
	return len(p), nil
}

// shortDir is a temporary directory whose path leaves room for the sockets of
// the TPMs.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") //nolint:usetesting // t.TempDir's path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// wantEmpty asserts that nothing was left behind. The diagnostics' own crumbs
// in a directory that the story made count, too.
func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
