// Package problem makes the answers to requests that are refused: a problem of RFC 9457 for each error of the services
// below the API, which says to operators what was refused and why, and to hosts nothing of it.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/page"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// MediaType is that of a problem.
const MediaType = "application/problem+json"

// Problem is a v1.Problem on its way through huma.
type Problem struct{ v1.Problem }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return MediaType }

// New returns a problem. code is for programs, detail and hint are for people.
func New(status int, code, detail, hint string) *Problem {
	return &Problem{v1.Problem{
		Type: "about:blank", Title: titleOf(status, code), Status: status,
		Code: code, Detail: detail, Hint: hint,
	}}
}

func titleOf(status int, code string) string {
	if code == v1.CodeEvidenceRefused {
		return "Evidence refused"
	}
	return http.StatusText(status)
}

// EvidenceRefused is the one answer to a host whose attestation was not
// accepted, whatever the reason: an attacker must not learn how near it came.
func EvidenceRefused() *Problem {
	return New(http.StatusForbidden, v1.CodeEvidenceRefused, "the service did not accept this host's attestation",
		"the reason is kept from the host; an operator sees it with: portcullis host show HOST")
}

// Of turns an error of the Backend into what an operator's client may see. An error that is not meant for clients
// becomes "internal"; the second value then is the fault that belongs in the log.
func Of(err error) (*Problem, error) {
	if known, ok := errors.AsType[*Problem](err); ok {
		return known, nil
	}
	if _, ok := errors.AsType[*attest.Refusal](err); ok {
		return EvidenceRefused(), nil
	}
	if e, ok := errors.AsType[*refusal.Error](err); ok && e.Status != refusal.Internal {
		p := New(statusOf(e.Status), e.Code, e.Detail, e.Hint)
		for _, line := range e.Problems {
			p.Errors = append(p.Errors, v1.ProblemError{Message: line})
		}
		return p, nil
	}
	if errors.Is(err, page.ErrCursor) {
		return New(http.StatusUnprocessableEntity, v1.CodeCursor, err.Error(), "begin without after; then take each next as it is, with the same list"), nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return New(http.StatusServiceUnavailable, v1.CodeUnavailable,
			"the request was given up before it was done", "try again"), err
	}
	return Internal(), err
}

// OfHost is Of for callers that are hosts: they learn whether to
// try again later, and nothing else.
func OfHost(err error) (*Problem, error) {
	if known, ok := errors.AsType[*Problem](err); ok {
		return known, nil
	}
	p, fault := Of(err)
	switch p.Status {
	case http.StatusServiceUnavailable:
		return New(p.Status, v1.CodeUnavailable, "the service cannot decide now", "try again"), fault
	case http.StatusTooManyRequests:
		return New(p.Status, v1.CodeRateLimited, "too many attestations", "try again later"), fault
	case http.StatusInternalServerError:
		return p, fault
	default:
		return EvidenceRefused(), fault
	}
}

// Internal is the answer to a request that met a fault of the service.
func Internal() *Problem {
	return New(http.StatusInternalServerError, v1.CodeInternal, "the service met a fault of its own",
		"the service's log says more under this request_id")
}

func statusOf(k refusal.Kind) int {
	switch k {
	case refusal.NotFound:
		return http.StatusNotFound
	case refusal.Conflict:
		return http.StatusConflict
	case refusal.Invalid:
		return http.StatusUnprocessableEntity
	case refusal.Refused:
		return http.StatusForbidden
	case refusal.Limited:
		return http.StatusTooManyRequests
	case refusal.Unavailable:
		return http.StatusServiceUnavailable
	case refusal.Changed:
		return http.StatusPreconditionFailed
	default:
		return http.StatusInternalServerError
	}
}

// maxProblemErrors bounds the list of what is wrong with a request: an answer
// must not grow with what a stranger sends.
const maxProblemErrors = 32

// OfHuma turns huma's own errors, about requests that do not fit the
// document, into ours. Values are left out: a body may hold secrets.
func OfHuma(e *huma.ErrorModel) *Problem {
	p := New(e.Status, codeOf(e.Status), e.Detail, HintOf(e.Status))
	for _, d := range e.Errors[:min(len(e.Errors), maxProblemErrors)] {
		p.Errors = append(p.Errors, v1.ProblemError{Location: d.Location, Message: d.Message})
	}
	return p
}

func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return v1.CodeBadRequest
	case http.StatusNotFound:
		return v1.CodeNotFound
	case http.StatusMethodNotAllowed:
		return v1.CodeMethodNotAllowed
	case http.StatusNotAcceptable:
		return v1.CodeNotAcceptable
	case http.StatusRequestTimeout:
		return v1.CodeTimeout
	case http.StatusRequestEntityTooLarge:
		return v1.CodeTooLarge
	case http.StatusUnsupportedMediaType:
		return v1.CodeMediaType
	case http.StatusUnprocessableEntity:
		return v1.CodeInvalid
	default:
		return v1.CodeInternal
	}
}

// HintOf returns what to do about a request that is answered with a status.
func HintOf(status int) string {
	switch status {
	case http.StatusUnsupportedMediaType:
		return "send the body as Content-Type: application/json"
	case http.StatusRequestTimeout:
		return "send the request faster"
	case http.StatusInternalServerError:
		return Internal().Hint
	default:
		return "the shapes of requests are in /openapi.yaml"
	}
}

// Write answers outside huma: unknown paths, limits, panics. The id of the request is the one that the headers of the
// answer have.
func Write(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	p.ID = h.Get("X-Request-Id")
	h.Set("Content-Type", MediaType)
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="portcullis"`)
	}
	if p.Status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	// An error here means that the client is gone; there is no receiver for it.
	_ = json.NewEncoder(w).Encode(p)
}
