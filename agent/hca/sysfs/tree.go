package sysfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	maxFile    = 4 << 10 // a sysfs attribute is at most one page
	maxEntries = 1024    // of one directory
)

// Tree reads attributes below one directory and collects problems.
type Tree struct {
	root     *os.Root
	problems []error
}

// Open opens the tree at dir, for example /sys.
func Open(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{root: root}, nil
}

// Close closes the tree.
func (t *Tree) Close() { t.root.Close() }

// Problems are those of all reads so far, each with its file.
func (t *Tree) Problems() []error { return t.problems }

// Problem adds one about a file or directory of the tree.
func (t *Tree) Problem(name string, err error) {
	t.problems = append(t.problems, fmt.Errorf("%s: %w", path.Join(t.root.Name(), name), reason(err)))
}

// reason drops the path that the error carries already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Text reads a required attribute. It returns "" after a problem.
func (t *Tree) Text(name string) string {
	s, err := t.read(name)
	if err == nil && s == "" {
		err = errEmpty
	}
	if err != nil {
		t.Problem(name, err)
	}
	return s
}

// Optional reads an attribute that a driver or firmware need not have; only
// what is there but cannot be understood is a problem.
func (t *Tree) Optional(name string) string {
	s, err := t.read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		t.Problem(name, err)
	}
	return s
}

var (
	errNotText = errors.New("is not one line of printable ASCII")
	errEmpty   = errors.New("is empty")
	errNotFile = errors.New("is not a regular file")
)

// read returns one line without the white space around it.
func (t *Tree) read(name string) (string, error) {
	b, err := t.Bytes(name, maxFile)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if !printable(s) {
		return "", errNotText
	}
	return s, nil
}

// printable reports whether s is printable ASCII alone.
func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// Bytes reads a plain file of at most limit bytes.
func (t *Tree) Bytes(name string, limit int) ([]byte, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return nil, errNotFile
	}
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, fmt.Errorf("holds more than %d bytes", limit)
	}
	return b, nil
}

// Link returns the last element of a symbolic link's target, or "" if there is no link.
func (t *Tree) Link(name string) string {
	target, err := t.root.Readlink(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		t.Problem(name, err)
		return ""
	}
	if base := path.Base(target); printable(base) {
		return base
	}
	t.Problem(name, errNotText)
	return ""
}

// Has reports whether there is a file or directory of that name.
func (t *Tree) Has(name string) bool {
	_, err := t.root.Lstat(name)
	return err == nil
}

// List returns the names in a directory, sorted.
func (t *Tree) List(name string) ([]string, error) {
	d, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("holds more than %d entries", maxEntries)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names, nil
}

// names returns the names in a directory that need not exist, sorted. If it exists and cannot be listed, that is a problem.
func (t *Tree) names(dir string) []string {
	names, err := t.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Problem(dir, err)
	}
	return names
}
