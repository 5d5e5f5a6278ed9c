package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
)

// ClassKeysConfig is about the keys of the general management classes that have one: congestion control (CC), vendor
// specific (VS) and node to node (N2N). The core assigns none of them; package keymgr does, beside it.
type ClassKeysConfig struct {
	// Source makes the keys of devices that have none yet. Required as soon as a
	// class is at KeyEnable.
	Source keys.Source
	// CC, VS and N2N say what becomes of the keys of classes 0x21, 0x0A and 0x0C.
	CC, VS, N2N ClassKeyConfig
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

// ClassKeyConfig is about the key of one class.
type ClassKeyConfig struct {
	Enable KeyEnable
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

// KeyEnable says what becomes of the keys of a class, as UFM's 0, 1 and 2.
type KeyEnable uint8

const (
	// KeyIgnore: they are left as they are, and nothing is asked.
	KeyIgnore KeyEnable = iota
	// KeyDisable: key, lease and protect bit are set to 0 on all ports.
	KeyDisable
	// KeyEnabled: each port has a key of its own.
	KeyEnabled
)

func (e KeyEnable) String() string {
	switch e {
	case KeyDisable:
		return "disable"
	case KeyEnabled:
		return "enable"
	default:
		return "ignore"
	}
}

// maxClassWindow is the most requests of a class that may be out at once.
const maxClassWindow = 500

// On reports whether any class is not ignored.
func (c *ClassKeysConfig) On() bool {
	return c.CC.Enable != KeyIgnore || c.VS.Enable != KeyIgnore || c.N2N.Enable != KeyIgnore
}

func (c *ClassKeysConfig) withDefaults() {
	for _, k := range []*ClassKeyConfig{&c.CC, &c.VS, &c.N2N} {
		def(&k.Window, maxClassWindow)
	}
}

func (k *configChecker) classKeys(c *ClassKeysConfig) {
	for _, x := range []struct {
		name string
		cfg  *ClassKeyConfig
	}{{"CC_Key", &c.CC}, {"VS_Key", &c.VS}, {"N2N_Key", &c.N2N}} {
		if x.cfg.Enable > KeyEnabled {
			k.wrong("%s enable %d: want ignore, disable or enable", x.name, uint8(x.cfg.Enable))
		}
		if x.cfg.Window < 0 || x.cfg.Window > maxClassWindow {
			k.wrong("%s outstanding requests %d: want 1 to %d", x.name, x.cfg.Window, maxClassWindow)
		}
		if x.cfg.Enable == KeyEnabled && c.Source == nil {
			k.wrong("%s is to be given out, and there is no source of keys", x.name)
		}
	}
	if c.FullSwitches && c.N2N.Enable != KeyEnabled {
		k.wrong("switches are to be full members of the default partition, and get no N2N_Keys, which is what that is for")
	}
	if err := c.Rotation.Check(); err != nil {
		k.wrong("keys of classes: %v", err)
	}
}

// KeyPort is what decides, at this moment, whether keys of classes may be shown to
// an end port. It follows the rules of M_Keys.
type KeyPort struct {
	GUID   ib.GUID
	LID    ib.LID
	Place  ib.Place // to which its keys are bound; zero for a switch
	Switch bool
	// Active: it has a LID, and packets reach it.
	Active bool
	// Verified: it is where it belongs.
	Verified bool
	// Bound: its M_Key was given out at Place, or it is our own port, so that other
	// keys follow.
	Bound bool
	// Doubts changes whenever the device may have been restarted.
	Doubts uint64
}

// KeyPort returns the present state of an end port. It returns false for a port that is not an end port, or has no GUID of
// its own.
func (c *Core) KeyPort(p topo.PortID) (KeyPort, bool) {
	if p < 0 || int(p) >= len(c.ports) || !c.nodes[c.ports[p].node].alive || !c.topo.IsEndPort(p) {
		return KeyPort{}, false
	}
	guid := c.topo.GUIDOf(p)
	if owner, ok := c.byPort[guid]; guid == 0 || !ok || owner != p {
		return KeyPort{}, false
	}
	tp := c.topo.Port(p)
	k := KeyPort{
		GUID: guid, LID: tp.LID, Switch: c.ports[p].num == 0, Verified: c.mkeys.Places().IsVerified(p) && !c.self.Barred,
		Active: tp.State == ib.PortActive && tp.LID.IsUnicast(), Doubts: uint64(c.nodes[c.ports[p].node].epoch)<<32 | uint64(c.ports[p].doubts),
	}
	if !k.Switch {
		k.Place = c.topo.PlaceOf(p)
		k.Bound = p == c.own() || c.mkeys.Places().IsKeyedHere(guid, k.Place)
	}
	return k, true
}
