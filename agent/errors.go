package agent

import (
	"errors"
	"fmt"
)

// Class says what kind of end a run had; the program's exit code is its
// number.
type Class int

// Classes. Numbers are part of the contract with provisioning systems.
const (
	ClassOther       Class = 1  // anything else, for example a full disk
	ClassUsage       Class = 2  // wrong flags or configuration
	ClassTPM         Class = 3  // no usable TPM
	ClassHCA         Class = 4  // no InfiniBand adapter, or one that cannot be read
	ClassUnreachable Class = 5  // the service could not be reached in time
	ClassRefused     Class = 6  // the service refused the evidence or withdrew the admission
	ClassTimeout     Class = 7  // evidence accepted, not admitted in time
	ClassUntrusted   Class = 8  // another server answers, not the configured service
	ClassLock        Class = 9  // an adapter cannot be locked
	ClassReboot      Class = 10 // nothing more can be attested in this boot
)

// Exit is a class as provisioning systems and people know it.
type Exit struct {
	Code    int    // what the program exits with
	Meaning string // no sentence
	// Person means that trying again does not help before a person did something;
	// the unit is not started again.
	Person bool
}

// Exits lists every exit code. A code keeps its meaning in later versions. Tests compare the text of --help, the manual
// page and the unit with it.
func Exits() []Exit {
	return []Exit{
		{Code: 0, Meaning: "admitted, or done"},
		{Code: int(ClassOther), Meaning: "another error, such as a full disk"},
		{Code: int(ClassUsage), Meaning: "wrong usage or configuration", Person: true},
		{Code: int(ClassTPM), Meaning: "no usable TPM"},
		{Code: int(ClassHCA), Meaning: "no InfiniBand adapter, one that cannot be read, or one below the required level"},
		{Code: int(ClassUnreachable), Meaning: "the service could not be reached in time"},
		{Code: int(ClassRefused), Meaning: "the service refused the evidence, or withdrew the admission", Person: true},
		{Code: int(ClassTimeout), Meaning: "evidence was accepted, but the host was not admitted in time"},
		{Code: int(ClassUntrusted), Meaning: "the server does not prove that it is the service", Person: true},
		{Code: int(ClassLock), Meaning: "an adapter cannot be locked", Person: true},
		{Code: int(ClassReboot), Meaning: "nothing more can be attested in this boot: the host must be rebooted", Person: true},
	}
}

// Error is an end of a run that was not admission.
type Error struct {
	Class Class
	Err   error
	Hint  string // what to do about it; may be empty
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error, and ClassOther for an error of another package.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassOther
}

func fail(c Class, hint string, err error) *Error { return &Error{Class: c, Err: err, Hint: hint} }

func failf(c Class, hint, format string, args ...any) *Error {
	return fail(c, hint, fmt.Errorf(format, args...))
}
