// Package caller carries which request something is done for, and where it came from, from the protocol to the audit log.
package caller

import (
	"context"
	"net/netip"
)

// Request is a request to the API.
type Request struct {
	ID     string // as its answer and the log of the service have it
	Source string // address that it came from, without a port; empty: a socket of the machine
}

type key struct{}

// With returns a context for what a request asks for. A source that is no address is a socket of the machine.
func With(ctx context.Context, id, source string) context.Context {
	if _, err := netip.ParseAddr(source); err != nil {
		source = ""
	}
	return context.WithValue(ctx, key{}, Request{id, source})
}

// Of returns the request that ctx is of, the zero Request without one.
func Of(ctx context.Context) Request {
	r, _ := ctx.Value(key{}).(Request)
	return r
}
