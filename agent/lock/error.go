package lock

import (
	"errors"
	"fmt"

	"portcullis/agent/hca/register"
)

// Code says why an adapter could not be locked, or proven locked. Codes do not
// change from release to release.
type Code string

// Codes.
const (
	CodeUnreadable   Code = "lock.unreadable"    // a register that is needed does not answer
	CodeForeign      Code = "lock.foreign"       // locked with a key that is none of ours
	CodeOutOfBand    Code = "lock.out-of-band"   // locked by a management controller
	CodeRefused      Code = "lock.refused"       // the adapter refused a setting or file
	CodeNotCompliant Code = "lock.not-compliant" // settings are not as the profile wants, after all was done
	CodeReset        Code = "lock.reset"         // the firmware could not be reset, or does not come back
	CodeFirewall     Code = "lock.firewall"      // the host can still send subnet management packets, or this is unknown
	CodeNotHeld      Code = "lock.not-held"      // a write went well that the lock must refuse
	CodeNotOurs      Code = "lock.not-ours"      // the lock does not open with the key it was locked with
	CodeChallenge    Code = "lock.challenge"     // the adapter draws no challenge of its own, or its challenge does not end
	CodeOrder        Code = "lock.order"         // the service's order does not fit this adapter
)

// Error names adapter, step, cause and remedy.
type Error struct {
	Code Code
	Err  error
	Hint string // what to do; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an error of this package, and CodeUnreadable for others: a step that failed for an unknown
// reason was not done.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeUnreadable
}

// RefusedFile is why an adapter refused a signed file.
type RefusedFile struct{ Why register.MCCError }

func (e RefusedFile) Error() string { return e.Why.String() }

// MayTakeLess reports whether a file may have been refused because of its binding, so that a file with a weaker binding may
// be taken. A refusal because of key or signature is not such a case.
func MayTakeLess(err error) bool {
	e, ok := errors.AsType[RefusedFile](err)
	return ok && (e.Why == register.RejectedNotApplicable || e.Why == register.RejectedBadFormat || e.Why == register.MCCFailed)
}

func fail(c Code, hint, format string, args ...any) *Error {
	return &Error{Code: c, Err: fmt.Errorf(format, args...), Hint: hint}
}
