package anchor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/api/audit/chain"
)

func at(seq uint64) *chain.Anchor {
	return &chain.Anchor{Time: time.Unix(int64(seq), 0).UTC(), Service: "sm-1", Seq: seq, Hash: strings.Repeat("ab", 32)}
}

func seqs(list []chain.Anchor) (out []uint64) {
	for _, a := range list {
		out = append(out, a.Seq)
	}
	return out
}

func newFile(t *testing.T) *File {
	t.Helper()
	f := &File{Path: filepath.Join(t.TempDir(), "anchors"), Max: 1 << 20}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	return f
}

func put(t *testing.T, f *File, seq ...uint64) {
	t.Helper()
	for _, s := range seq {
		if err := f.Write(t.Context(), at(s)); err != nil {
			t.Fatal(err)
		}
	}
}

func wantFile(t *testing.T, f *File, want ...uint64) {
	t.Helper()
	got, err := f.Read(t.Context())
	if err != nil || !slices.Equal(seqs(got), want) {
		t.Errorf("read %v, %v; want %v", seqs(got), err, want)
	}
}

func TestFile(t *testing.T) {
	f := newFile(t)
	wantFile(t, f)
	put(t, f, 3, 7)
	wantFile(t, f, 3, 7)
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
	// verify reads the same.
	if got, err := chain.ReadAnchorFiles([]string{f.Path}); err != nil || !slices.Equal(seqs(got), []uint64{3, 7}) {
		t.Errorf("verify reads %v, %v", seqs(got), err)
	}
}

// A write that was cut off, as by a full disk or a power cut, takes no anchor with it.
func TestFileAfterACutWrite(t *testing.T) {
	f := newFile(t)
	put(t, f, 3)
	data, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path, append(data, data[:20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFile(t, f, 3)
	put(t, f, 9)
	wantFile(t, f, 3, 9)
	if got, err := chain.ReadAnchorFiles([]string{f.Path}); err != nil || !slices.Equal(seqs(got), []uint64{3, 9}) {
		t.Errorf("verify reads %v, %v", seqs(got), err)
	}
}

// The files stay small, and the newest anchors are in them.
func TestFileIsBounded(t *testing.T) {
	f := newFile(t)
	line, err := at(1000).Line()
	if err != nil {
		t.Fatal(err)
	}
	f.Max = 3 * int64(len(line))
	for s := range uint64(10) {
		put(t, f, 1000+s)
	}
	wantFile(t, f, 1006, 1007, 1008, 1009)
	for _, name := range []string{f.Path, f.older()} {
		if info, err := os.Stat(name); err != nil || info.Size() > f.Max {
			t.Errorf("%s: %v, %v; want %d bytes at most", name, info, err, f.Max)
		}
	}
}

// Nothing is written to, or read from, a file that is not the service's own.
func TestFileRefuses(t *testing.T) {
	for name, make := range map[string]func(path, other string) error{
		"symbolic link": func(path, other string) error { return os.Symlink(other, path) },
		"FIFO":          func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":     func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		f := newFile(t)
		other := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := make(f.Path, other); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); err == nil {
			t.Errorf("%s: Check finds nothing", name)
		}
		if err := f.Write(t.Context(), at(1)); err == nil {
			t.Errorf("%s: written to", name)
		}
		if name != "directory" {
			if _, err := f.Read(t.Context()); err == nil {
				t.Errorf("%s: read", name)
			}
		}
		if data, err := os.ReadFile(other); err != nil || len(data) > 0 {
			t.Errorf("%s: what it leads to holds %q, %v", name, data, err)
		}
	}
	f := newFile(t)
	if err := os.Chmod(filepath.Dir(f.Path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a directory that others write to: %v", err)
	}
	if err := (&File{Path: filepath.Join(t.TempDir(), "none", "a")}).Check(); err == nil {
		t.Error("a directory that is not there is good")
	}
}
