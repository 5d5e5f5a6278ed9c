package watch

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullisd/config"
)

// TestSocketIsForItsUserOnly: no other user may ask, a stale socket is replaced, and one that is in use, or another file,
// is left alone.
func TestSocketIsForItsUserOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("socket: %v, %v; want mode 0600", info.Mode(), err)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second listener: %v", err)
	}
	// As after a crash: the file stays and has no listener.
	stale := l.(*unixListener)
	stale.UnixListener.Close()
	if l, err = listenUnix(path); err != nil {
		t.Fatalf("stale socket: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want no file", err)
	}
	write(t, path, "precious")
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

func TestWatchOfWhatIsTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	first, err := Open(config.Watch{Socket: "first.sock"}, in, nil, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for _, tt := range []struct {
		name string
		o    config.Watch
		want string
	}{
		{"socket", config.Watch{Socket: "first.sock"}, "another process listens there"},
		{"metrics", config.Watch{Socket: "second.sock", Metrics: busy.Addr().String()}, "address already in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if w, err := Open(tt.o, in, nil, nil, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("watch = %v, %v; want an error with %q", w, err, tt.want)
			}
		})
	}
	left, err := filepath.Glob(in("*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{in("first.sock")}, left); diff != "" {
		t.Errorf("sockets that are left (-want +got):\n%s", diff)
	}
}

// write writes a file that only its owner may use.
func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
