package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Event is something that happened and that others may want to know: logs,
// audit, admission and the user interface read them. String is a sentence for
// people.
type Event interface {
	fmt.Stringer
	// FabricEvent marks a type as an event.
	FabricEvent()
}

// StateChanged says that this SM entered an SM state.
type StateChanged struct {
	State  ib.SMState
	Reason string
}

// Settled says that nothing is left to do: all that can be observed equals
// what is wanted.
type Settled struct {
	Revision int64         // of the intent in force
	Since    time.Duration // since the fabric was last settled, or since the start
	SMPs     uint64        // requests sent in that time
	Sets     uint64        // of which were Sets
	Cause    string        // what the work began with: "trap 128 from LID 5", "intent 7", "audit", "start"
	Took     time.Duration // since then
	Work     uint64        // requests sent since then
	Repeated uint64        // of which repeat one that was not answered in time
}

// PortPlaced says that an end port is seen at a place. A SwitchPort0 has no
// place. A port that moves is first gone from its old place.
type PortPlaced struct {
	GUID     ib.GUID
	Place    ib.Place
	LID      ib.LID
	NodeGUID ib.GUID
}

// PortGone says that an end port is no longer seen at a place.
type PortGone struct {
	GUID  ib.GUID
	Place ib.Place
}

// MembershipApplied says that switch port and HCA were read back and hold the
// P_Key, and that the switch port enforces it as far as Config.Enforcement
// asks.
type MembershipApplied struct {
	GUID     ib.GUID
	PKey     ib.PKey
	Place    ib.Place
	Revision int64
}

// MembershipRemoved says that the switch port was read back and does not hold
// the P_Key. HCAProven is false if the HCA could not be asked; on a switch
// without P_Key tables nothing is said before the HCA was.
type MembershipRemoved struct {
	GUID      ib.GUID
	PKey      ib.PKey
	Place     ib.Place
	Revision  int64
	HCAProven bool
}

// MembershipRefused says why a grant is not applied. It is tried again by
// itself when the reason goes away.
type MembershipRefused struct {
	GUID     ib.GUID
	PKey     ib.PKey
	Place    ib.Place
	Revision int64
	Reason   string
}

// ForeignPKeys says that P_Keys of tenants are removed from the table of a switch port or of an adapter, and that no membership
// explains how they came there: another subnet manager set them, or one of before did.
type ForeignPKeys struct {
	GUID    ib.GUID  // end port; zero: none is seen at the switch port
	Place   ib.Place // switch port, or the one in front of the adapter
	Adapter bool     // the table is the adapter's
	PKeys   []ib.PKey
}

// InheritedPKeys says that a port keeps P_Keys of tenants that it had when this subnet manager read it first, and that no
// membership explains, while the takeover is open.
type InheritedPKeys struct {
	GUID  ib.GUID
	Place ib.Place  // its switch port
	PKeys []ib.PKey // full or limited as it had them, each partition once
}

// RouteRefused says that a routing engine returned no tables, or the checker did not accept them. The old tables stay.
type RouteRefused struct{ Reason string }

// Routed says that new tables are wanted.
type Routed struct {
	Engine   string
	Switches int
	LIDs     int
}

// NodeUnreachable says that a node, or what is behind a link, does not answer.
// It is asked again from time to time.
type NodeUnreachable struct {
	GUID  ib.GUID  // zero: the node has never answered
	Place ib.Place // link behind which it is

	// These are set for a link behind which no device answers although devices with M_Keys belong there. The device there
	// may have a key of its own, and is not shown theirs.
	Keyed    []ib.GUID // end ports under whose keys it was asked, by GUID
	Where    string    // the place as it is declared: rack, unit, device and port; "" if it is not
	Declared string    // the device that belongs there, in the same words
	With     ib.Place  // another such link that fell silent at about the same time; zero: none

	// These are set for the cable of the subnet manager's own adapter.
	Own       ib.GUID   // its port GUID; zero: it is another link
	Neighbour ib.GUID   // port GUID of the switch that belongs there; zero: nothing says which
	By        string    // what says it
	Switches  []ib.GUID // port GUIDs of the switches that have M_Keys, sorted
}

// NodeBack says that a node that did not answer answers again.
type NodeBack struct{ GUID ib.GUID }

// ForeignSM reports another subnet manager.
type ForeignSM struct {
	GUID     ib.GUID
	LID      ib.LID
	Place    ib.Place
	State    ib.SMState
	Priority uint8
	Trusted  bool      // it showed the SM_Key that is configured, from where it is allowed
	Path     mad.Route // the way from us to it, by which it was asked
	Count    uint64    // times that it reported something new of itself
}

// SMInfoRefused reports an attempt to command this SM that was not obeyed: the
// SM_Key is wrong, the sender is not an allowed SM, or the command is not legal
// in the states both are in.
type SMInfoRefused struct {
	LID     ib.LID  // source; permissive for a directed route
	GUID    ib.GUID // as it says itself
	Control mad.SMInfoControl
	Place   ib.Place  // from where, zero if that is not known
	Path    mad.Route // of a directed route: the ports it came in by, hop by hop
	Reason  string
	Count   uint64 // of what was refused from there, or if that is not known from everywhere
}

// DuplicateGUID says that two places show the same GUID. The first one known
// keeps it, the second stays closed.
type DuplicateGUID struct {
	GUID   ib.GUID
	First  ib.Place
	Second ib.Place
}

// BadAnswer says that a node answered something the standard does not allow,
// or refused a request.
type BadAnswer struct {
	GUID    ib.GUID // node, zero when not known yet
	Port    ib.PortNum
	Request string // "Set PortInfo"
	Reason  string
}

// FieldsNotKept says that a node accepts fields of PortInfo and forgets them.
// It is not asked again.
type FieldsNotKept struct {
	GUID   ib.GUID
	Fields PortFields
}

// CannotEnforce says that a switch with hosts on it cannot check P_Keys as far
// as Config.Enforcement asks, so no grant is honoured there.
type CannotEnforce struct {
	GUID   ib.GUID // of the switch
	Reason string
}

// StrayAnswer reports an answer to nothing that was asked, the first of a
// series: another subnet manager was here, or a host forges answers. It was not
// believed.
type StrayAnswer struct {
	LID   ib.LID   // source as the packet has it; ib.PermissiveLID for a directed route
	GUID  ib.GUID  // end port that has the LID, zero if unknown
	Place ib.Place // switch port in front of it
	Attr  mad.AttrID
	Count uint64 // so far, from everywhere
}

func (*StateChanged) FabricEvent()      {}
func (*Settled) FabricEvent()           {}
func (*PortPlaced) FabricEvent()        {}
func (*PortGone) FabricEvent()          {}
func (*MembershipApplied) FabricEvent() {}
func (*MembershipRemoved) FabricEvent() {}
func (*MembershipRefused) FabricEvent() {}
func (*ForeignPKeys) FabricEvent()      {}
func (*InheritedPKeys) FabricEvent()    {}
func (*RouteRefused) FabricEvent()      {}
func (*Routed) FabricEvent()            {}
func (*NodeUnreachable) FabricEvent()   {}
func (*NodeBack) FabricEvent()          {}
func (*ForeignSM) FabricEvent()         {}
func (*SMInfoRefused) FabricEvent()     {}
func (*DuplicateGUID) FabricEvent()     {}
func (*BadAnswer) FabricEvent()         {}
func (*FieldsNotKept) FabricEvent()     {}
func (*CannotEnforce) FabricEvent()     {}
func (*StrayAnswer) FabricEvent()       {}

func (e *StateChanged) String() string {
	return fmt.Sprintf("subnet manager is %v: %s", e.State, e.Reason)
}

func (e *Settled) String() string {
	return fmt.Sprintf("settled with revision %d after %d requests, %d of them Sets", e.Revision, e.SMPs, e.Sets)
}

func (e *PortPlaced) String() string {
	if e.Place.IsZero() {
		return fmt.Sprintf("port %v is seen with LID %v", e.GUID, e.LID)
	}
	return fmt.Sprintf("port %v is seen at %v with LID %v", e.GUID, e.Place, e.LID)
}

func (e *PortGone) String() string {
	if e.Place.IsZero() {
		return fmt.Sprintf("port %v is gone", e.GUID)
	}
	return fmt.Sprintf("port %v is gone from %v", e.GUID, e.Place)
}

func (e *MembershipApplied) String() string {
	return fmt.Sprintf("port %v at %v is a member of %v: read back", e.GUID, e.Place, e.PKey)
}

func (e *MembershipRemoved) String() string {
	hca := "and from the HCA"
	if !e.HCAProven {
		hca = "the HCA cannot be asked"
	}
	return fmt.Sprintf("port %v is no longer a member of %v: gone from %v, %s", e.GUID, e.PKey, e.Place, hca)
}

func (e *MembershipRefused) String() string {
	return fmt.Sprintf("port %v is not made a member of %v at %v: %s", e.GUID, e.PKey, e.Place, e.Reason)
}

func (e *ForeignPKeys) String() string {
	if e.Adapter {
		return fmt.Sprintf("P_Keys %v are removed from the adapter of port %v at %v: no membership explains them", e.PKeys, e.GUID, e.Place)
	}
	if e.GUID == 0 {
		return fmt.Sprintf("P_Keys %v are removed from switch port %v, behind which no port is seen: no membership explains them", e.PKeys, e.Place)
	}
	return fmt.Sprintf("P_Keys %v are removed from switch port %v, behind which port %v is: no membership explains them", e.PKeys, e.Place, e.GUID)
}

func (e *InheritedPKeys) String() string {
	return fmt.Sprintf("port %v keeps P_Keys %v at %v until a person decides: no membership explains them", e.GUID, e.PKeys, e.Place)
}

func (e *RouteRefused) String() string {
	return "routing tables refused, the old ones stay: " + e.Reason
}

func (e *Routed) String() string {
	return fmt.Sprintf("%s routes %d LIDs over %d switches", e.Engine, e.LIDs, e.Switches)
}

func (e *NodeBack) String() string { return fmt.Sprintf("node %v answers again", e.GUID) }

func (e *ForeignSM) String() string {
	trust := "trusted"
	if !e.Trusted {
		trust = "not trusted: it does not show our SM_Key from an allowed place"
	}
	return fmt.Sprintf("another subnet manager, port %v at %v, LID %v, path %v, is %v with priority %d; %s",
		e.GUID, e.Place, e.LID, e.Path, e.State, e.Priority, trust)
}

func (e *SMInfoRefused) String() string {
	from := fmt.Sprintf("LID %v", e.LID)
	if e.LID == ib.PermissiveLID {
		from = fmt.Sprintf("return path %v", e.Path)
	}
	if !e.Place.IsZero() {
		from += fmt.Sprintf(" at %v", e.Place)
	}
	return fmt.Sprintf("%v from %s (says it is %v) refused: %s", e.Control, from, e.GUID, e.Reason)
}

func (e *DuplicateGUID) String() string {
	return fmt.Sprintf("GUID %v is at %v and at %v; the first keeps it, the second stays closed", e.GUID, e.First, e.Second)
}

func (e *BadAnswer) String() string {
	return fmt.Sprintf("node %v port %d: %s: %s", e.GUID, e.Port, e.Request, e.Reason)
}

func (e *FieldsNotKept) String() string {
	return fmt.Sprintf("node %v accepts but does not keep %v", e.GUID, e.Fields)
}

func (e *CannotEnforce) String() string {
	return fmt.Sprintf("switch %v cannot enforce partitions, so nobody is admitted at its ports: %s", e.GUID, e.Reason)
}

func (e *StrayAnswer) String() string {
	return fmt.Sprintf("answer %v from LID %v to nothing that was asked, number %d: another subnet manager was here, or somebody forges answers", e.Attr, e.LID, e.Count)
}

// Administration makes an Event of a report of subnet administration, which is no part of the core: embed it.
type Administration struct{}

var _ interface{ FabricEvent() } = Administration{}

func (Administration) FabricEvent() {}
