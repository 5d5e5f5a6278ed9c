// Package smtrust decides which other Subnet Managers are trusted, and which ports are shown the SM_Key.
//
// Any host may claim to be a Subnet Manager of the highest rank, may request ours, and may send it commands. So a Subnet
// Manager is trusted if it shows our SM_Key, at a place where the list of allowed ones has it.
//
// The key itself must not become known to hosts. It leaves in two ways: in an answer to a Get, and in a command. A command
// goes to a Subnet Manager that has shown the key before. An answer shows it when the answer's path ends at an allowed one.
// The sender is not taken from the request, but from the return path of the directed route. The answer follows that path
// from switch to switch, and it is walked here over the cables that were observed. Answers that are routed by LID never show
// it, since the tables they follow may be those of another manager. The same holds for directed routes that came from a LID:
// their switches did not write the return path, and the answer would go to that LID.
//
// A gap remains until M_Keys guard the answers: an attacker who takes the place of an allowed Subnet Manager (its GUID, at
// its switch port) receives the key.
//
// The package has no clock and sends nothing.
package smtrust

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Fabric is what Trust asks of the core.
type Fabric interface {
	// Root returns the node that this Subnet Manager is attached to, None while none is known.
	Root() topo.NodeID
	// Own returns our own end port, None before it is known.
	Own() topo.PortID
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// LeadsOn reports whether the node behind a port is asked through it.
	LeadsOn(topo.PortID) bool
}

// Controls are decisions that no setting removes, see package controls.
type Controls interface {
	// AcceptsKey reports whether a Subnet Manager that shows a key knows ours.
	AcceptsKey(own, shown ib.SMKey) bool
	// Obeys reports whether a command with our key is obeyed. listed: its sender is an allowed Subnet Manager, at its place.
	Obeys(listed bool) bool
	// ShowsKey reports whether an answer to a port may hold our key.
	ShowsKey(listed bool) bool
}

// Options say who may be trusted.
type Options struct {
	Key      ib.SMKey  // ours; zero: no Subnet Manager is trusted
	Allowed  []Allowed // none: any may be trusted, and no key is shown
	Siblings []Sibling
	Controls Controls
}

// Trust decides about other Subnet Managers. Use New.
type Trust struct {
	fabric Fabric
	topo   *topo.Builder
	o      Options
}

// New returns the trust in a fabric.
func New(f Fabric, t *topo.Builder, o Options) Trust { return Trust{fabric: f, topo: t, o: o} }

// SetAllowed replaces the list of allowed Subnet Managers.
func (t *Trust) SetAllowed(list []Allowed) { t.o.Allowed = list }

// Allowed returns the list of allowed Subnet Managers. The caller must not write to it.
func (t *Trust) Allowed() []Allowed { return t.o.Allowed }

// Siblings returns the other instances of the same service. The caller must not write to it.
func (t *Trust) Siblings() []Sibling { return t.o.Siblings }

// IsListed reports whether an end port is that of an allowed Subnet Manager, at its place.
func (t *Trust) IsListed(p topo.PortID) bool {
	guid, place := t.topo.GUIDOf(p), t.topo.PlaceOf(p)
	for i := range t.o.Allowed {
		if t.o.Allowed[i].admits(guid, place) {
			return true
		}
	}
	return false
}

// MayTrust reports whether a Subnet Manager at a port would be trusted if it showed the SM_Key. Any host can show an empty
// one, so without a key no Subnet Manager is trusted.
func (t *Trust) MayTrust(p topo.PortID) bool {
	return !t.o.Key.IsZero() && (len(t.o.Allowed) == 0 || t.IsListed(p))
}

// Trusts reports whether a Subnet Manager at a port, which shows a key, is trusted.
func (t *Trust) Trusts(p topo.PortID, shown ib.SMKey) bool {
	return t.MayTrust(p) && t.o.Controls.AcceptsKey(t.o.Key, shown)
}

// ShowsKey reports whether the answer to a request from an end port may hold the SM_Key. Where ports have M_Keys, a
// protected PortInfo requires more: the request must show ours.
func (t *Trust) ShowsKey(to topo.PortID) bool {
	return !t.o.Key.IsZero() && to != topo.None && t.o.Controls.ShowsKey(t.IsListed(to))
}

// Objection is why a command is not obeyed.
type Objection uint8

// Objections, in the order in which they are looked for.
const (
	NoObjection Objection = iota
	NoKey                 // no SM_Key is configured
	WrongKey              // the key of the command is not ours
	NoSender              // the port that it comes from is not known
	WrongGUID             // that port has another GUID than the command says
	NotAllowed            // no Subnet Manager is allowed at that port
)

// Judge returns why a command is not obeyed that came from an end port, None if that is not known. The command says the
// GUID of its sender, and shows a key.
func (t *Trust) Judge(from topo.PortID, says ib.GUID, shown ib.SMKey) Objection {
	switch {
	case t.o.Key.IsZero():
		return NoKey
	case !t.o.Controls.AcceptsKey(t.o.Key, shown):
		return WrongKey
	case from == topo.None:
		return NoSender
	case says != t.topo.GUIDOf(from):
		return WrongGUID
	case !t.o.Controls.Obeys(t.IsListed(from)):
		return NotAllowed
	default:
		return NoObjection
	}
}

// IsManager reports whether an end port is our own, or that of a sibling at its place.
func (t *Trust) IsManager(p topo.PortID) bool {
	if p == t.fabric.Own() {
		return true
	}
	if len(t.o.Siblings) == 0 {
		return false
	}
	return slices.Contains(t.o.Siblings, Sibling{GUID: t.topo.GUIDOf(p), Place: t.topo.PlaceOf(p)})
}

// IsSibling reports whether a port GUID is that of a sibling, also of one that is not seen now.
func (t *Trust) IsSibling(guid ib.GUID) bool {
	return guid != 0 && slices.ContainsFunc(t.o.Siblings, func(s Sibling) bool { return s.GUID == guid })
}

// Sender returns the end port at which the answer to a directed-route request will arrive. It is None when the path is not
// known, or the request was routed by LID. lid is the source of the request.
func (t *Trust) Sender(m *mad.MAD, lid ib.LID) topo.PortID {
	if lid != ib.PermissiveLID {
		return topo.None
	}
	if !m.IsDR() || m.HopCount() > mad.MaxHops || m.DrSLID() != ib.PermissiveLID || m.DrDLID() != ib.PermissiveLID {
		return topo.None
	}
	at := t.fabric.Root()
	if at == topo.None {
		return topo.None
	}
	back := m.ReturnRoute()
	end := topo.PortID(topo.None)
	for i := back.Len() - 1; i >= 0; i-- {
		p := t.topo.PortOf(at, back.At(i))
		if p == topo.None || !t.fabric.LeadsOn(p) {
			return topo.None
		}
		if end = t.topo.Peer(p); end == topo.None {
			return topo.None
		}
		at = t.topo.Port(end).Node
	}
	if end != topo.None && t.topo.Node(at).Type == ib.NodeSwitch {
		end = t.topo.Node(at).FirstPort
	}
	if end == topo.None || end == t.fabric.Own() {
		return topo.None
	}
	if p, ok := t.fabric.PortByGUID(t.topo.GUIDOf(end)); !ok || p != end {
		return topo.None
	}
	return end
}
