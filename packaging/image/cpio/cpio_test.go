package cpio

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

// example writes an archive with one entry of each kind.
func example(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, err := range []error{
		w.Dir("etc", 0o755),
		w.Bytes("etc/os-release", 0o644, []byte("ID=debian\n")),
		w.File("usr/bin/agent", 0o4755, 3, strings.NewReader("ELF")),
		w.Symlink("init", "usr/bin/agent"),
		w.CharDevice("dev/console", 0o600, 5, 1),
		w.BlockDevice("dev/vda", 0o660, 254, 0),
		w.Bytes("empty", 0o600, nil),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestSameCallsSameBytes(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(example(t), example(t)) {
		t.Error("two archives of the same calls differ")
	}
}

// TestReadByCpio has GNU cpio list and extract what was written.
func TestReadByCpio(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "cpio")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Stdin = t.TempDir(), bytes.NewReader(example(t))
		cmd.Env = append(cmd.Environ(), "TZ=UTC", "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				t.Fatalf("cpio %v: %v\n%s", args, err, exit.Stderr)
			}
			t.Fatal(err)
		}
		return string(out)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(run("-tv", "--quiet", "--numeric-uid-gid")), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"drwxr-xr-x 2 0 0 0 Jan 1 1970 etc",
		"-rw-r--r-- 1 0 0 10 Jan 1 1970 etc/os-release",
		"drwxr-xr-x 2 0 0 0 Jan 1 1970 usr",
		"drwxr-xr-x 2 0 0 0 Jan 1 1970 usr/bin",
		"-rwsr-xr-x 1 0 0 3 Jan 1 1970 usr/bin/agent",
		"lrwxrwxrwx 1 0 0 13 Jan 1 1970 init -> usr/bin/agent",
		"drwxr-xr-x 2 0 0 0 Jan 1 1970 dev",
		"crw------- 1 0 0 5, 1 Jan 1 1970 dev/console",
		"brw-rw---- 1 0 0 254, 0 Jan 1 1970 dev/vda",
		"-rw------- 1 0 0 0 Jan 1 1970 empty",
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("cpio -tv (-got +want):\n%s", d)
	}
	if got, want := run("-i", "--to-stdout", "--quiet", "etc/os-release", "usr/bin/agent"), "ID=debian\nELF"; got != want {
		t.Errorf("content by cpio: got %q, want %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*Writer) error{
		"absolute name":        func(w *Writer) error { return w.Dir("/etc", 0o755) },
		"name out of the root": func(w *Writer) error { return w.Dir("../etc", 0o755) },
		"name not clean":       func(w *Writer) error { return w.Dir("etc//x", 0o755) },
		"no name":              func(w *Writer) error { return w.Dir("", 0o755) },
		"zero byte":            func(w *Writer) error { return w.Dir("a\x00b", 0o755) },
		"name of the trailer":  func(w *Writer) error { return w.Bytes(trailer, 0o644, nil) },
		"twice":                func(w *Writer) error { return errors.Join(w.Dir("a", 0o755), w.Dir("a", 0o755)) },
		"parent after child":   func(w *Writer) error { return errors.Join(w.Bytes("a/b", 0o644, nil), w.Dir("a", 0o700)) },
		"parent is a file":     func(w *Writer) error { return errors.Join(w.Bytes("a", 0o644, nil), w.Bytes("a/b", 0o644, nil)) },
		"parent is a block device": func(w *Writer) error {
			return errors.Join(w.BlockDevice("a", 0o600, 1, 1), w.Bytes("a/b", 0o644, nil))
		},
		"content too short": func(w *Writer) error { return w.File("a", 0o644, 4, strings.NewReader("abc")) },
		"too large":         func(w *Writer) error { return w.File("a", 0o644, maxSize+1, strings.NewReader("")) },
		"empty link":        func(w *Writer) error { return w.Symlink("a", "") },
		"after Close":       func(w *Writer) error { return errors.Join(w.Close(), w.Dir("a", 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := NewWriter(io.Discard)
			if err := call(w); err == nil {
				t.Fatal("no error")
			}
			if err := w.Dir("later", 0o755); err == nil {
				t.Error("the error did not stick")
			}
		})
	}
}

// full fails after some bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

// Write implements io.Writer.
func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	for room := 0; room < 512; room += 50 {
		w := NewWriter(&full{room})
		err := errors.Join(w.Bytes("etc/file", 0o644, []byte("content")), w.Symlink("l", "etc/file"), w.Close())
		if !errors.Is(err, errFull) {
			t.Errorf("%d bytes of room: got %v, want %v", room, err, errFull)
		}
	}
}
