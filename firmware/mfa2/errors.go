package mfa2

import (
	"errors"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

// FormatError is a package that is damaged, was changed, or breaks a limit.
type FormatError struct{ err error }

func (e *FormatError) Error() string { return e.err.Error() }
func (e *FormatError) Unwrap() error { return e.err }

func malformed(format string, args ...any) error {
	return &FormatError{fmt.Errorf(format, args...)}
}

// IsFormat reports whether err is a FormatError, and not one of reading.
func IsFormat(err error) bool {
	_, ok := errors.AsType[*FormatError](err)
	return ok
}

// unpacking names what was unpacked when err came. That the archive ended too
// early, or is none, is a FormatError.
func unpacking(what string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	for _, broken := range []error{
		io.ErrUnexpectedEOF, xz.ErrBuf, xz.ErrData, xz.ErrFormat, xz.ErrMemlimit, xz.ErrOptions, xz.ErrUnsupportedCheck,
	} {
		if errors.Is(err, broken) {
			return malformed("%s: %w", what, err)
		}
	}
	return fmt.Errorf("read %s: %w", what, err)
}
