package api

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"portcullis/api/caller"
	"portcullis/api/limit"
	"portcullis/api/preauth"
	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// maxLoggedName bounds what the access log repeats of a path: longer than any
// name, and short enough that a stranger cannot fill a disk with it.
const maxLoggedName = 128

type noteKey struct{}

// note is what is known about one request besides its content, and collects
// what the access log says about it. One goroutine serves a request, so it
// needs no lock.
type note struct {
	id     string
	source string               // address of the caller, without port
	tls    *tls.ConnectionState // of the connection; nil without TLS
	token  string               // name of the known token or client certificate that was shown, "" for none
	actor  string
	fault  error
	reads  bool // it only reads, whatever its method is
	answer *http.ResponseController
	body   *watchedBody // nil: there is none
}

func noteOf(ctx context.Context) *note {
	n, _ := ctx.Value(noteKey{}).(*note)
	if n == nil {
		return &note{}
	}
	return n
}

func requestID(ctx context.Context) string       { return noteOf(ctx).id }
func noteActor(ctx context.Context, name string) { noteOf(ctx).actor = name }
func noteFault(ctx context.Context, err error)   { noteOf(ctx).fault = err }

// extend allows a request and its answer more time than the server has for others.
func extend(ctx context.Context, d time.Duration) error {
	c := noteOf(ctx).answer
	if c == nil {
		return nil
	}
	// Past the read deadline HTTP/1 takes the client for gone.
	for _, set := range []func(time.Time) error{c.SetReadDeadline, c.SetWriteDeadline} {
		if err := set(time.Now().Add(d)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("extend the time of the request: %w", err)
		}
	}
	return nil
}

// observe assigns each request an id, writes the access log and counts. It logs the route and never the query, headers or
// bodies, because they may hold secrets. A panic of a handler becomes a problem here.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		n := &note{id: newRequestID(), source: hostOf(r.RemoteAddr), tls: r.TLS, answer: http.NewResponseController(w)}
		r = r.WithContext(caller.With(context.WithValue(r.Context(), noteKey{}, n), n.id, n.source))
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		setHeaders(ww.Header(), n.id)
		defer func() {
			if v := recover(); v != nil {
				s.recovered(ww, r, v)
			}
			s.countRefusal(r, n, ww.Status())
			s.record(r, n, ww.Status(), ww.BytesWritten(), time.Since(start))
		}()
		next.ServeHTTP(ww, r)
	})
}

// hostOf returns the address without its port, as the audit log needs it.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

func newRequestID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// setHeaders sets what every answer carries. Answers hold the state of hosts and sometimes a token, so no cache may keep
// them.
func setHeaders(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// recovered answers a request whose handler panicked.
func (s *Server) recovered(ww middleware.WrapResponseWriter, r *http.Request, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.log.ErrorContext(r.Context(), "request handler panicked", "request_id", requestID(r.Context()),
		"method", r.Method, "route", routeOf(r), "panic", v, "stack", string(debug.Stack()))
	if ww.Status() == 0 {
		problem.Write(ww, problem.Internal())
	}
}

func (s *Server) record(r *http.Request, n *note, status, bytes int, took time.Duration) {
	route := routeOf(r)
	s.metrics.observe(r.Method, route, status, took)
	attrs := []slog.Attr{
		slog.String("request_id", n.id), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("status", status), slog.Int("bytes", bytes), slog.Duration("took", took),
		slog.String("source", n.source),
	}
	for _, name := range []string{"id", "name"} {
		if v := chi.URLParam(r, name); v != "" && !strings.HasPrefix(route, "/v1/attest/") {
			attrs = append(attrs, slog.String("object", v[:min(len(v), maxLoggedName)]))
		}
	}
	if n.actor != "" {
		attrs = append(attrs, slog.String("actor", n.actor))
	}
	level := slog.LevelInfo
	switch {
	case n.fault != nil:
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", n.fault.Error()))
	case status >= http.StatusBadRequest && n.actor == "" && !s.local && !s.strangers.Allow(preauth.SourceOf(r.RemoteAddr), time.Now()):
		level = slog.LevelDebug // a journal that is flooded drops what others say
	case (r.Method == http.MethodGet || n.reads) && (s.local || status < http.StatusBadRequest):
		level = slog.LevelDebug // reads are polled all day and would drown the log
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// routeOf returns the pattern that matched, so that metrics have a bounded set of labels and session ids stay out of the
// log.
func routeOf(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
		return c.RoutePattern()
	}
	return "unmatched"
}

// limitRequests answers 429 when requests come too often. It runs before anything is parsed or verified. A request with
// a known token or client certificate counts for that alone, so that a controller is not held up by others at its address. All others
// count for their source, and then for all of these together: a wrong token is no token. Attestations always do, since
// no token is needed there.
func (s *Server) limitRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, attests := time.Now(), attestation(r.URL.Path)
		sources := s.requests
		if attests {
			sources = s.attestations
		}
		var kind string
		var over limit.Rate
		var whose string
		who, known := knownOwner(s, r, now)
		switch {
		case known && !attests:
			noteOf(r.Context()).token = who.Name
			if !s.known.Allow(who.Name, now) {
				kind, over, whose = "tokens", s.known.Rate(), "with the "+who.Kind()+" "+who.Name
			}
		case !s.refusals.Has(preauth.SourceOf(r.RemoteAddr), now):
			s.metrics.refused("refusals")
			// No more of them on this connection: each new one is counted before its handshake.
			w.Header().Set("Connection", "close")
			problem.Write(w, problem.New(http.StatusTooManyRequests, v1.CodeRateLimited,
				"too many requests from this address were refused", "find out why they are refused, then try again in a minute"))
			return
		case !sources.Allow(preauth.SourceOf(r.RemoteAddr), now):
			kind, over, whose = "requests", sources.Rate(), "from this address"
		case !s.everybody.Allow(struct{}{}, now):
			kind, over, whose = "strangers", s.everybody.Rate(), "without a known token from all addresses together"
		}
		if kind != "" {
			s.metrics.refused(kind)
			problem.Write(w, problem.New(http.StatusTooManyRequests, v1.CodeRateLimited,
				"more than "+strconv.FormatFloat(over.PerSecond, 'g', -1, 64)+" requests a second "+whose, "wait a second, then try again"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// attestation reports a path whose requests count as attestations: all that hosts send except for questions about where
// they stand.
func attestation(path string) bool {
	return strings.HasPrefix(path, "/v1/attest/") && path != "/v1/attest/status"
}

// bytesOfRefusal is how much of the body of a refused request counts as much as another one.
const bytesOfRefusal = 8 << 10

// countRefusal counts a request without a known token that was refused for what it says. One that came too early is not: many
// honest hosts may share an address. Behind a TLS proxy all share the proxy's, so there it is none either.
func (s *Server) countRefusal(r *http.Request, n *note, status int) {
	fault := status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
	if !fault || s.local || s.channel == ChannelOff || n.token != "" || n.actor != "" {
		return
	}
	cost := 1
	if n.body != nil {
		cost += int(n.body.read / bytesOfRefusal)
	}
	s.refusals.Spend(preauth.SourceOf(r.RemoteAddr), time.Now(), cost)
}

// holder is what bodies under way are counted for: a known token, or a source without one.
type holder struct {
	token  string
	source netip.Addr
}

// limitBodies answers 429 when too many requests of a known token, or of a source without one, have their body on the way:
// a stranger could else fill the memory with bodies that he does not end. It runs before
// anything of them is read.
func (s *Server) limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		by, whose := holder{source: preauth.SourceOf(r.RemoteAddr)}, "of this address"
		if name := noteOf(r.Context()).token; name != "" {
			by, whose = holder{token: name}, "with the token "+name
		}
		if !s.bodies.Enter(by) {
			s.metrics.refused("bodies")
			problem.Write(w, problem.New(http.StatusTooManyRequests, v1.CodeRateLimited,
				"more than "+strconv.Itoa(preauth.MaxOpen)+" requests "+whose+" are under way", "wait a second, then try again"))
			return
		}
		defer s.bodies.Leave(by)
		body := &watchedBody{ReadCloser: r.Body}
		noteOf(r.Context()).body, r.Body = body, body
		next.ServeHTTP(w, r)
	})
}

// watchedBody is a body that counts its bytes, and notes that it could not be read to its end.
type watchedBody struct {
	io.ReadCloser
	read   int64 // bytes
	broken bool
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil && err != io.EOF {
		b.broken = true
	}
	return n, err
}

// brokenBody reports whether the body was broken off or malformed: that is the caller's fault.
func (n *note) brokenBody() bool { return n.body != nil && n.body.broken }
