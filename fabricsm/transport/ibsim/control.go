package ibsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

// control sends a request and reads its reply. A late reply to an earlier
// request that ran into its timeout has another type and is skipped.
func (p *Port) control(ctx context.Context, req control) (control, error) {
	p.ctlMu.Lock()
	defer p.ctlMu.Unlock()
	// The caller's deadline is obeyed through AfterFunc, so that ctx is known to
	// have ended when the socket says so.
	if err := p.ctl.SetDeadline(time.Now().Add(controlTimeout)); err != nil {
		return control{}, p.wrap(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.ctl.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply, err := p.exchange(req)
	switch {
	case err == nil && reply.typ == ctlError && req.typ != ctlConnect:
		return control{}, fmt.Errorf("%v of simulator %q: refused", req.typ, p.socket)
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return control{}, fmt.Errorf("%v of simulator %q: %w", req.typ, p.socket, context.Cause(ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return control{}, fmt.Errorf("%v of simulator %q: no answer in %v: it is stopped, or stuck writing to a client that does not read: %w",
			req.typ, p.socket, controlTimeout, err)
	default:
		return control{}, fmt.Errorf("%v of simulator %q: %w", req.typ, p.socket, p.wrap(err))
	}
}

func (p *Port) exchange(req control) (control, error) {
	if _, err := p.ctl.Write(req.encode()); err != nil {
		return control{}, err
	}
	var b [ctlSize + 1]byte
	for {
		n, err := p.ctl.Read(b[:])
		if err != nil {
			return control{}, err
		}
		reply, ok := decodeControl(b[:n])
		if ok && (reply.typ == req.typ || reply.typ == ctlError) {
			return reply, nil
		}
	}
}

// wrap names the two causes a caller acts on: our own Close, and a simulator
// that went away.
func (p *Port) wrap(err error) error {
	select {
	case <-p.closed:
		return transport.ErrClosed
	default:
	}
	switch {
	case errors.Is(err, net.ErrClosed):
		return transport.ErrClosed
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("simulator on socket %q went away: %w", p.socket, transport.ErrLost)
	default:
		return err
	}
}

// probe asks the simulator for anything, to learn whether it lives. One that
// is only slow is not lost.
func (p *Port) probe() error {
	_, err := p.control(context.Background(), control{client: p.slot, typ: ctlGetPort})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
