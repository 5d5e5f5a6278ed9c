package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/classkeys"
	"portcullis/fabricsm/topo"
)

// The configuration of the keys of general management classes: see package classkeys.
type (
	ClassKeysConfig = classkeys.Config
	ClassKeyConfig  = classkeys.ClassConfig
	KeyEnable       = classkeys.Enable
)

// What becomes of the keys of a class.
const (
	KeyIgnore  = classkeys.Ignore
	KeyDisable = classkeys.Disable
	KeyEnabled = classkeys.Enabled
)

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
		GUID: guid, LID: tp.LID, Switch: c.ports[p].num == 0, Verified: c.mkeys.Places().IsVerified(p) && !c.election.IsBarred(),
		Active: tp.State == ib.PortActive && tp.LID.IsUnicast(), Doubts: uint64(c.nodes[c.ports[p].node].epoch)<<32 | uint64(c.ports[p].doubts),
	}
	if !k.Switch {
		k.Place = c.topo.PlaceOf(p)
		k.Bound = p == c.own() || c.mkeys.Places().IsKeyedHere(guid, k.Place)
	}
	return k, true
}
