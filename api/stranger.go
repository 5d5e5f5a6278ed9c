package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/strictjson"
	v1 "portcullis/api/v1"
)

// Bounds on memory and CPUs for requests that need no credential (accessHost), over all
// sources together: the process that answers them is the Subnet Manager, too.
const (
	unprovenBytes  = 4 << 20          // of bodies in memory at once that open a session
	awaitedBytes   = 8 << 20          // of bodies that a session or a ticket waits for
	unprovenShare  = 2 << 20          // of each, of one source at most
	unprovenPart   = 4                // a source has at most a quarter of what is free
	unprovenValues = 256              // of a body that opens a session: the largest has some 30
	unprovenRead   = 10 * time.Second // for one body to arrive
	unprovenWait   = 3 * time.Second  // for one of the slots
)

// unproven bounds the memory and CPUs that requests without a credential use at once.
type unproven struct {
	bytes   allowance // of bodies that nothing waits for
	awaited allowance // of the others: a source that knows no session and no ticket takes nothing of it
	slots   *turns    // of handshakes, and of requests that nothing waits for, while they are parsed and judged: half of the CPUs, at least 1
}

func newUnproven() *unproven {
	return &unproven{
		bytes:   allowance{free: unprovenBytes, share: unprovenShare},
		awaited: allowance{free: awaitedBytes, share: unprovenShare},
		slots:   newTurns(max(1, runtime.GOMAXPROCS(0)/2)),
	}
}

// enter takes a slot for a source, and reports whether there was one in time. leave returns it.
func (u *unproven) enter(ctx context.Context, source netip.Addr) (leave func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, unprovenWait)
	defer cancel()
	return u.slots.enter(ctx, source, maxWaitingOne)
}

// allowance is a number of bytes that sources share. No source has more than its share, nor more than a part of what
// nothing holds: however many sources take what they can, a further one finds some.
type allowance struct {
	mu    sync.Mutex
	free  int64
	share int64
	held  map[netip.Addr]int64
}

// take takes n bytes for source, and reports whether there were as many.
func (a *allowance) take(source netip.Addr, n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[source]+n > min(a.share, a.free/unprovenPart) {
		return false
	}
	if a.held == nil {
		a.held = map[netip.Addr]int64{}
	}
	a.free -= n
	a.held[source] += n
	return true
}

// release returns n bytes that source took.
func (a *allowance) release(source netip.Addr, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += n
	if a.held[source] -= n; a.held[source] <= 0 {
		delete(a.held, source)
	}
}

// bounded is a middleware of operations that need no credential. It rejects a request that
// names an unknown session or ticket before its body is read, and reads the body within the
// bounds. A request that names none (it opens a session) is parsed and judged when a slot is
// free. The others need none: each session and each ticket is used once.
func (s *Server) bounded(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		if op.expects != nil {
			if err := op.expects(s, r); err != nil {
				p, fault := hostProblemOf(err)
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
		source, n, bytesOf := sourceOf(r.RemoteAddr), op.maxBody, &s.unproven.awaited
		if op.expects == nil {
			bytesOf = &s.unproven.bytes
		}
		if r.ContentLength > 0 {
			n = r.ContentLength
		}
		if !bytesOf.take(source, n) {
			s.busy(w, r, "bodies")
			return
		}
		defer bytesOf.release(source, n)
		body, refused := readBody(r, op.maxBody, unprovenRead)
		if refused != nil {
			writeProblem(w, r, refused)
			return
		}
		if op.expects == nil {
			leave, ok := s.unproven.enter(r.Context(), source)
			if !ok {
				s.busy(w, r, "work")
				return
			}
			defer leave()
			if err := strictjson.Check(body, unprovenValues); errors.Is(err, strictjson.ErrTooMany) {
				writeProblem(w, r, newProblem(http.StatusBadRequest, v1.CodeBadRequest, "the request body has "+err.Error(), hintOf(http.StatusBadRequest)))
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next(ctx)
	}
}

// busy answers that others are served first.
func (s *Server) busy(w http.ResponseWriter, r *http.Request, kind string) {
	s.metrics.refused(kind)
	w.Header().Set("Retry-After", "2")
	unread(w, r, newProblem(http.StatusServiceUnavailable, v1.CodeUnavailable,
		"too many requests without a credential are under way", "try again"))
}

// unread refuses a request whose body was not read. HTTP/1 would wait for the rest of it
// before it answers, to keep the connection, so that is closed.
func unread(w http.ResponseWriter, r *http.Request, p *problem) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	writeProblem(w, r, p)
}

// readBody reads the body of a request, of most bytes, that arrives within a time.
func readBody(r *http.Request, most int64, within time.Duration) ([]byte, *problem) {
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
		return nil, newProblem(http.StatusRequestTimeout, v1.CodeTimeout, "the request body did not arrive in time", hintOf(http.StatusRequestTimeout))
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

func tooLarge(most int64) *problem {
	return newProblem(http.StatusRequestEntityTooLarge, v1.CodeTooLarge,
		"request body is too large limit="+strconv.FormatInt(most, 10)+" bytes", hintOf(http.StatusRequestEntityTooLarge))
}

// brokenBody refuses a body that ends early, or whose chunks are malformed.
func brokenBody() *problem {
	return newProblem(http.StatusBadRequest, v1.CodeBadRequest, "the request body is broken off or malformed", hintOf(http.StatusBadRequest))
}
