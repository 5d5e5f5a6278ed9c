package driver

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Fence says whether this process may change the fabric, where several share one: a lease,
// for example, that it holds. A run of a core is bound to one lease: all that it decides is
// decided under that.
type Fence interface {
	// Left returns for how long the lease surely holds from now on, 0 when it may have
	// ended. It is called right before each send, also while others call it, and must not
	// block.
	Left() time.Duration
}

// fenceEvery is how often a fence that is closed is looked at.
const fenceEvery = 20 * time.Millisecond

// most is how many packets are sent after one look at the fence.
const most = batch

// fence is how the loop stands to Options.Fence.
type fence struct {
	closed bool
	look   time.Time // when to look again at the latest
}

// regain passes to the core that the lease holds again. The decisions that follow are saved and sent as usual.
func (l *loop) regain() {
	if l.fence.closed && l.left() > 0 {
		l.fence.closed = false
		l.log.Info("the lease holds again")
		l.step(&sm.Mandate{Held: true})
	}
}

// left returns for how long the lease surely holds, and sets when to look again.
func (l *loop) left() time.Duration {
	left := l.o.Fence.Left()
	wait := left
	if left <= 0 {
		wait = fenceEvery
	}
	l.fence.look = time.Now().Add(wait)
	return left
}

// guard checks, right before packets are sent, whether the lease holds. Where it may have ended no packet that was decided
// under it is sent, also no Get and no answer: an answer may say that this subnet manager is master. All requests are sent
// again later. From then on packets that write are dropped, whatever decided them. sent is how many of l.send went out
// before; guard returns how many of the packets left in it did.
func (l *loop) guard(sent int) int {
	if l.o.Fence == nil {
		return sent
	}
	if !l.fence.closed {
		if l.left() > 0 {
			return sent
		}
		l.fence.closed = true
		l.log.Warn("the lease may have run out: nothing is written until it holds again", "dropped", len(l.send)-sent)
		l.send, sent = l.send[:0], 0
		l.answers.clear()
		l.stamp(l.now)
		l.step(&sm.Mandate{})
	}
	kept := l.send[:sent]
	for i := sent; i < len(l.send); i++ {
		if !writes(&l.send[i]) {
			kept = append(kept, l.send[i])
		}
	}
	l.send = kept
	return sent
}

// writes reports whether a packet changes a device.
func writes(p *transport.Packet) bool { return p.MAD.Method() == mad.MethodSet }

// nextLook returns when the fence is to be looked at, or at if that is earlier.
func (l *loop) nextLook(at time.Time) time.Time {
	if l.o.Fence != nil && l.fence.look.Before(at) {
		return l.fence.look
	}
	return at
}

// barred reports whether nothing may be granted now.
func (a *administration) barred() bool { return a.fence != nil && a.fence.Left() <= 0 }

// awaitLease returns true when the lease holds, and false when the driver ends before.
func (a *administration) awaitLease() bool {
	if !a.barred() {
		return true
	}
	tick := time.NewTicker(fenceEvery)
	defer tick.Stop()
	for a.barred() {
		select {
		case <-tick.C:
		case <-a.ended:
			return false
		}
	}
	return true
}
