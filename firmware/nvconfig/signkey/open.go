package signkey

import (
	"crypto"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Options are where Open finds what a reference leaves out.
type Options struct {
	// Tool is OpenSC's pkcs11-tool; empty: the one in the path.
	Tool string
	// Timeout bounds each run of the tool; 0: 30 seconds.
	Timeout time.Duration
}

// maxPEM bounds the file of a key in bytes.
const maxPEM = 64 << 10

// Open returns the key that a reference names: the path of a PEM file, or a PKCS#11 URI (see ParseURI).
func Open(ref string, o Options) (crypto.Signer, error) {
	if strings.HasPrefix(ref, uriScheme) {
		u, err := ParseURI(ref)
		if err != nil {
			return nil, err
		}
		return OpenToken(u, o)
	}
	data, err := readSecret(ref, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	defer clear(data)
	k, err := ParsePEM(data)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", ref, err)
	}
	return k, nil
}

// readSecret reads a file that only its owner may read, and a group.
func readSecret(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o037 != 0 {
		return nil, fmt.Errorf("%s has mode %#o, and others can read it: chmod 600 it", name, mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return data, nil
}
