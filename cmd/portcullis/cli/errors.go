package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

// Exit codes.
const (
	ExitOK           = 0
	ExitError        = 1
	ExitUsage        = 2
	ExitRefused      = 3 // a guard of the service, or the policy for firmware, said no
	ExitNotConverged = 4 // --wait ran out of time

	// Verdicts of "firmware verify"; firmware that the policy refuses is ExitRefused.
	ExitInvalid       = 5
	ExitNotSigned     = 6
	ExitNotVerifiable = 7

	// ExitOtherwise is the verdict of "import": the fabric would behave otherwise, and that is not accepted.
	ExitOtherwise = 8
)

// UsageError is a command line that makes no sense.
type UsageError struct{ Msg, Hint string }

// Error implements error.
func (e *UsageError) Error() string { return e.Msg }

// ErrNo is the answer no to a question that was answered on standard output.
var ErrNo = errors.New("no")

// ErrGuard is the answer no of a guard, which was reported on standard output.
var ErrGuard = errors.New("refused by a guard")

// troubled is a comparison that could not be made.
type troubled struct{ err error }

func (e *troubled) Error() string { return e.err.Error() }
func (e *troubled) Unwrap() error { return e.err }

// NotConverged is a wait that ran out of time.
type NotConverged struct{ Msg, Hint string }

// Error implements error.
func (e *NotConverged) Error() string { return e.Msg }

func exitCode(err error) int {
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*troubled](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*NotConverged](err); ok {
		return ExitNotConverged
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok && refusedByGuard(p) {
		return ExitRefused
	}
	return ExitError
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
func (env *Env) hintOf(err error) string {
	if e, ok := errors.AsType[*UsageError](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*NotConverged](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*hinted](err); ok {
		return e.hint
	}
	if hint := env.signInHint(err); hint != "" {
		return hint
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return problemHint(p)
	}
	return env.connectionHint(err)
}

func problemHint(p *v1.Problem) string {
	if p.Status >= http.StatusInternalServerError && p.ID != "" {
		return strings.TrimSuffix(p.Hint, ".") + " (request_id " + p.ID + ")"
	}
	return p.Hint
}

func (env *Env) connectionHint(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		expired  x509.CertificateInvalidError
	)
	switch {
	case env.conn.socket != "" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)):
		return "no subnet manager has this socket: portcullisd sm --socket, or fabric.watch.socket of a service, creates it"
	case errors.As(err, &unknown):
		return "the service's certificate is not from the CA you trust; name the right one: --ca FILE"
	case errors.As(err, &hostname):
		return "the service's certificate is for another name; use that name in --service"
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return "check this machine's clock; if it is right, the service needs a new certificate"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is portcullisd running at " + env.conn.service + "?"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return "the service did not answer in time: is it reachable at " + env.conn.service + "?"
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

// Hint returns err with a second line for people: how to handle it.
func Hint(err error, text string) error { return &hinted{err, text} }

// judged is a verdict that was reported on standard output, as an exit code.
type judged struct{ code int }

func (e *judged) Error() string { return "not valid" }

// ExitWith returns the error of a verdict that was reported on standard output.
func ExitWith(code int) error { return &judged{code} }

// NotCompared returns the error of a comparison that could not be made.
func NotCompared(err error) error { return &troubled{err} }

// Report says an error of a command on standard error, and returns its exit code.
func (env *Env) Report(cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, ErrNo) {
		return ExitError
	}
	if errors.Is(err, ErrGuard) {
		return ExitRefused
	}
	if j, ok := errors.AsType[*judged](err); ok {
		return j.code
	}
	where := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "portcullis"), " ")
	if where != "" {
		where += ": "
	}
	fmt.Fprintf(env.Err, "portcullis: %s%s\n", where, PlainLines(err.Error()))
	for _, line := range mistakes(err) {
		fmt.Fprintf(env.Err, "portcullis:   %s\n", Plain(line))
	}
	if hint := env.hintOf(err); hint != "" {
		fmt.Fprintf(env.Err, "portcullis: hint: %s\n", Plain(hint))
	}
	return exitCode(err)
}
