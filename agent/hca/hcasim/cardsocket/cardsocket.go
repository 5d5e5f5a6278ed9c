// Package cardsocket serves a simulated adapter on a socket, where the agent
// finds it in the place of a device node of fwctl.
package cardsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
)

// Listen creates the socket at path. It first removes an existing socket that has no listener any more.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && left(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("serve adapter: %w", err)
		}
		l, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, fmt.Errorf("serve adapter: %w", err)
	}
	return l, nil
}

// left reports whether path is a socket without a listener.
func left(ctx context.Context, path string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Serve answers every client that connects, until ctx ends; then it closes l. Connections do not wait for each other; the
// card does one command at a time. A command that makes the card lose power ends its connection.
func Serve(ctx context.Context, l net.Listener, c *hcasim.Card) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			clients.Go(func() { serve(serving, conn, c) })
		case ctx.Err() != nil: // serving may end later than l is closed
			return nil
		default:
			return fmt.Errorf("serve adapter at %v: %w", l.Addr(), err)
		}
	}
}

// serve answers one client until it goes, or sends what is no command.
func serve(ctx context.Context, conn net.Conn, c *hcasim.Card) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		r, err := register.ReadRPC(conn)
		if err != nil {
			return
		}
		reply, err := c.RPC(r)
		switch {
		case errors.Is(err, hcasim.ErrSilent):
			<-ctx.Done()
			return
		case err != nil:
			return
		}
		if _, err := reply.WriteTo(conn); err != nil {
			return
		}
	}
}
