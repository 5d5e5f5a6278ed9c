package mst

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/agent/hca/register"
)

// Errors that the tools report, for errors.Is. Statuses of the firmware are those of package register.
var (
	ErrOpen             = errors.New("the adapter cannot be opened")
	ErrLocked           = errors.New("the adapter is locked by a key (secure host)")
	ErrWrongKey         = errors.New("the key is not the one that locks the adapter")
	ErrUnknownParameter = errors.New("the tool does not know the parameter")
	ErrNoParameter      = errors.New("the adapter does not have the parameter")
	ErrAuthentication   = errors.New("the adapter refused the signature")
	ErrNotSigned        = errors.New("the file is not signed")
)

// Error is a run that failed.
type Error struct {
	Tool string
	Exit int    // code; 0: the tool did not end by itself
	Text string // what it printed, clipped
	Err  error  // nil: nothing that is known
}

func (e *Error) Error() string {
	s := e.Tool
	if e.Exit != 0 {
		s += fmt.Sprintf(" ended with code %d", e.Exit)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Text != "" {
		s += fmt.Sprintf(": %q", e.Text)
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// messages are texts of the tools and their meanings. The first match counts, so that "cannot open, since it is locked" is
// locked.
var messages = []struct {
	text string
	err  error
}{
	{"HW access is disabled on the device", ErrLocked},
	{"The given key is incorrect", ErrWrongKey},
	{"Failed to find Param / TLV", ErrUnknownParameter},
	{"The Device doesn't support", ErrNoParameter},
	{"Rejected authentication", ErrAuthentication},
	{"The component is not signed", ErrNotSigned},
	{"Register access bad parameter", register.ErrBadParameter},
	{"Bad Parameter error", register.ErrBadParameter},
	{"Register not supported", register.ErrNotSupported},
	{"Register access is not supported by the device", register.ErrNotSupported},
	{"Register access bad system state", register.ErrNotSupported},
	{"device is busy", register.ErrBusy},
	{"ICMD busy", register.ErrBusy},
	{"interface busy", register.ErrBusy},
	{"Semaphore locked", register.ErrBusy},
	{"ICMD semaphore", register.ErrBusy},
	{"Cannot open Device", ErrOpen},
	{"Failed to open", ErrOpen},
}

// failed makes an error from the output of a tool.
func failed(tool string, exit int, out string) *Error {
	e := &Error{Tool: tool, Exit: exit}
	for _, m := range messages {
		if strings.Contains(out, m.text) {
			e.Err = m.err
			break
		}
	}
	var said []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "-E-") {
			said = append(said, line)
		}
	}
	e.Text = clip(strings.Join(said, "; "))
	return e
}
