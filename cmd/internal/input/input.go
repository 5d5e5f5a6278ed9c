// Package input reads the files that users name, within bounds.
package input

import (
	"fmt"
	"io"
	"os"
)

// Small bounds, in bytes, files that people write by hand or programs make by the dozen lines: configurations, tokens,
// certificates, keys.
const Small = 1 << 20

// Large bounds, in bytes, files that describe a whole fabric.
const Large = 64 << 20

// ReadFile reads a file of at most most bytes, which need not be a regular one:
// a pipe such as bash's <(...) is read, too. No file takes more memory than that.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, name, most)
}

// Read reads what is left of r, at most most bytes; name is for errors.
func Read(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, nil
}
