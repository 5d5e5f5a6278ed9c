// Package tracecontext reads and writes traceparent, the header by which a request names the trace that it is part of (W3C Trace
// Context, Recommendation of 23 November 2021, section 3.2).
//
// Any caller can send any traceparent. It proves nothing, and no decision reads it: what an operator sends becomes the parent of
// the spans that follow from the request, and what a host sends becomes a link at most. tracestate is not read.
package tracecontext

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// Header is the name of the header.
const Header = "Traceparent"

const (
	// length of a traceparent of version 00, and of what later versions begin with
	length = 2 + 1 + 32 + 1 + 16 + 1 + 2
	// maxLength bounds a traceparent of a later version, in bytes.
	maxLength = 256

	flagSampled = 1
)

// Parent names a span of a trace. Its zero value names none.
type Parent struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool // the sender records the trace
}

// IsZero reports whether the Parent names no span.
func (p Parent) IsZero() bool { return p == Parent{} }

// Parse reads a traceparent. Version 00 has exactly four fields; of a later one the first four are read. Letters are lower-case.
func Parse(text string) (Parent, error) {
	switch {
	case len(text) < length || len(text) > maxLength:
		return Parent{}, fmt.Errorf("traceparent of %d bytes: want %d", len(text), length)
	case text[2] != '-' || text[35] != '-' || text[52] != '-':
		return Parent{}, fmt.Errorf("traceparent: want VERSION-TRACE-SPAN-FLAGS")
	case len(text) > length && (text[:2] == "00" || text[length] != '-'):
		return Parent{}, fmt.Errorf("traceparent of version %.2s and %d bytes: want %d", text, len(text), length)
	}
	var version, flags [1]byte
	var p Parent
	for _, field := range []struct {
		name string
		to   []byte
		from string
	}{
		{"version", version[:], text[:2]}, {"trace", p.Trace[:], text[3:35]}, {"span", p.Span[:], text[36:52]}, {"flags", flags[:], text[53:55]},
	} {
		if _, err := hex.Decode(field.to, []byte(field.from)); err != nil || strings.ToLower(field.from) != field.from {
			return Parent{}, fmt.Errorf("traceparent: %s: want %d lower-case hexadecimal digits", field.name, len(field.from))
		}
	}
	switch {
	case version[0] == 0xff:
		return Parent{}, fmt.Errorf("traceparent: version ff is none")
	case p.Trace == [16]byte{} || p.Span == [8]byte{}:
		return Parent{}, fmt.Errorf("traceparent: trace and span of zeros name none")
	}
	p.Sampled = flags[0]&flagSampled != 0
	return p, nil
}

// String returns the traceparent in version 00; "" for none.
func (p Parent) String() string {
	if p.IsZero() {
		return ""
	}
	flags := 0
	if p.Sampled {
		flags = flagSampled
	}
	return fmt.Sprintf("00-%x-%x-%02x", p.Trace, p.Span, flags)
}

// MarshalText implements encoding.TextMarshaler.
func (p Parent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It takes "" for none.
func (p *Parent) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*p = Parent{}
		return nil
	}
	*p, err = Parse(string(text))
	return err
}

type key struct{}

// With returns a context whose work is part of the trace of p.
func With(ctx context.Context, p Parent) context.Context { return context.WithValue(ctx, key{}, p) }

// Of returns the Parent that the sender of a request named; zero: none.
func Of(ctx context.Context) Parent {
	p, _ := ctx.Value(key{}).(Parent)
	return p
}

// Middleware has handlers find the traceparent of requests by Of. One that is malformed, or sent twice, counts as none: the
// request is answered as without it.
func Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := r.Header.Values(Header); len(sent) == 1 {
			if p, err := Parse(sent[0]); err == nil {
				r = r.WithContext(With(r.Context(), p))
			}
		}
		next.ServeHTTP(w, r)
	})
}
