// Package aliases assigns end ports further GUIDs, for virtual functions, and finds out whether they hold them.
//
// Port and alias GUIDs share one space, in which the first owner keeps its GUIDs. GUIDInfo of a port is read and written
// block by block, and what was written is believed when it was read back.
package aliases

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Wanted are the GUIDs that an end port is to have in addition to its own, for virtual functions. They take effect only
// while the port is seen at exactly that place.
type Wanted struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port it must be cabled to
	// Aliases are the entries of GUIDInfo from 1 on, 0 for one that is unused. An empty list means that the port is to have
	// none: the aliases that it holds are removed.
	Aliases []ib.GUID
}

// Pauses bound the time for which a port that keeps nothing is left alone. It doubles.
type Pauses struct{ Min, Max time.Duration }

func (t *Table) longer(pause time.Duration) time.Duration {
	return min(max(2*pause, t.pauses.Min), t.pauses.Max)
}

// Fabric is what a Table asks of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// RetryLater has a port looked at after a pause.
	RetryLater(topo.PortID, time.Duration)
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// IsPlaced reports whether an end port was reported at its place.
	IsPlaced(topo.PortID) bool
	// Room returns how many GUIDs a port has room for, its own included.
	Room(topo.PortID) int
	// IsMember reports whether memberships are granted to a GUID, and IsEntitled whether one is at a place.
	IsMember(ib.GUID) bool
	IsEntitled(ib.GUID, ib.Place) bool
	// Duplicate closes a port that shows a GUID which belongs elsewhere.
	Duplicate(guid ib.GUID, first ib.Place, p topo.PortID)
	// ShowsStrange takes an entry of GUIDInfo that is not wanted.
	ShowsStrange(topo.PortID, ib.GUID)
	Reports
}

// Reports is where a Table reports to.
type Reports interface {
	// Applied reports that a port holds its aliases.
	Applied(guid ib.GUID, at ib.Place, aliases []ib.GUID)
	// Refuse reports, once, why an alias is not given to a port; alias 0: none is.
	Refuse(k fault.Key, guid, alias ib.GUID, reason string)
	// Solved removes a fault from the views.
	Solved(fault.Key)
}

// maxAliases is the number of entries of GUIDInfo beside a port's own.
const maxAliases = 255

// Table is what is wanted of GUIDInfo, and what is known of it. Use New.
type Table struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
	pauses Pauses

	byPort  map[ib.GUID]*port
	owner   map[ib.GUID]ib.GUID   // port by alias, of those that are in force
	holder  map[ib.GUID]ib.GUID   // port by alias, of those that are, or may be, in a table
	waited  map[ib.GUID]time.Time // since when its owner waits, by alias that another port holds
	refused map[ib.GUID]bool      // ports that do not have all that was asked
	shown   *Shown
	stale   bool // shown has to be built again
}

type port struct {
	place  ib.Place
	asked  []ib.GUID // as it was said
	given  []ib.GUID // without those that are refused
	have   []ib.GUID // whole blocks, nil before the first was read
	known  []bool    // by block: have is what a Get said
	told   bool      // AliasesApplied
	audit  bool      // the next requests are part of the audit
	wrote  int       // 1 + the block of the last Set that was not read back
	rounds int       // Sets in a row after which a Get said otherwise
	pause  time.Duration
	hold   time.Time // a device that keeps nothing is left alone until then
}

// New returns the table of a fabric in which no port is to have aliases.
func New(f Fabric, b *topo.Builder, q *work.Queue, p Pauses) *Table {
	return &Table{
		fabric: f, topo: b, queue: q, pauses: p,
		byPort: make(map[ib.GUID]*port), owner: make(map[ib.GUID]ib.GUID), refused: make(map[ib.GUID]bool), holder: make(map[ib.GUID]ib.GUID), waited: make(map[ib.GUID]time.Time),
	}
}

// Set takes the wanted aliases of some ports.
func (t *Table) Set(ports []Wanted) {
	for _, w := range ports {
		a := t.byPort[w.GUID]
		if a == nil {
			a = &port{}
			t.byPort[w.GUID] = a
		}
		t.giveBack(w.GUID, a)
		a.place, a.asked = w.Place, slices.Clone(w.Aliases[:min(len(w.Aliases), maxAliases)])
		a.hold, a.pause = time.Time{}, 0
	}
	for _, w := range ports {
		t.allot(w.GUID, t.byPort[w.GUID])
	}
	t.AllotRefused()
}

// giveBack makes the aliases of a port free for others.
func (t *Table) giveBack(guid ib.GUID, a *port) {
	for _, g := range a.given {
		if t.owner[g] == guid {
			delete(t.owner, g)
			delete(t.waited, g)
		}
	}
	for _, g := range a.asked {
		t.fabric.Solved(fault.Key{Kind: fault.AliasRefused, GUID: g, Place: a.place})
	}
	a.given, a.told, a.rounds = nil, false, 0
}

// allot decides which of the aliases asked for a port gets. Port and alias GUIDs share one space, in which the first owner
// keeps its GUIDs.
func (t *Table) allot(guid ib.GUID, a *port) {
	given := make([]ib.GUID, len(a.asked))
	refused := make(map[ib.GUID]string)
	delete(t.refused, guid)
	for i, g := range a.asked {
		if g == 0 {
			continue
		}
		if reason := t.conflict(guid, g); reason != "" {
			refused[g] = reason
			continue
		}
		given[i] = g
		t.owner[g] = guid
	}
	for _, g := range a.asked {
		k := fault.Key{Kind: fault.AliasRefused, GUID: g, Place: a.place}
		if reason := refused[g]; reason == "" {
			t.fabric.Solved(k)
		} else {
			t.refused[guid] = true
			t.fabric.Refuse(k, guid, g, reason)
		}
	}
	if !slices.Equal(given, a.given) {
		a.given, a.told = given, false
		t.stale = true
	}
	t.Seat(guid)
}

// conflict says why a GUID cannot be an alias of a port.
func (t *Table) conflict(guid, alias ib.GUID) string {
	if !alias.Valid() {
		return "it is no GUID"
	}
	if owner, taken := t.owner[alias]; taken {
		if owner == guid {
			return "it stands twice in the list"
		}
		return fmt.Sprintf("it belongs to port %v", owner)
	}
	if p, ok := t.fabric.PortByGUID(alias); ok {
		return fmt.Sprintf("it is the port GUID of node %v", t.topo.NodeGUID(t.topo.Port(p).Node))
	}
	if t.fabric.IsMember(alias) {
		return "it is a port GUID that memberships are granted to"
	}
	return ""
}

// AllotRefused tries again to allot the aliases that were refused because another port had them.
func (t *Table) AllotRefused() {
	if len(t.refused) == 0 {
		return
	}
	for _, guid := range slices.Sorted(maps.Keys(t.refused)) {
		a := t.byPort[guid]
		for _, g := range a.given {
			delete(t.owner, g)
		}
		t.allot(guid, a)
	}
}

// Seat looks at the aliases of a port that came, went or is to have
// others.
func (t *Table) Seat(guid ib.GUID) {
	a := t.byPort[guid]
	if a == nil {
		return
	}
	t.stale = true
	p, ok := t.fabric.PortByGUID(guid)
	if !ok || !t.fabric.IsPlaced(p) {
		for _, g := range slices.Concat(a.have, a.given) {
			t.letGo(g, guid)
		}
		for _, g := range a.given {
			delete(t.waited, g)
		}
		a.have, a.known, a.told = nil, nil, false
		return
	}
	t.queue.MarkPort(work.GUID, p)
}

// Touch looks at the aliases of a port of which more is known now.
func (t *Table) Touch(p topo.PortID) {
	if len(t.byPort) == 0 {
		return
	}
	if a := t.byPort[t.topo.GUIDOf(p)]; a != nil && !a.told {
		t.queue.MarkPort(work.GUID, p)
	}
}

// IsClaimed reports whether a port that was found shows a GUID that is an alias of another, and closes it. Only a port that a
// grant names at its place comes before an alias.
func (t *Table) IsClaimed(guid ib.GUID, p topo.PortID) bool {
	owner, taken := t.owner[guid]
	if !taken {
		return false
	}
	if t.fabric.IsEntitled(guid, t.topo.PlaceOf(p)) {
		delete(t.owner, guid)
		a := t.byPort[owner]
		t.giveBack(owner, a)
		defer t.allot(owner, a)
		return false
	}
	first := t.byPort[owner].place
	t.fabric.Duplicate(guid, first, p)
	return true
}

// Has reports whether it was said which aliases a port is to have.
func (t *Table) Has(guid ib.GUID) bool { return t.byPort[guid] != nil }
