// Package tpmwire reads TPM structures from other programs.
//
// go-tpm's Unmarshal ignores trailing bytes, and reads some sizes past the end of its input as zero. Every structure from a
// host goes through Read, which accepts exactly one encoding of exactly one value.
package tpmwire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"
)

// MaxSize is the largest structure Read looks at, in bytes. The largest one
// in use, a P-384 public area or a quote, is below 1 KiB.
const MaxSize = 4 << 10

var (
	errSize      = fmt.Errorf("structure is longer than %d bytes", MaxSize)
	errCanonical = errors.New("bytes are not exactly one canonical structure")
)

// Readable is the constraint of Read: a TPM structure by pointer.
type Readable[T any] interface {
	*T
	tpm2.Unmarshallable
}

// Read decodes b as one T. It fails when b is over MaxSize, when bytes are missing or left over, or when encoding the
// result returns other bytes. It never panics.
func Read[T tpm2.Marshallable, P Readable[T]](b []byte) (v *T, err error) {
	if len(b) > MaxSize {
		return nil, errSize
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("%T: %v", *new(T), r)
		}
	}()
	v, err = tpm2.Unmarshal[T, P](b)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", *new(T), err)
	}
	if !bytes.Equal(tpm2.Marshal(*v), b) {
		return nil, fmt.Errorf("%T: %w", *new(T), errCanonical)
	}
	return v, nil
}
