// Package fault keeps the list of what is wrong in a fabric now.
package fault

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// Event reports that something is wrong.
type Event interface {
	fmt.Stringer
	// FabricEvent marks a type as an event.
	FabricEvent()
}

// Kind is what is wrong, the gravest first: lists are in this order.
type Kind uint8

// Kinds of faults.
const (
	TopologyProtected Kind = iota // the declared topology is violated where nothing can be switched off
	RogueMaster                   // another SM says that it is master
	RivalMaster                   // a trusted master of lower rank does not hand over
	Disabled                      // another SM disabled this one
	LeaseEnded                    // the owner may not change the fabric
	TopologyRefused               // a declared topology that cannot be enforced
	TopologyBroken                // something is not where the declared topology has it
	KeyRefused                    // an adapter whose host set another M_Key
	DuplicateGUID                 // two places show one GUID
	SwitchForHost                 // a switch where a host belongs
	TooManyNodes                  // an endless fabric behind one cable
	MembershipRefused             // a grant that is not honoured
	AliasRefused                  // an alias GUID that is not assigned
	NoKey                         // a device without the M_Key it should have
	NoEnforcement                 // a switch that checks no P_Keys
	ForeignMaster                 // we stand by
	RoutesRefused                 // an engine was passed over
	MulticastRefused              // multicast cannot be routed safely
	MulticastCut                  // members that a multicast tree does not reach
	Unhealthy                     // a port or switch that misbehaves
	NodeSilent                    // the node with the GUID does not answer
	LinkDead                      // no device answers at the end of a link
	TopologyMissing               // a declared link is not there
	LinkSlow                      // the link at the place is below what both ends offer
	numKinds          int  = iota
)

var names = [numKinds]string{
	TopologyProtected: "topology-protected", RogueMaster: "rogue-master", RivalMaster: "rival-master", Disabled: "disabled", LeaseEnded: "lease-ended",
	TopologyRefused: "topology-refused", TopologyBroken: "topology", KeyRefused: "m-key-refused", DuplicateGUID: "guid-duplicate",
	SwitchForHost: "switch-for-host", TooManyNodes: "too-many-nodes", MembershipRefused: "membership-refused", AliasRefused: "alias-refused",
	NoKey: "no-key", NoEnforcement: "no-enforcement", ForeignMaster: "foreign-master", RoutesRefused: "routes-refused",
	MulticastRefused: "multicast-refused", MulticastCut: "multicast-cut", Unhealthy: "unhealthy", NodeSilent: "node-silent", LinkDead: "link-dead",
	TopologyMissing: "topology-missing", LinkSlow: "link-slow",
}

// String returns the name: "node-silent".
func (k Kind) String() string {
	if int(k) < numKinds {
		return names[k]
	}
	return fmt.Sprintf("fault kind %d", uint8(k))
}

// Key names one thing that is wrong for as long as it is.
type Key struct {
	Kind  Kind
	GUID  ib.GUID  // node or port it is about, 0 if none
	PKey  ib.PKey  // partition it is about, invalid if none
	Place ib.Place // where it is, zero if nowhere in particular
	MLID  ib.LID   // multicast LID it is about, 0 if none
}

// compare orders keys of one kind and text.
func (k Key) compare(l Key) int {
	return cmp.Or(cmp.Compare(k.GUID, l.GUID), cmp.Compare(k.PKey, l.PKey), cmp.Compare(k.Place.Switch, l.Place.Switch),
		cmp.Compare(k.Place.Port, l.Place.Port))
}

// Fault is one thing that is wrong now, and where.
type Fault struct {
	Key
	Text string // a sentence for people
}

// compare orders faults, the gravest kind first and then by text.
func (f Fault) compare(g Fault) int {
	return cmp.Or(cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Text, g.Text), f.Key.compare(g.Key))
}

const (
	// maxFaults bounds how many faults a list shows.
	maxFaults = 4096
	// maxTexts bounds how many of their sentences.
	maxTexts = 100
)

// List is what is wrong now. Use New.
type List struct {
	now    map[Key]string
	stale  bool // the rest is
	faults []Fault
	texts  []string
}

// New returns an empty list.
func New() List { return List{now: make(map[Key]string)} }

// Set records that something is wrong, and reports whether this is new or has a new text.
func (l *List) Set(k Key, text string) bool {
	if l.now[k] == text {
		return false
	}
	l.now[k], l.stale = text, true
	return true
}

// Clear records that something is no longer wrong, and reports whether it was.
func (l *List) Clear(k Key) bool {
	_, was := l.now[k]
	if was {
		delete(l.now, k)
		l.stale = true
	}
	return was
}

// Text returns the sentence of what is wrong, or "" if it is not.
func (l *List) Text(k Key) string { return l.now[k] }

// Has reports whether something is wrong.
func (l *List) Has(k Key) bool {
	_, is := l.now[k]
	return is
}

// Snapshot returns the faults, the gravest kind first and then by text, and the sentences of the first ones. The caller
// must not write to them. They are made again only after a change.
func (l *List) Snapshot() ([]Fault, []string) {
	if l.stale {
		l.stale, l.faults = false, l.sorted()
		l.texts = l.firstTexts()
	}
	return l.faults, l.texts
}

// sorted returns the faults in order, at most maxFaults.
func (l *List) sorted() []Fault {
	if len(l.now) == 0 {
		return nil
	}
	all := make([]Fault, 0, len(l.now))
	for k, text := range l.now {
		all = append(all, Fault{k, text})
	}
	slices.SortFunc(all, Fault.compare)
	if len(all) > maxFaults {
		return slices.Clone(all[:maxFaults])
	}
	return all
}

// firstTexts returns the sentences of the first faults, and says how many more there are.
func (l *List) firstTexts() []string {
	if len(l.faults) == 0 {
		return nil
	}
	list := make([]string, 0, min(len(l.faults), maxTexts+1))
	for _, f := range l.faults[:min(len(l.faults), maxTexts)] {
		list = append(list, f.Text)
	}
	if more := len(l.now) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more problems, none graver than the last", more))
	}
	return list
}
