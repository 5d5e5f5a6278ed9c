package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/preauth"
	"portcullis/api/problem"
	"portcullis/api/strictjson"
	v1 "portcullis/api/v1"
)

// Bounds on bodies of requests that need no credential (accessHost).
const (
	unprovenValues = 256              // of a body that opens a session: the largest has some 30
	unprovenRead   = 10 * time.Second // for one body to arrive
)

// bounded is a middleware of operations that need no credential. It rejects a request that
// names an unknown session or ticket before its body is read, and reads the body within the
// bounds. A request that names none (it opens a session) is parsed and judged when a slot is
// free. The others need none: each session and each ticket is used once.
func (s *Server) bounded(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		if op.expects != nil {
			if err := op.expects(s, r); err != nil {
				p, fault := problem.OfHost(err)
				noteFault(r.Context(), fault)
				unread(w, r, p)
				return
			}
		}
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
			next(ctx)
			return
		}
		if r.ContentLength > op.maxBody {
			unread(w, r, tooLarge(op.maxBody))
			return
		}
		source, n := preauth.SourceOf(r.RemoteAddr), op.maxBody
		if r.ContentLength > 0 {
			n = r.ContentLength
		}
		release, ok := s.preauth.TakeBody(source, n, op.expects != nil)
		if !ok {
			busy(s, w, r, "bodies")
			return
		}
		defer release()
		body, refused := readBody(r, op.maxBody, unprovenRead)
		if refused != nil {
			problem.Write(w, refused)
			return
		}
		if op.expects == nil {
			leave, ok := s.preauth.Enter(r.Context(), source)
			if !ok {
				busy(s, w, r, "work")
				return
			}
			defer leave()
			if err := strictjson.Check(body, unprovenValues); errors.Is(err, strictjson.ErrTooMany) {
				problem.Write(w, problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the request body has "+err.Error(), problem.HintOf(http.StatusBadRequest)))
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next(ctx)
	}
}

// busy answers that others are served first.
func busy(s *Server, w http.ResponseWriter, r *http.Request, kind string) {
	s.metrics.refused(kind)
	w.Header().Set("Retry-After", "2")
	unread(w, r, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
		"too many requests without a credential are under way", "try again"))
}

// unread refuses a request whose body was not read. HTTP/1 would wait for the rest of it
// before it answers, to keep the connection, so that is closed.
func unread(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	problem.Write(w, p)
}

// readBody reads the body of a request, of most bytes, that arrives within a time.
func readBody(r *http.Request, most int64, within time.Duration) ([]byte, *problem.Problem) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	if c := noteOf(r.Context()).answer; c != nil {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, brokenBody()
		}
	}
	body, err := readAll(r, most)
	var network net.Error
	switch {
	case int64(len(body)) > most:
		return nil, tooLarge(most)
	case errors.As(err, &network) && network.Timeout():
		return nil, problem.New(http.StatusRequestTimeout, v1.CodeTimeout, "the request body did not arrive in time", problem.HintOf(http.StatusRequestTimeout))
	case err != nil:
		return nil, brokenBody()
	}
	return body, nil
}

// readAll reads at most one byte more than most. A body that says its length has just that much memory.
func readAll(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(io.LimitReader(r.Body, most+1))
	}
	body := make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, body)
	return body[:n], err
}

func tooLarge(most int64) *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, v1.CodeTooLarge,
		"request body is too large limit="+strconv.FormatInt(most, 10)+" bytes", problem.HintOf(http.StatusRequestEntityTooLarge))
}

// brokenBody refuses a body that ends early, or whose chunks are malformed.
func brokenBody() *problem.Problem {
	return problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the request body is broken off or malformed", problem.HintOf(http.StatusBadRequest))
}
