// Package pacing says which work has to wait although a request could be sent.
//
// A [Budget] bounds how often each port is worked on, a [Throttle] how many answers may be late because of subtrees that
// hang by one cable, and [Background] puts off what nothing waits for until the fabric is settled.
package pacing

import (
	"time"

	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Allowance bounds how often a port is worked on. Without it, a device that never answers twice the same would be asked,
// and written to, without end. Every port has one, so times are kept in milliseconds.
type Allowance struct {
	since uint32 // of the core's life; it wraps after 49 days, which costs an allowance
	pause uint32
	used  [work.NumClasses]uint16
}

// Ports is what a Budget asks of the core.
type Ports interface {
	// Age returns the time since the core began.
	Age() time.Duration
	// Allowance returns the allowance of a port.
	Allowance(topo.PortID) *Allowance
	// KeyBlocks returns how many blocks of the P_Key table of a port are managed.
	KeyBlocks(topo.PortID) int
	// After has an alarm raised after a time.
	After(time.Duration, work.Alarm, work.Ref)
}

// Pauses bound the time for which a port is left alone that has overdrawn its allowance. It doubles.
type Pauses struct{ Min, Max time.Duration }

// Budget spends the allowances of ports. Use NewBudget.
type Budget struct {
	ports  Ports
	topo   *topo.Builder
	queue  *work.Queue
	pauses Pauses
}

// NewBudget returns the budget of a fabric.
func NewBudget(p Ports, t *topo.Builder, q *work.Queue, between Pauses) Budget {
	return Budget{ports: p, topo: t, queue: q, pauses: between}
}

const (
	// window is the time an allowance is for, in milliseconds. A port that overdraws it
	// again and again waits ever longer.
	window = uint32(time.Second / time.Millisecond)
	// gateHold is how long the P_Keys of a switch port wait that have had their
	// turns: as good as no time, since a host that bounces its link must not put off
	// that it loses access.
	gateHold = 20 * time.Millisecond
)

// now returns the age of the core in milliseconds.
func (b *Budget) now() uint32 { return uint32(b.ports.Age() / time.Millisecond) }

// of returns how many requests of a class a port gets in a window, more than an
// honest one ever needs.
func (b *Budget) of(x work.Ref) uint16 {
	switch x.Class {
	case work.Probe, work.SMInfo:
		return 32
	case work.PKey:
		return uint16(32 + 4*b.ports.KeyBlocks(x.Port()))
	case work.SLtoVL:
		return 32 + 2*uint16(b.topo.Node(b.topo.Port(x.Port()).Node).NumPorts)
	default:
		return 64
	}
}

// Spend counts a request that is sent.
func (b *Budget) Spend(x work.Ref) {
	if x.Class.IsOnNode() {
		return
	}
	a, now := b.ports.Allowance(x.Port()), b.now()
	if idle := now - a.since; idle >= window {
		if idle >= window+2*a.pause {
			a.pause = 0
		}
		a.since, a.used = now, [work.NumClasses]uint16{}
	}
	a.used[x.Class]++
}

// IsOverdrawn reports whether work has had its turns for now. If so, it is looked at again later.
func (b *Budget) IsOverdrawn(x work.Ref) bool {
	if x.Class.IsOnNode() {
		return false
	}
	a := b.ports.Allowance(x.Port())
	if a.used[x.Class] < b.of(x) || b.now()-a.since >= window {
		return false
	}
	b.queue.Hold(x)
	pause := gateHold
	if x.Class != work.PKey || !b.topo.IsExternal(x.Port()) {
		last := time.Duration(a.pause) * time.Millisecond
		pause = min(max(2*last, b.pauses.Min), b.pauses.Max)
		a.pause = uint32(pause / time.Millisecond)
	}
	b.ports.After(pause, work.Unhold, x)
	return true
}
