package etcd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/storetest"
)

type word struct {
	Text string `json:"text"`
}

func words() store.Collection[word] { return store.NewCollection[word]("words", 1) }

func TestEmbeddedMember(t *testing.T) {
	t.Parallel()
	shared := storetest.Open(t)
	n := 0
	storetest.Conformance(t, func(testing.TB) *store.Store {
		n++
		return store.New(shared.Backend(), fmt.Sprintf("suite-%d", n))
	})
}

func TestSecondServiceIsRefused(t *testing.T) {
	dir := t.TempDir()
	storetest.OpenDir(t, dir)
	_, err := etcd.Open(t.Context(), etcd.Options{Dir: dir, Log: storetest.Quiet()})
	var inUse *etcd.InUseError
	if !errors.As(err, &inUse) {
		t.Fatalf("got %v, want *InUseError", err)
	}
	want := etcd.InUseError{Dir: dir, PID: os.Getpid()}
	if d := cmp.Diff(want, *inUse); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %q names neither process nor directory", err)
	}
}

func TestOptionsNameAPlace(t *testing.T) {
	if _, err := etcd.Open(t.Context(), etcd.Options{}); err == nil {
		t.Error("Open without a place succeeded")
	}
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := etcd.Open(t.Context(), etcd.Options{Dir: filepath.Join(file, "state"), Log: storetest.Quiet()})
	if err == nil || !strings.Contains(err.Error(), "state directory") {
		t.Errorf("got %v, want an error that names the state directory", err)
	}
}

func TestReopenKeepsRecords(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		s, err := etcd.Open(t.Context(), etcd.Options{Dir: dir, Log: storetest.Quiet()})
		if err != nil {
			t.Fatal(err)
		}
		recs, _, err := words().List(t.Context(), s, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) != i {
			t.Errorf("start %d: got %d records, want %d", i, len(recs), i)
		}
		_, err = s.Update(t.Context(), func(tx *store.Tx) error { return words().Put(tx, strconv.Itoa(i), word{}) })
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoListener checks that the embedded member cannot be reached from
// outside the process at all.
func TestNoListener(t *testing.T) {
	before := sockets(t)
	storetest.Open(t)
	if d := cmp.Diff(before, sockets(t)); d != "" {
		t.Errorf("listening sockets changed (-before +with member):\n%s", d)
	}
	for _, addr := range []string{"127.0.0.1:2379", "127.0.0.1:2380"} {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Errorf("something listens on %s", addr)
		}
	}
}

// sockets returns the inodes of this process's sockets.
func sockets(t *testing.T) []string {
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:") {
			out = append(out, target)
		}
	}
	return out
}

func TestVersions(t *testing.T) {
	s := storetest.Open(t)
	write := func(c store.Collection[word], key, text string) {
		t.Helper()
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return c.Put(tx, key, word{text}) }); err != nil {
			t.Fatal(err)
		}
	}
	v1 := store.NewCollection[word]("w", 1)
	v2 := store.NewCollection[word]("w", 2, func(b json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.ReplaceAll(string(b), "old", "new")), nil
	})
	write(v1, "k", "old")
	got, err := v2.Get(t.Context(), s, "k")
	if err != nil || got.Value.Text != "new" {
		t.Errorf("upgraded record: got %q, %v, want \"new\"", got.Value.Text, err)
	}
	write(v2, "k", "x")
	if _, err := v1.Get(t.Context(), s, "k"); err == nil || !strings.Contains(err.Error(), "newer service") {
		t.Errorf("record of a newer version: got %v, want a refusal that says so", err)
	}
}
