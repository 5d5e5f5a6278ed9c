// Package controls holds the decisions by which the Subnet Manager stops attacks and which no setting removes. A core asks them
// through interfaces. [Strict] is what every service runs with; drills inject others, each without one control, to show that
// it is needed (package fabricsm/drill/weak, which no service links).
package controls

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// Managers decides about other Subnet Managers.
type Managers interface {
	// AcceptsKey reports whether a Subnet Manager that shows a key knows ours.
	AcceptsKey(own, shown ib.SMKey) bool
	// Obeys reports whether a command with our key is obeyed. listed: its sender is an allowed Subnet Manager, at its place.
	Obeys(listed bool) bool
	// ShowsKey reports whether an answer to a port may hold our key.
	ShowsKey(listed bool) bool
}

// Traps decides what a trap proves.
type Traps interface {
	// ProvesSender reports whether the sender that a trap names is taken as its sender.
	ProvesSender() bool
	// Waits reports whether the next look at a switch waits after a trap of it.
	Waits() bool
	// Suppresses reports whether repeated reports are counted instead of logged one by one.
	Suppresses() bool
}

// Ports decides about ports and cables.
type Ports interface {
	// FiltersRaw reports whether switch ports drop raw packets.
	FiltersRaw() bool
	// Contests reports whether a port that claims the cable of another one must prove it.
	Contests() bool
	// Closes reports whether the switch port of an adapter that refuses its M_Key is closed.
	Closes() bool
}

// Partitions decides about P_Keys.
type Partitions interface {
	partition.Controls
	// SwitchFirst reports whether a P_Key is removed from the switch port before it is removed from the adapter.
	SwitchFirst() bool
}

// Keys decides about M_Keys.
type Keys interface {
	// EndsLeases reports whether a key that was lent changes at the end of its lease.
	EndsLeases() bool
	// KeepsLeasesFirst reports whether the lease of a port's protection is kept before other work.
	KeepsLeasesFirst() bool
	// ReplacesLapsed reports whether a key that each host could read, since its lease had ended, is replaced.
	ReplacesLapsed() bool
	// Retires reports whether the key of a device that left permanently is destroyed.
	Retires() bool
	// ProvesNeighbour reports whether the switch behind our own port must be the one that was there before.
	ProvesNeighbour() bool
}

// Set are the controls of a core. A nil one is Strict.
type Set struct {
	Managers   Managers
	Traps      Traps
	Ports      Ports
	Partitions Partitions
	Keys       Keys
}

// WithDefaults returns the set with Strict where a control is nil.
func (s Set) WithDefaults() Set {
	var strict Strict
	if s.Managers == nil {
		s.Managers = strict
	}
	if s.Traps == nil {
		s.Traps = strict
	}
	if s.Ports == nil {
		s.Ports = strict
	}
	if s.Partitions == nil {
		s.Partitions = strict
	}
	if s.Keys == nil {
		s.Keys = strict
	}
	return s
}

// Strict has every control.
type Strict struct{ partition.Strict }

var (
	_ Managers   = Strict{}
	_ Traps      = Strict{}
	_ Ports      = Strict{}
	_ Partitions = Strict{}
	_ Keys       = Strict{}
)

// AcceptsKey implements Managers.
func (Strict) AcceptsKey(own, shown ib.SMKey) bool { return shown.Equal(own) }

// Obeys implements Managers.
func (Strict) Obeys(listed bool) bool { return listed }

// ShowsKey implements Managers.
func (Strict) ShowsKey(listed bool) bool { return listed }

// ProvesSender implements Traps.
func (Strict) ProvesSender() bool { return false }

// Waits implements Traps.
func (Strict) Waits() bool { return true }

// Suppresses implements Traps.
func (Strict) Suppresses() bool { return true }

// FiltersRaw implements Ports.
func (Strict) FiltersRaw() bool { return true }

// Contests implements Ports.
func (Strict) Contests() bool { return true }

// Closes implements Ports.
func (Strict) Closes() bool { return true }

// SwitchFirst implements Partitions.
func (Strict) SwitchFirst() bool { return true }

// EndsLeases implements Keys.
func (Strict) EndsLeases() bool { return true }

// KeepsLeasesFirst implements Keys.
func (Strict) KeepsLeasesFirst() bool { return true }

// ReplacesLapsed implements Keys.
func (Strict) ReplacesLapsed() bool { return true }

// Retires implements Keys.
func (Strict) Retires() bool { return true }

// ProvesNeighbour implements Keys.
func (Strict) ProvesNeighbour() bool { return true }
