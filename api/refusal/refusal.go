// Package refusal is the error that the service answers with: what was refused, why, and what to do about it. It knows
// no protocol.
package refusal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/page"
	"portcullis/api/store"
	"portcullis/attest"
)

// Kind says what sort of refusal an Error is, without knowing any protocol.
type Kind uint8

// Kinds of refusal. The zero Kind is Internal, so a forgotten Kind is shown
// as a fault of ours and not as permission.
const (
	Internal    Kind = iota // a fault of the service
	NotFound                // the named object does not exist
	Conflict                // the object's state forbids it now
	Invalid                 // the request makes no sense; Problems may list why
	Refused                 // the caller may not, or evidence was not accepted
	Limited                 // too many requests; try later
	Unavailable             // the store or the fabric cannot answer now; try later
	Changed                 // the object is not as the caller saw it
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case NotFound:
		return "not found"
	case Conflict:
		return "conflict"
	case Invalid:
		return "invalid"
	case Refused:
		return "refused"
	case Limited:
		return "limited"
	case Unavailable:
		return "unavailable"
	case Changed:
		return "changed"
	default:
		return "internal"
	}
}

// Error is a refusal by the service. Code is stable and meant for programs
// ("host_unknown"), Detail names the object and the cause, Hint says what to
// do about it, Problems lists each fault of an input with its place
// ("rack1.yaml:12: ...").
type Error struct {
	Code     string
	Status   Kind
	Detail   string
	Hint     string
	Problems []string
	Err      error // the cause, for errors.Is; may be nil
}

// Error returns the detail and the problems, without the hint.
func (e *Error) Error() string {
	if len(e.Problems) == 0 {
		return e.Detail
	}
	return e.Detail + ":\n" + strings.Join(e.Problems, "\n")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsKind reports whether err is, or wraps, an Error of kind k.
func IsKind(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == k
}

// New returns a refusal of kind k, with a detail as fmt.Sprintf writes it.
func New(k Kind, code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Status: k, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// Explain turns an error of the store into a refusal; ours stay as they are.
func Explain(err error) error {
	var e *Error
	var r *attest.Refusal
	switch {
	case err == nil, errors.As(err, &e), errors.As(err, &r), errors.Is(err, page.ErrCursor):
		return err
	default:
		return Unconfirmed(err, "look at the object before trying again: the change may or may not have been made")
	}
}

// Unconfirmed turns an error of the store into a refusal, with a hint how to find out
// whether the change was made. That of a context that ended stays as it is.
func Unconfirmed(err error, hint string) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrConflict):
		return &Error{Code: "busy", Status: Unavailable, Detail: "too many changes at once", Hint: "try again", Err: err}
	default:
		return &Error{Code: "store_unavailable", Status: Unavailable, Detail: fmt.Sprintf("the store did not confirm: %v", err), Hint: hint, Err: err}
	}
}
