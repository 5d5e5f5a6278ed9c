package main

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"

	v1 "portcullis/api/v1"
)

// Exit codes.
const (
	exitOK           = 0
	exitError        = 1
	exitUsage        = 2
	exitRefused      = 3 // a guard of the service, or the policy for firmware, said no
	exitNotConverged = 4 // --wait ran out of time

	// Verdicts of "firmware verify"; firmware that the policy refuses is exitRefused.
	exitInvalid       = 5
	exitNotSigned     = 6
	exitNotVerifiable = 7
)

// usageError is a command line that makes no sense.
type usageError struct{ msg, hint string }

func (e *usageError) Error() string { return e.msg }

// errNo is the answer no to a question that was answered on standard output.
var errNo = errors.New("no")

// errGuard is the answer no of a guard, which was reported on standard output.
var errGuard = errors.New("refused by a guard")

// troubled is a comparison that could not be made.
type troubled struct{ err error }

func (e *troubled) Error() string { return e.err.Error() }
func (e *troubled) Unwrap() error { return e.err }

// notConverged is a wait that ran out of time.
type notConverged struct{ msg, hint string }

func (e *notConverged) Error() string { return e.msg }

func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*troubled](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*notConverged](err); ok {
		return exitNotConverged
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok && refusedByGuard(p) {
		return exitRefused
	}
	return exitError
}

// refusedByGuard reports an answer that means: understood, and no.
func refusedByGuard(p *v1.Problem) bool {
	return p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed || p.Status == http.StatusForbidden && p.Code != v1.CodeForbidden
}

// mistakes returns each mistake that a problem document lists.
func mistakes(err error) []string {
	p, ok := errors.AsType[*v1.Problem](err)
	if !ok {
		return nil
	}
	var lines []string
	for _, e := range p.Errors {
		if e.Location != "" {
			e.Message = e.Location + ": " + e.Message
		}
		lines = append(lines, e.Message)
	}
	return lines
}

// hintOf returns the second line for people: how to handle err.
func (a *app) hintOf(err error) string {
	if e, ok := errors.AsType[*usageError](err); ok {
		return e.hint
	}
	if e, ok := errors.AsType[*notConverged](err); ok {
		return e.hint
	}
	if e, ok := errors.AsType[*hinted](err); ok {
		return e.hint
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return problemHint(p)
	}
	return a.connectionHint(err)
}

func problemHint(p *v1.Problem) string {
	if p.Status == http.StatusUnauthorized {
		return "name a file with a known token: --token-file FILE"
	}
	if p.Status >= http.StatusInternalServerError && p.ID != "" {
		return strings.TrimSuffix(p.Hint, ".") + " (request_id " + p.ID + ")"
	}
	return p.Hint
}

func (a *app) connectionHint(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		expired  x509.CertificateInvalidError
	)
	switch {
	case a.conn.socket != "" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)):
		return "no subnet manager has this socket: portcullisd sm --socket, or fabric.watch.socket of a service, creates it"
	case errors.As(err, &unknown):
		return "the service's certificate is not from the CA you trust; name the right one: --ca FILE"
	case errors.As(err, &hostname):
		return "the service's certificate is for another name; use that name in --service"
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return "check this machine's clock; if it is right, the service needs a new certificate"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is portcullisd running at " + a.conn.service + "?"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return "the service did not answer in time: is it reachable at " + a.conn.service + "?"
	case errors.Is(err, fs.ErrPermission):
		return "the file belongs to another user; ask for read access, or name another file"
	default:
		return ""
	}
}

// hinted is an error that knows what to do about it.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

func hint(err error, text string) error { return &hinted{err, text} }
