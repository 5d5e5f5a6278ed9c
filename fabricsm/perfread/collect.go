package perfread

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/inbox"
)

// Defaults of [Options].
const (
	DefaultEvery   = 30 * time.Second
	DefaultRate    = 5000
	DefaultWindow  = 256
	DefaultTimeout = 500 * time.Millisecond
)

// Options say how counters are read. The zero value of a field means the default.
type Options struct {
	Every time.Duration // from one reading of a port to the next
	// Rate is how many requests are sent in a second, at most. Each takes a packet of 256 bytes on every link of its way, and
	// its answer one on the way back: 5,000 are about 12 Mbit/s, each way, on the link of the sender.
	Rate    int
	Window  int           // devices that are asked at once
	Timeout time.Duration // for which a request waits for its answer
}

func (o *Options) complete() {
	setDefault(&o.Every, DefaultEvery)
	setDefault(&o.Rate, DefaultRate)
	setDefault(&o.Window, DefaultWindow)
	setDefault(&o.Timeout, DefaultTimeout)
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// Collector reads the counters of a fabric. It is safe for concurrent use.
type Collector struct {
	mu      sync.Mutex
	manager *perfmgr.Manager
	changed chan struct{} // has a token when a pass may be due earlier
}

// New returns a Collector that knows no fabric.
func New(o Options) (*Collector, error) {
	o.complete()
	m, err := perfmgr.New(perfmgr.Options{Interval: o.Every, Rate: o.Rate, Window: o.Window, Timeout: o.Timeout, Draw: draw})
	if err != nil {
		return nil, err
	}
	return &Collector{manager: m, changed: make(chan struct{}, 1)}, nil
}

// draw returns random bits.
func draw() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.NativeEndian.Uint32(b[:])
}

// See takes the fabric as it is now; nil: there is none, and nothing is read.
func (c *Collector) See(f *topo.Fabric) {
	var all []perfmgr.Agent
	if f != nil {
		all = Agents(f)
	}
	c.mu.Lock()
	c.manager.SetAgents(time.Now(), all)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Append appends the totals of all ports that were read lately.
func (c *Collector) Append(to []perfmgr.Reading) []perfmgr.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manager.Append(time.Now(), to)
}

// Rates appends the rates of ports of switches, in the order of the ports.
func (c *Collector) Rates(of []ib.Place, to []perfmgr.Rate) []perfmgr.Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manager.Rates(time.Now(), of, to)
}

// Stats returns how the reading goes.
func (c *Collector) Stats() perfmgr.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manager.Stats()
}

const (
	// batch is how many packets are sent at a time.
	batch = 64
	// buffers is how many batches of arrivals wait at most; others are lost, as on the wire.
	buffers = 16
	// tick is the shortest pause if nothing arrives: so requests are sent a few at a time, and not each by itself.
	tick = 5 * time.Millisecond
)

// Run reads counters over a port, which it closes, until ctx ends or the port fails. It returns nil if ctx ends. One Run may go
// on at a time.
func (c *Collector) Run(ctx context.Context, port transport.Port) error {
	in := inbox.Open(port, buffers)
	err := c.carry(ctx, port, in)
	err = errors.Join(err, port.Close())
	in.Drain()
	if err != nil {
		return fmt.Errorf("read counters of ports: %w", err)
	}
	return nil
}

func (c *Collector) carry(ctx context.Context, port transport.Port, in *inbox.Inbox) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	out := make([]transport.Packet, batch)
	for {
		n, wake := c.next(out)
		if n > 0 {
			if _, err := port.Send(out[:n]); err != nil {
				return err
			}
		}
		pause := max(tick, time.Until(wake))
		if n == batch {
			pause = 0
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case packets, ok := <-in.Batches():
			if !ok {
				return in.Err()
			}
			c.take(packets)
			in.Release(packets)
		case <-c.changed:
		case <-timer.C:
		}
	}
}

// next fills in the requests that are due. It returns how many there are, and when it is to be called again.
func (c *Collector) next(out []transport.Packet) (n int, wake time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manager.Expire(now)
	for n < len(out) {
		p := &out[n]
		p.QP = gmpQP
		var ok bool
		if p.LID, ok = c.manager.Next(now, &p.MAD); !ok {
			break
		}
		n++
	}
	return n, c.manager.Wake()
}

// gmpQP is the queue pair of general management.
const gmpQP = 1

// take hands over what arrived.
func (c *Collector) take(packets []transport.Packet) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range packets {
		p := &packets[i]
		switch {
		case p.Undelivered:
			c.manager.Undelivered(now, p.MAD.TID())
		case p.QP == gmpQP && p.MAD.IsResponse(): // what others ask is not for us
			c.manager.Answer(now, p.LID, &p.MAD)
		}
	}
}
