package hca

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	maxFile    = 4 << 10 // a sysfs attribute is at most one page
	maxEntries = 1024    // of one directory
)

// tree reads attributes below one directory and collects problems.
type tree struct {
	root     *os.Root
	problems []error
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{root: root}, nil
}

func (t *tree) close() { t.root.Close() }

func (t *tree) problem(name string, err error) {
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

// text reads a demanded attribute; a problem gives "".
func (t *tree) text(name string) string {
	s, err := t.read(name)
	if err == nil && s == "" {
		err = errEmpty
	}
	if err != nil {
		t.problem(name, err)
	}
	return s
}

// optional reads an attribute that a driver or firmware need not have; only
// what is there but cannot be understood is a problem.
func (t *tree) optional(name string) string {
	s, err := t.read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		t.problem(name, err)
	}
	return s
}

var (
	errTooLong = fmt.Errorf("holds more than %d bytes", maxFile)
	errNotText = errors.New("is not one line of printable ASCII")
	errEmpty   = errors.New("is empty")
	errNotFile = errors.New("is not a plain file")
)

// read gives one line without the white space around it.
func (t *tree) read(name string) (string, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return "", errNotFile
	}
	f, err := t.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", errTooLong
	}
	s := strings.TrimSpace(string(b))
	for _, c := range []byte(s) {
		if c < 0x20 || c > 0x7e {
			return "", errNotText
		}
	}
	return s, nil
}

// list gives the names in a directory, sorted.
func (t *tree) list(name string) ([]string, error) {
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
	return sorted(names), nil
}
