package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/history"
)

func refuse(k refusal.Kind, code, hint, format string, args ...any) error {
	return &refusal.Error{Code: code, Status: k, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

func elsewhere() error {
	return refuse(refusal.Unavailable, v1.CodeSMElsewhere, "add the role sm to the process with the role api",
		"the subnet manager runs in another process, and the fabric is seen there")
}

func unsettled() error {
	return refuse(refusal.Unavailable, "fabric_unsettled", "portcullis sm status shows how far it is; then ask again",
		"the subnet manager is not master of the fabric, or still finding out what is there")
}

// unreadable is what is answered while the revisions of the store make no sense.
func unreadable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &refusal.Error{
		Code: "topospec_unreadable", Status: refusal.Unavailable, Err: err,
		Detail: "the revisions cannot be read: " + err.Error(), Hint: "what is in force stays; restore the store from a backup, or run the service that wrote it",
	}
}

// invalid refuses a content, with each of its problems.
func invalid(name string, err error) error {
	var lines []string
	for _, e := range flat(err) {
		if len(lines) == topospec.MaxProblems {
			break
		}
		lines = append(lines, e.Error())
	}
	return &refusal.Error{
		Code: "topospec_invalid", Status: refusal.Invalid, Problems: lines, Err: err,
		Detail: name + " cannot be law, so nothing was kept", Hint: "correct it and hand it in again; portcullis topospec check FILE finds the same",
	}
}

// flat returns the errors that were joined into one.
func flat(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flat(e)...)
		}
		return out
	}
	return []error{err}
}

// explain turns errors of the history and of the store into refusals.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*refusal.Error](err); ours || errors.Is(err, history.ErrMoved) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.Is(err, history.ErrNotFound):
		return &refusal.Error{Code: "revision_unknown", Status: refusal.NotFound, Detail: text, Hint: "portcullis topospec revisions lists them", Err: err}
	case errors.Is(err, history.ErrRefused):
		return &refusal.Error{Code: "topospec_refused", Status: refusal.Conflict, Detail: text, Hint: "portcullis topospec status shows what is in force", Err: err}
	default:
		return refusal.Unconfirmed(err, "portcullis topospec status shows whether it was done; then try again")
	}
}
