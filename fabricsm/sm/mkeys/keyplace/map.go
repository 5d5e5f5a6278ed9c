// Package keyplace says at which places the M_Keys of devices may be shown.
//
// The device that answers a request sees the key of that request. So a key is shown only to a device that is where it
// belongs, over switches that are the ones they claim to be. A [Map] reports both, and remembers which switch is behind
// which port, so that the switch can be asked under its key after a restart. It sends nothing.
package keyplace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// Policy says what proves that a device is where it belongs.
type Policy uint8

const (
	// Declared: the declared topology has the device there. Without one,
	// no device gets a key.
	Declared Policy = iota
	// Seen: the first place at which a device is seen is its place. It trusts the first device that shows a GUID.
	Seen
	// Auto: declared while enforcement is asked for, and seen otherwise, so that a topology that is only observed
	// locks no device out.
	Auto
)

// String returns the name of a policy: "declared".
func (p Policy) String() string {
	switch p {
	case Seen:
		return "seen"
	case Auto:
		return "auto"
	default:
		return "declared"
	}
}

// Fabric is what a Map knows of the core.
type Fabric interface {
	// Own returns our own end port, None before it is known.
	Own() topo.PortID
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// Up returns the port of the node nearer to us by which a node is asked.
	Up(topo.NodeID) topo.PortID
	// IsChallenged reports whether another port claims to be the one that a port is linked to.
	IsChallenged(topo.PortID) bool
	// IsFenced reports whether the device behind a port shows a GUID that is elsewhere.
	IsFenced(topo.PortID) bool
	// IsDark reports whether nothing behind a port is looked at.
	IsDark(topo.PortID) bool
	// SaveBehind saves which switch is behind a port, or, for port 0, the port GUID of a switch.
	SaveBehind(at ib.Place, guid ib.GUID)
}

// Law is the declared topology.
type Law interface {
	// IsOn reports whether a topology is declared.
	IsOn() bool
	// WantsEnforcement reports whether enforcement is asked for, in force or not yet.
	WantsEnforcement() bool
	// IsDeclared reports whether an end port is where it is declared.
	IsDeclared(topo.PortID) bool
	// IsLawful reports whether the device at a place is the declared one.
	IsLawful(ib.Place) bool
	// Expects reports whether a device is declared behind a port.
	Expects(topo.PortID) bool
	// Trusts reports whether a switch is declared, by its node GUID.
	Trusts(sw ib.GUID) bool
	// VerdictAt returns the verdict on the device at a place.
	VerdictAt(ib.Place) verify.Verdict
	// Spec returns the topology.
	Spec() *topospec.Spec
}

// Options say which places count.
type Options struct {
	Policy     Policy
	AttachedTo ib.GUID         // node GUID of the switch at our own cable; 0: it is not set
	Import     *keyimport.Keys // nil: nothing is imported
	Controls   controls.Keys
}

// Map is the known places of devices that have keys. Use New.
type Map struct {
	fabric Fabric
	law    Law
	topo   *topo.Builder
	book   *keys.Book
	opt    Options

	behind   map[ib.Place]ib.GUID // end port behind a port of a switch that is cabled to another, as saved
	switches map[ib.GUID]bool     // that are, or were, behind one
	lookups  lookups
}

// New returns a map on which nothing is remembered.
func New(f Fabric, l Law, t *topo.Builder, book *keys.Book, o Options) Map {
	return Map{
		fabric: f, law: l, topo: t, book: book, opt: o,
		behind: make(map[ib.Place]ib.GUID), switches: make(map[ib.GUID]bool), lookups: lookups{saved: 1},
	}
}

// Policy returns what proves now that a device is where it belongs: Declared or Seen.
func (m *Map) Policy() Policy {
	switch {
	case m.opt.Policy != Auto:
		return m.opt.Policy
	case m.law.WantsEnforcement():
		return Declared
	default:
		return Seen
	}
}

// KeyedAt returns the place of an end port as its key is bound to it. It returns none for a switch, which may be entered by
// many ports. Our own port is always where it is.
func (m *Map) KeyedAt(p topo.PortID) ib.Place {
	if m.topo.NumOf(p) == 0 {
		return ib.Place{}
	}
	if p == m.fabric.Own() {
		if r := m.Ring(p); r != nil {
			return r.Place()
		}
		return ib.Place{}
	}
	return m.topo.PlaceOf(p)
}

// Next returns the next step about the key of an end port.
func (m *Map) Next(p topo.PortID, r *keys.Ring) keys.Step {
	return r.Next(m.KeyedAt(p), m.IsVerified(p))
}

// Now returns the key that an end port is on, and false if that is not known.
func (m *Map) Now(p topo.PortID, r *keys.Ring) (keys.Key, bool) {
	return r.Now(m.KeyedAt(p), m.IsVerified(p))
}

// IsKeyedHere reports whether an end port was assigned its key at a place.
func (m *Map) IsKeyedHere(guid ib.GUID, place ib.Place) bool {
	r := m.book.Ring(keys.MKey, guid)
	if r == nil {
		return m.isImportedAt(guid, place)
	}
	rec := r.Record()
	return rec.Place == place && !place.IsZero()
}

// isImportedAt reports whether the import has an end port at a place with a key of its own, under which it was asked there.
func (m *Map) isImportedAt(guid ib.GUID, place ib.Place) bool {
	in, p := m.opt.Import, m.topo.SwitchPortAt(place)
	if in == nil || p == topo.None || m.Policy() != Seen && !m.law.Expects(p) {
		return false
	}
	_, keyed := in.Key(guid)
	at, _ := in.At(m.topo.GUIDOf(m.topo.EntryPort(p)), place.Port)
	return keyed && at == guid
}

// IsVerified reports whether an end port is where it belongs.
func (m *Map) IsVerified(p topo.PortID) bool {
	if p == m.fabric.Own() {
		return true
	}
	if m.topo.NumOf(p) != 0 {
		if peer := m.topo.Peer(p); m.isSwitchKey(p) || peer != topo.None && !m.IsWayKnown(m.topo.NodeOf(peer)) {
			return false
		}
	} else if !m.IsWayKnown(m.topo.NodeOf(p)) {
		return false
	}
	return (m.Policy() == Seen || m.law.IsDeclared(p)) && !m.isDisputed(p)
}

// isDisputed reports whether another port contests the place, or identity, of an end port.
func (m *Map) isDisputed(p topo.PortID) bool {
	if m.fabric.IsChallenged(p) || m.fabric.IsDark(p) {
		return true
	}
	peer := m.topo.Peer(p)
	return peer != topo.None && (m.fabric.IsFenced(peer) || m.fabric.IsChallenged(peer) || m.fabric.IsDark(peer))
}

// MayBelong reports whether the key of a port GUID may be that of the device which the declared topology has at a place.
// Where a revision has replaced a device, the key of the old one is not shown to the new one.
func (m *Map) MayBelong(p topo.PortID, guid ib.GUID) bool {
	if !m.law.IsOn() || !m.topo.IsExternal(p) {
		return true
	}
	spec := m.law.Spec()
	_, peer := spec.LinkAt(spec.SlotOf(topospec.EndAt(m.topo.PlaceOf(p))))
	own := spec.DeviceByGUID(peer.GUID)
	return own == topospec.None || spec.Other(own, guid) == topospec.None
}

// MayMove reports whether keys follow a declared topology that is put into force with a mode. A topology that is only
// observed moves nothing where devices have their keys by where they are seen.
func (m *Map) MayMove(mode topospec.Mode) bool {
	return m.Policy() == Declared || mode == topospec.Enforce
}

// IsExpected reports whether a device behind a port may be asked under a key before it has shown an identity.
func (m *Map) IsExpected(p topo.PortID) bool {
	return (m.Policy() == Seen || m.law.Expects(p)) && !m.fabric.IsDark(p)
}
