package pacing

import (
	"time"

	"portcullis/fabricsm/sm/work"
)

// Data that no other work waits for is requested in the background, at a paced rate, once the fabric is settled. These are
// names of nodes, and those blocks of P_Key tables that are most likely empty. Background work does not make the fabric
// unsettled, unless it finds something that has to be written.

const (
	// tick and batch pace it: 4,000 requests a second.
	tick  = 10 * time.Millisecond
	batch = 40
	// patience is how long a fabric that does not settle puts it off.
	patience = 10 * time.Second
	// lastAnswers is how long the last answers are waited for.
	lastAnswers = time.Second
)

// Idle is what Background asks of the core.
type Idle interface {
	// Now returns the time of the step.
	Now() time.Time
	// IsSettled reports whether there was no work since the fabric was last settled.
	IsSettled() bool
	// After has an alarm raised after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// Begin begins a piece of work. Its node or port may be gone.
	Begin(work.Ref)
	// Done takes that all of it was done.
	Done()
}

// Background is the work that no other work waits for. Use NewBackground.
type Background struct {
	idle  Idle
	queue *work.Queue
	wire  *work.Window
	ring  work.Ring
	armed bool      // work.Background runs
	since time.Time // of the oldest that was put off
	ended time.Time // when the last of it was asked for
}

// NewBackground returns a Background without work.
func NewBackground(i Idle, q *work.Queue, w *work.Window) Background {
	return Background{idle: i, queue: q, wire: w}
}

// Len returns how much work waits.
func (b *Background) Len() int { return b.ring.Len() }

// IsArmed reports whether there is work, or its answers are waited for.
func (b *Background) IsArmed() bool { return b.armed }

// Add puts work off.
func (b *Background) Add(x work.Ref) {
	b.ring.Push(x)
	b.ended = time.Time{}
	if !b.armed {
		b.armed, b.since = true, b.idle.Now()
		b.again()
	}
}

func (b *Background) again() { b.idle.After(tick, work.Background, work.Ref{}) }

// Due begins a batch, and has itself called again.
func (b *Background) Due() {
	if b.queue.IsEmpty() && (b.idle.IsSettled() || b.idle.Now().Sub(b.since) > patience) {
		for range batch {
			x, ok := b.ring.Pop()
			if !ok {
				b.end()
				return
			}
			b.idle.Begin(x)
		}
	}
	b.again()
}

// end waits for the last answers, then takes that all was done.
func (b *Background) end() {
	now := b.idle.Now()
	if b.ended.IsZero() {
		b.ended = now
	}
	if b.wire.Out() > 0 && now.Sub(b.ended) < lastAnswers || now.Equal(b.ended) {
		b.again()
		return
	}
	b.armed, b.ring, b.ended = false, work.Ring{}, time.Time{}
	b.idle.Done()
}
