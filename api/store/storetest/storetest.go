// Package storetest serves tests of packages that keep records: a store in a
// temporary directory, a store that fails at a chosen write, and the suite
// every backend must pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
)

// Shared is one embedded member that the tests of a package share. Each test
// gets a store of its own below a prefix. Make it in TestMain.
type Shared struct {
	member *store.Store
	n      atomic.Int64
}

// Run starts a member in a temporary directory, runs the package's tests and returns the exit code. Call it from TestMain:
// os.Exit(storetest.Run(m, &shared)).
func Run(m *testing.M, shared *Shared) int {
	code, err := shared.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return 1
	}
	return code
}

func (sh *Shared) run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "storetest-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sh.member, err = etcd.Open(context.Background(), etcd.Options{Dir: dir, Log: Quiet(), NoSync: true})
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, sh.member.Close()
}

// Open returns an empty store on the shared member.
func (sh *Shared) Open(t testing.TB) *store.Store {
	return store.New(sh.member.Backend(), sh.prefix(t))
}

// OpenFailing returns an empty store that a test can make fail.
func (sh *Shared) OpenFailing(t testing.TB) (*store.Store, *Failing) {
	f := &Failing{Backend: sh.member.Backend()}
	return store.New(f, sh.prefix(t)), f
}

func (sh *Shared) prefix(t testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), sh.n.Add(1))
}

// Open returns a store on a member of its own in a temporary directory.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenDir(t, t.TempDir())
}

// OpenDir is Open in a given directory.
func OpenDir(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{Dir: dir, Log: Quiet(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// Quiet returns a logger that says nothing.
func Quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
