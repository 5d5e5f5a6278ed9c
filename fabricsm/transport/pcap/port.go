package pcap

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/transport"
)

// Capture returns a port that works like p and writes all packets of both directions to w. It is a Poller if p is one. SA
// also returns a captured lane, or an error that wraps errors.ErrUnsupported if the port has none.
func Capture(p transport.Port, w *Writer) transport.Port {
	c := port{p, w}
	if polled, ok := p.(transport.Poller); ok {
		return &poller{c, lane{polled, w}}
	}
	return &c
}

type port struct {
	transport.Port
	w *Writer
}

var _ transport.Laned = (*port)(nil)

// Send implements transport.Port.
func (c *port) Send(p []transport.Packet) (int, error) {
	at := time.Now()
	n, err := c.Port.Send(p)
	c.w.Sent(at, p[:n])
	return n, err
}

// Receive implements transport.Port.
func (c *port) Receive(p []transport.Packet) (int, error) {
	n, err := c.Port.Receive(p)
	c.w.Received(time.Now(), p[:n])
	return n, err
}

// SA implements transport.Laned.
func (c *port) SA() (transport.SALane, error) {
	laned, ok := c.Port.(transport.Laned)
	if !ok {
		return nil, fmt.Errorf("%T has no lane of subnet administration: %w", c.Port, errors.ErrUnsupported)
	}
	sa, err := laned.SA()
	if err != nil {
		return nil, err
	}
	return &saLane{lane{sa, c.w}, sa}, nil
}

// lane captures the packets of a lane.
type lane struct {
	transport.Lane
	w *Writer
}

// TrySend implements transport.Lane.
func (l *lane) TrySend(p []transport.Packet) (int, error) {
	at := time.Now()
	n, err := l.Lane.TrySend(p)
	l.w.Sent(at, p[:n])
	return n, err
}

// TryReceive implements transport.Lane.
func (l *lane) TryReceive(p []transport.Packet) (int, error) {
	n, err := l.Lane.TryReceive(p)
	if n > 0 {
		l.w.Received(time.Now(), p[:n])
	}
	return n, err
}

// poller is a captured port that can be polled.
type poller struct {
	port
	lane lane
}

var _ transport.Poller = (*poller)(nil)

// TrySend implements transport.Lane.
func (p *poller) TrySend(packets []transport.Packet) (int, error) { return p.lane.TrySend(packets) }

// TryReceive implements transport.Lane.
func (p *poller) TryReceive(packets []transport.Packet) (int, error) {
	return p.lane.TryReceive(packets)
}

// Pause implements transport.Lane.
func (p *poller) Pause(d time.Duration) error { return p.lane.Pause(d) }

// Wait implements transport.Lane.
func (p *poller) Wait() error { return p.lane.Wait() }

type saLane struct {
	lane
	sa transport.SALane
}

// Dropped implements transport.SALane.
func (l *saLane) Dropped() uint64 { return l.sa.Dropped() }
