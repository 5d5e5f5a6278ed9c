package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	agefile "filippo.io/age"

	"portcullis/cmd/internal/backupfile"
	"portcullis/cmd/internal/input"
)

// MaxKeyFile bounds a file of recipients or identities.
const MaxKeyFile = 64 << 10

// ReadFile reads a file of at most limit bytes, or standard input for "-".
func (env *Env) ReadFile(name string, limit int64) ([]byte, error) {
	if name == "-" {
		return input.Read(env.In, "standard input", limit)
	}
	return input.ReadFile(name, limit)
}

// ReadBounded reads a file, or standard input for "-".
func ReadBounded(stdin io.Reader, file string, most int) ([]byte, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := input.Read(in, file, int64(most))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ToFile runs write for a file, or standard output for "". A file is there as a
// whole or not at all.
func (env *Env) ToFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return write(env.Out)
	}
	f, err := os.CreateTemp(DirOf(name), ".portcullis-")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	err = write(f)
	if e := f.Close(); err == nil && e != nil {
		err = fmt.Errorf("write %s: %w", name, e)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// DirOf returns the directory of a file, with its separator.
func DirOf(name string) string {
	if i := strings.LastIndexByte(name, os.PathSeparator); i >= 0 {
		return name[:i+1]
	}
	return "."
}

// Identities reads a file of age identities.
func (env *Env) Identities(name string) ([]agefile.Identity, error) {
	text, err := env.ReadFile(name, MaxKeyFile)
	if err != nil {
		return nil, err
	}
	ids, err := backupfile.Identities(name, text)
	if err != nil {
		return nil, Hint(err, backupfile.IdentityHint)
	}
	return ids, nil
}
