// Package guard holds the keys that protect the management ports of simulated devices: an M_Key, and those of classes with
// keys of their own. It has no clock.
package guard

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/mad"
)

// Access is the access that a management port grants to the sender of a packet.
type Access uint8

// Degrees of access.
const (
	Full  Access = iota
	Blind        // an answer in which the key is hidden
	None         // no answer at all
	Taken        // none either, but the agent has taken the packet
)

// Keys is one or, on devices that hold two, both keys of a management port.
type Keys struct {
	Current  uint64 // 0: every request is allowed
	Previous uint64 // also accepted, until the manager confirms the current one; 0: none
}

// Accept reports whether a key opens the port.
func (k *Keys) Accept(offered uint64) bool {
	return k.Current == 0 || offered == k.Current || k.Previous != 0 && offered == k.Previous
}

// Set takes a new key. With dual, the old one stays good until the new one is
// set once more. Key 0 ends both.
func (k *Keys) Set(key uint64, dual bool) {
	if key == 0 || key == k.Current || !dual {
		k.Previous = 0
	} else {
		k.Previous = k.Current
	}
	k.Current = key
}

// Lease is how long protection outlives a violation that no manager reacts to.
type Lease struct {
	Ends    time.Duration // when running
	Running bool
}

// Start begins a lease of the given number of seconds, if it does not run; 0 means forever.
func (l *Lease) Start(now time.Duration, seconds uint16) {
	if seconds != 0 && !l.Running {
		l.Ends, l.Running = now+time.Duration(seconds)*time.Second, true
	}
}

// Expired reports, once, that the lease has run out.
func (l *Lease) Expired(now time.Duration) bool {
	if !l.Running || now < l.Ends {
		return false
	}
	l.Running = false
	return true
}

// keyOffset is where SMPs, and MADs of the classes with keys, have their key.
const keyOffset = mad.HeaderSize

// Offered is the key that the sender of a MAD shows.
func Offered(m *mad.MAD) uint64 { return binary.BigEndian.Uint64(m[keyOffset:]) }
