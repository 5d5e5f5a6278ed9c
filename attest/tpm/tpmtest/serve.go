package tpmtest

import (
	"context"
	"net"
	"testing"
)

// ServeInTurn has serve handle what is accepted at l, one connection after another, as
// a software TPM does, until the test ends: then the listener and the connection are
// closed, and the context that serve has is over.
func ServeInTurn(t testing.TB, l net.Listener, serve func(ctx context.Context, c net.Conn)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			unblock := context.AfterFunc(ctx, func() { c.Close() })
			serve(ctx, c)
			unblock()
			c.Close()
		}
	}()
	t.Cleanup(func() { stop(); l.Close(); <-done })
}
