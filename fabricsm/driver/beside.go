package driver

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// machine is a state machine beside the core.
type machine interface {
	// owns reports whether a packet is for it. It is called by the receiver, too.
	owns(p *transport.Packet) bool
	// received steps in a packet that answers no request.
	received(p *transport.Packet)
	// replied steps in the outcome of a request.
	replied(*sm.Reply)
	// woken steps in that the time has come to which it asked to be woken.
	woken()
	// shown steps in a view of the core.
	shown(v *sm.View)
}

// beside runs a machine over the port of the core. Its requests are GMPs of classes that nothing else uses here, and have
// transactions of their own; those of the core are SMPs. So none takes the answers of another.
type beside struct {
	machine
	out   timeouts
	wake  time.Time
	reply sm.Reply // here, since a local one would be allocated for each
}

// gmpQP is the queue pair of general management.
const gmpQP = 1

func newBeside(m machine, timeout time.Duration) *beside {
	b := &beside{machine: m}
	b.out.init(timeout)
	return b
}

// owner returns the machine that a packet is for, nil where it is for the core.
func (l *loop) owner(p *transport.Packet) *beside {
	if p.MAD.IsSMP() {
		return nil
	}
	for _, b := range l.besides {
		if b.owns(p) {
			return b
		}
	}
	return nil
}

// take steps in a packet.
func (b *beside) take(p *transport.Packet) {
	if !p.Undelivered && p.MAD.Method() != mad.MethodGetResp {
		b.received(p)
		return
	}
	if id, v := b.out.end(p); v == taken {
		b.reply = sm.Reply{ID: id, Outcome: sm.Answered, MAD: p.MAD}
		if p.Undelivered {
			b.reply.Outcome = sm.Undelivered
		}
		b.replied(&b.reply)
	}
}

// expire steps in requests that were not answered in time, and the wake.
func (b *beside) expire(now time.Time) {
	for {
		id, ok := b.out.expired(now)
		if !ok {
			break
		}
		b.reply.ID, b.reply.Outcome = id, sm.TimedOut
		b.replied(&b.reply)
	}
	if !b.wake.IsZero() && !now.Before(b.wake) {
		b.woken()
	}
}

// next returns the earlier of at and the time at which the next work is due.
func (b *beside) next(at time.Time) time.Time {
	if due, ok := b.out.next(); ok && due.Before(at) {
		at = due
	}
	if !b.wake.IsZero() && b.wake.Before(at) {
		at = b.wake
	}
	return at
}

// request has requests of a machine sent.
func (l *loop) request(b *beside, requests []sm.Request) {
	for i := range requests {
		r := &requests[i]
		l.send = append(l.send, transport.Packet{MAD: r.MAD, LID: r.LID, QP: gmpQP})
		b.out.begin(r, &l.send[len(l.send)-1].MAD)
	}
}

// waits returns how many requests are out.
func (l *loop) waits() int {
	n := l.out.waits()
	for _, b := range l.besides {
		n += b.out.waits()
	}
	return n
}
