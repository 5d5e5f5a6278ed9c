package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest/tpm/tpmtest"
	"portcullis/cmd/internal/program"
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

// TestStays: after the story everything keeps running, and is open to a browser and to the commands as it says, until it is ended.
func TestStays(t *testing.T) {
	dir := programs(t)
	t.Setenv("TMPDIR", shortDir(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var complaint bytes.Buffer
	out := &trigger{word: "Ctrl-C ends everything"}
	looked := false
	out.pull = sync.OnceFunc(func() {
		defer stop()
		looked = true
		visit(t, out.text.String())
	})
	if code := run(ctx, []string{"--programs", dir, "--stay", "--reader", "directed-route SMPs"}, out, &complaint); code != exitProven || !looked {
		t.Fatalf("got status %d, want %d; it stayed: %v\n%s%s", code, exitProven, looked, out.text.String(), complaint.String())
	}
	wantEmpty(t, os.Getenv("TMPDIR"))
}

// visit opens the page that a demonstration says is open, and runs the command that it says.
func visit(t *testing.T, said string) {
	t.Helper()
	_, said, _ = strings.Cut(said, "It keeps running")
	after := func(word string) string {
		_, rest, _ := strings.Cut(said, "\n"+word)
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	ca, _, _ := strings.Cut(after("certificate"), ":")
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Error(err)
		return
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer browser.CloseIdleConnections()
	r, err := browser.Get(after("open"))
	if err != nil {
		t.Error(err)
		return
	}
	page, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || r.Request.URL.Path != "/ui/" || !bytes.Contains(page, []byte(`<main id="main"`)) {
		t.Errorf("%s is status %d, %v:\n%s", r.Request.URL, r.StatusCode, err, page)
	}
	token, err := exec.CommandContext(t.Context(), "sh", "-c", after("token")).Output()
	if err != nil {
		t.Errorf("%q: %v", after("token"), err)
		return
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, after("open")+"v1/whoami", http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if r, err = browser.Do(q); err != nil {
		t.Error(err)
		return
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("with what %q prints the service answers %d", after("token"), r.StatusCode)
	}
	hosts, err := exec.CommandContext(t.Context(), "sh", "-c", after("commands")).CombinedOutput()
	if err != nil || strings.Count(string(hosts), "admitted") != hostCount {
		t.Errorf("%q: %v, want %d hosts that are admitted:\n%s", after("commands"), err, hostCount, hosts)
	}
}

// TestStaysWithService: where the service ends by itself, the demonstration does not stay.
func TestStaysWithService(t *testing.T) {
	t.Parallel()
	p, err := program.Start(program.Options{Dir: t.TempDir(), Name: "true", Path: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if err := await(t.Context(), p); err == nil || !strings.Contains(err.Error(), "true ended") {
		t.Errorf("the service ended: %v", err)
	}
}

// TestBounded: the story has a deadline, and staying has none.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, _, end := bounded(t.Context(), time.Minute)
		defer end()
		<-ctx.Done()
		if cause := context.Cause(ctx); cause == nil || cause.Error() != "not done after 1m0s" {
			t.Errorf("after the deadline: %v", cause)
		}
		ctx, over, end := bounded(t.Context(), time.Minute)
		over()
		<-time.After(time.Hour)
		if ctx.Err() != nil {
			t.Errorf("an hour after the story was over: %v", context.Cause(ctx))
		}
		end()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("at the end: %v", cause)
		}
	})
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
		{"help of staying", []string{"--help"}, exitProven, "-stay"},
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
