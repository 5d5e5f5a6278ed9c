package mkeys

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/sm/mkeys/keyplace"
)

// Config is about the M_Keys of devices: one for each end port, that of port
// 0 for a switch. Without a Source devices get none, and none is shown.
type Config struct {
	// Source makes the keys of devices that have none yet.
	Source keys.Source
	// Protection is the protection level that devices get. At 2, the default, a device answers no request without the key.
	// 1 hides the key only. 3 is as 2.
	Protection uint8
	// Lease is how many seconds protection outlives a violation that this SM does
	// not react to; 0, the default, is for ever. See ib-sm.md 6.1. With one, every
	// end port is audited at least twice in that time.
	Lease uint16
	// Places says which places of devices count as verified; no other gets a key.
	Places keyplace.Policy
	// Rotation says how keys change from time to time; a zero Period: they do not.
	Rotation keys.RotationConfig
	// AttachedTo is the node GUID of the switch that PortGUID is cabled to, as an operator
	// says it; 0: it is known from the topology or from what was saved, or not at all.
	// Only the M_Key of that switch is shown at the end of this cable.
	AttachedTo ib.GUID
	// Import is what another subnet manager left, nil for nothing.
	Import *keyimport.Keys
	// Release has all keys given back, as Keeper.Release does.
	Release bool
}

// IsOn reports whether devices get keys.
func (c *Config) IsOn() bool { return c.Source != nil }

// Check reports each value that makes no sense.
func (c *Config) Check(wrong func(format string, args ...any)) {
	if c.Protection > 3 {
		wrong("M_Key protection level %d: want 0 to 3", c.Protection)
	}
	if err := c.Rotation.Check(); err != nil {
		wrong("M_Key: %v", err)
	}
	if c.Places > keyplace.Auto {
		wrong("M_Key places %d: want declared, seen or auto", uint8(c.Places))
	}
}

// KeepAlive is the longest time between two audits of a port that a lease allows.
func (c *Config) KeepAlive() time.Duration { return time.Duration(c.Lease) * time.Second / 2 }
