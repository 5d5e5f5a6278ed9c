package fwctl

import (
	"context"
	"fmt"
	"net"
	"time"

	"portcullis/agent/hca/register"
)

// socket is a connection to a simulated adapter. Once a command failed on it,
// an answer might still come and be taken for that of another: it is of no more
// use.
type socket struct {
	conn   net.Conn
	broken error
}

// Dial connects to a simulated adapter.
func Dial(ctx context.Context, path string) (*Device, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, &Error{Node: path, Op: "connect", Err: reason(err)}
	}
	return newDevice(path, &socket{conn: conn}), nil
}

// rpc sends a command and waits for its answer until ctx ends.
func (s *socket) rpc(ctx context.Context, r register.RPC) (register.Reply, error) {
	if s.broken != nil {
		return register.Reply{}, fmt.Errorf("the connection cannot be used after: %w", s.broken)
	}
	deadline, _ := ctx.Deadline() // none: the zero time, which is none for the connection too
	if err := s.conn.SetDeadline(deadline); err != nil {
		return register.Reply{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply, err := s.exchange(r)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	s.broken = err
	return reply, err
}

func (s *socket) exchange(r register.RPC) (register.Reply, error) {
	if _, err := r.WriteTo(s.conn); err != nil {
		return register.Reply{}, err
	}
	reply, err := register.ReadReply(s.conn)
	if err == nil && len(reply.Out) > r.Room {
		err = fmt.Errorf("the adapter returned %d bytes, the buffer has %d", len(reply.Out), r.Room)
	}
	return reply, err
}

func (s *socket) close() error { return s.conn.Close() }
