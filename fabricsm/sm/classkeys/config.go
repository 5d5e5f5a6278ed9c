// Package classkeys is the configuration of the keys of general management classes.
package classkeys

import (
	"cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Config is about the keys of the general management classes that have one: congestion control (CC), vendor
// specific (VS) and node to node (N2N). The core assigns none of them; package keymgr does, beside it.
type Config struct {
	// Source makes the keys of devices that have none yet. Required as soon as a
	// class is at Enable.
	Source keys.Source
	// CC, VS and N2N say what becomes of the keys of classes 0x21, 0x0A and 0x0C.
	CC, VS, N2N ClassConfig
	// Import holds the known keys that another manager assigned, by port GUID, for a switch that of port 0. Devices without
	// a record are asked under them, at verified places only, and get a key of their own. Import needs no N2NNodeKey: the
	// holder of the manager key writes it.
	Import map[keys.Kind]map[ib.GUID]keys.Key
	// FullSwitches makes switches full members of the default partition, so that the messages that they send each other in
	// class 0x0C arrive. Then hosts, too, can send them GMPs of all classes.
	FullSwitches bool
	// Rotation says how keys change from time to time; a zero Period: they do not.
	Rotation keys.RotationConfig
}

// ClassConfig is about the key of one class.
type ClassConfig struct {
	Enable Enable
	// Readable lets any sender read the key from a device. By default each MAD of the class needs it: the protect bit is
	// set.
	Readable bool
	// Lease is how many seconds protection outlives a violation that no manager reacts to; 0, the default, is for ever.
	// With one, each device is asked at least twice in that time.
	Lease uint16
	// Window is how many requests of the class are out at once, 1 to 500; default
	// 500. Small: slow, and silent devices hold the others up.
	Window int
}

// Enable says what becomes of the keys of a class, as UFM's 0, 1 and 2.
type Enable uint8

const (
	// Ignore: they are left as they are, and nothing is asked.
	Ignore Enable = iota
	// Disable: key, lease and protect bit are set to 0 on all ports.
	Disable
	// Enabled: each port has a key of its own.
	Enabled
)

func (e Enable) String() string {
	switch e {
	case Disable:
		return "disable"
	case Enabled:
		return "enable"
	default:
		return "ignore"
	}
}

// maxWindow is the most requests of a class that may be out at once.
const maxWindow = 500

// On reports whether any class is not ignored.
func (c *Config) On() bool {
	return c.CC.Enable != Ignore || c.VS.Enable != Ignore || c.N2N.Enable != Ignore
}

// SetDefaults sets each field that is zero to its default.
func (c *Config) SetDefaults() {
	for _, k := range []*ClassConfig{&c.CC, &c.VS, &c.N2N} {
		k.Window = cmp.Or(k.Window, maxWindow)
	}
}

// Check reports every value that makes no sense.
func (c *Config) Check(wrong func(format string, args ...any)) {
	for _, x := range []struct {
		name string
		cfg  *ClassConfig
	}{{"CC_Key", &c.CC}, {"VS_Key", &c.VS}, {"N2N_Key", &c.N2N}} {
		if x.cfg.Enable > Enabled {
			wrong("%s enable %d: want ignore, disable or enable", x.name, uint8(x.cfg.Enable))
		}
		if x.cfg.Window < 0 || x.cfg.Window > maxWindow {
			wrong("%s outstanding requests %d: want 1 to %d", x.name, x.cfg.Window, maxWindow)
		}
		if x.cfg.Enable == Enabled && c.Source == nil {
			wrong("%s is to be given out, and there is no source of keys", x.name)
		}
	}
	if c.FullSwitches && c.N2N.Enable != Enabled {
		wrong("switches are to be full members of the default partition, and get no N2N_Keys, which is what that is for")
	}
	if err := c.Rotation.Check(); err != nil {
		wrong("keys of classes: %v", err)
	}
}
