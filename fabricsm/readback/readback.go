package readback

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/inbox"
)

// Defaults of [Options].
const (
	DefaultTimeout  = 500 * time.Millisecond
	DefaultRate     = 10_000
	DefaultWindow   = 64
	DefaultAttempts = 3
)

// Options say how a fabric is read. The zero value of Timeout, Rate, and Window and Attempts of the reader means the default.
type Options struct {
	// Reader is what is known of the fabric. Draw must be nil.
	Reader reader.Options

	Timeout time.Duration // for which a request waits for its answer
	// Rate is how many requests are sent in a second, at most. Each takes a packet of 256 bytes on every link of its way, and
	// its answer one on the way back: 10,000 are about 40 Mbit/s.
	Rate int
	// Hurry has the rest read at DefaultRate, if that is more, once it is closed; nil: never.
	Hurry <-chan struct{}
}

// ErrDraw is returned with a transaction id that the caller chose.
var ErrDraw = errors.New("transaction ids are drawn at random: leave Draw unset")

func (o *Options) complete() error {
	if o.Reader.Draw != nil {
		return ErrDraw
	}
	o.Reader.Draw = draw
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.Rate, DefaultRate)
	setDefault(&o.Reader.Window, DefaultWindow)
	setDefault(&o.Reader.Attempts, DefaultAttempts)
	if o.Timeout < 0 || o.Rate < 0 || o.Reader.Window < 0 || o.Reader.Attempts < 0 {
		return errors.New("timeout, rate, window and attempts must not be negative")
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// draw returns a random transaction id.
func draw() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.BigEndian.Uint32(b[:])
}

// Read reads a fabric by a port, which it closes. If ctx ends or the port fails there is no result: a fabric that was read in
// part says nothing.
func Read(ctx context.Context, port transport.Port, o Options) (*reader.Found, error) {
	found, err := read(ctx, port, o)
	if err != nil {
		return nil, fmt.Errorf("read the fabric back: %w", err)
	}
	return found, nil
}

func read(ctx context.Context, port transport.Port, o Options) (*reader.Found, error) {
	if err := o.complete(); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	r, err := reader.New(o.Reader)
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	in := inbox.Open(port, o.Reader.Window+spare)
	c := carrier{port: port, in: in, reader: r, timeout: o.Timeout, every: interval(o.Rate), hurry: o.Hurry, sent: map[ib.TID]bool{}}
	found, err := c.read(ctx)
	err = errors.Join(err, port.Close())
	in.Drain()
	return found, err
}

const (
	// spare is how many arrivals wait beside the answers to a whole window.
	spare = 64
	// burst is how long a pause may be whose requests are sent at once afterwards.
	burst = 10 * time.Millisecond
)

// interval returns the time between two requests.
func interval(rate int) time.Duration { return time.Second / time.Duration(rate) }

// carrier carries the requests of one reader.
type carrier struct {
	port   transport.Port
	in     *inbox.Inbox
	reader *reader.Reader

	timeout time.Duration
	every   time.Duration // between two requests
	free    time.Time     // when the next one may be sent
	hurry   <-chan struct{}

	out  []waiting // in the order in which they expire
	sent map[ib.TID]bool
}

// waiting is a request that is out.
type waiting struct {
	id    ib.TID
	until time.Time
}

func (c *carrier) read(ctx context.Context) (*reader.Found, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !c.reader.Done() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		more, err := c.send()
		if err != nil {
			return nil, err
		}
		timer.Reset(c.pause(more))
		select {
		case <-ctx.Done():
		case <-c.hurry:
			c.hurry, c.every, c.free = nil, min(c.every, interval(DefaultRate)), time.Now()
		case packets, ok := <-c.in.Batches():
			if !ok {
				return nil, c.in.Err()
			}
			c.take(packets)
			c.in.Release(packets)
		case <-timer.C:
		}
		c.expire()
	}
	return c.reader.Found()
}

// send sends what the reader asks, as far as window and rate let it. It reports whether the rate holds more back.
func (c *carrier) send() (more bool, err error) {
	now := time.Now()
	if c.free.Before(now.Add(-burst)) {
		c.free = now.Add(-burst)
	}
	var packets []transport.Packet
	for !c.free.After(now) {
		m, ok := c.reader.Next()
		if !ok {
			break
		}
		c.free = c.free.Add(c.every)
		c.out = append(c.out, waiting{m.TID(), now.Add(c.timeout)})
		c.sent[m.TID()] = true
		packets = append(packets, transport.Packet{MAD: m, LID: ib.PermissiveLID})
	}
	if len(packets) > 0 {
		_, err = c.port.Send(packets)
	}
	return c.free.After(now), err
}

// pause returns how long nothing is to be done until an answer comes.
func (c *carrier) pause(more bool) time.Duration {
	d := c.timeout
	if len(c.out) > 0 {
		d = min(d, time.Until(c.out[0].until))
	}
	if more {
		d = min(d, time.Until(c.free))
	}
	return max(d, 0)
}

// take hands packets to the reader. A request of our own that came back counts as not answered.
func (c *carrier) take(packets []transport.Packet) {
	for i := range packets {
		m := &packets[i].MAD
		switch {
		case packets[i].Undelivered:
			c.reader.Expire(low(m.TID()))
		case m.IsDR() && m.Method() == mad.MethodGetResp:
			c.reader.Answer(m)
		default: // what others ask is not for us
			continue
		}
		delete(c.sent, low(m.TID()))
	}
}

// low returns the half of a transaction id that counts: the kernel has the other.
func low(id ib.TID) ib.TID { return ib.TID(uint32(id)) }

// expire has the reader take note of requests that were not answered in time.
func (c *carrier) expire() {
	now, n := time.Now(), 0
	for n < len(c.out) && (!c.sent[c.out[n].id] || !c.out[n].until.After(now)) {
		if id := c.out[n].id; c.sent[id] {
			delete(c.sent, id)
			c.reader.Expire(id)
		}
		n++
	}
	c.out = c.out[n:]
}
