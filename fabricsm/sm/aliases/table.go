// Package aliases gives end ports further GUIDs, for virtual functions, and finds out whether they hold them.
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
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Wanted are the GUIDs that an end port is to have beside its own.
type Wanted struct {
	GUID    ib.GUID   // port GUID
	Place   ib.Place  // switch port it must be cabled to
	Aliases []ib.GUID // entries of GUIDInfo from 1 on, 0 for one that is unused
}

// Fabric is what a Table asks of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// Longer returns the pause that follows another one.
	Longer(time.Duration) time.Duration
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
func New(f Fabric, b *topo.Builder, q *work.Queue) *Table {
	return &Table{
		fabric: f, topo: b, queue: q,
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

// Step is the next thing to do about GUIDInfo of a port.
type Step struct {
	Method mad.Method // 0: nothing
	Block  int
	Audit  bool         // part of the background audit
	Want   mad.GUIDInfo // of a Set
}

// Next returns the next step that makes GUIDInfo of a port right, one block at a time. The port has to be placed, and read.
func (t *Table) Next(p topo.PortID) Step {
	guid := t.topo.GUIDOf(p)
	a := t.byPort[guid]
	if t.fabric.Now().Before(a.hold) {
		return Step{}
	}
	blocks := (t.fabric.Room(p) + mad.GUIDsPerBlock - 1) / mad.GUIDsPerBlock
	k := fault.Key{Kind: fault.AliasRefused, GUID: guid}
	if reason := t.fit(p, a, blocks); reason != "" {
		t.fabric.Refuse(k, guid, 0, reason)
		if blocks == 0 {
			return Step{}
		}
	}
	if len(a.known) != blocks {
		a.have, a.known = make([]ib.GUID, blocks*mad.GUIDsPerBlock), make([]bool, blocks)
	}
	for b, known := range a.known {
		if !known {
			return Step{Method: mad.MethodGet, Block: b, Audit: a.audit}
		}
	}
	a.audit = false
	for b := range a.known {
		want := t.want(p, a, b)
		if slices.Equal(want.GUID[:], a.have[b*mad.GUIDsPerBlock:][:mad.GUIDsPerBlock]) {
			continue
		}
		if a.rounds > maxRounds {
			a.rounds, a.pause = 0, t.fabric.Longer(a.pause)
			a.hold = t.fabric.Now().Add(a.pause)
			t.fabric.Refuse(k, guid, 0, "it answers without an error and changes nothing")
			t.fabric.RetryLater(p, a.pause)
			return Step{}
		}
		a.known[b], a.wrote = false, b+1 // until it was read back
		for i, g := range want.GUID {
			if g != 0 && b+i > 0 {
				t.holder[g] = guid
				delete(t.waited, g)
			}
		}
		return Step{Method: mad.MethodSet, Block: b, Want: want}
	}
	t.done(p, a)
	return Step{}
}

// maxRounds is how many Sets in a row may change nothing before a port is left alone for a while.
const maxRounds = 4

// fit says why a port cannot have its aliases as things stand.
func (t *Table) fit(p topo.PortID, a *port, blocks int) string {
	room := t.fabric.Room(p)
	used := len(a.given)
	for used > 0 && a.given[used-1] == 0 {
		used--
	}
	switch {
	case used == 0:
		return ""
	case t.topo.PlaceOf(p) != a.place:
		return fmt.Sprintf("wrong place: the port is seen at %v, not at %v", t.topo.PlaceOf(p), a.place)
	case blocks == 0 || used >= room:
		return fmt.Sprintf("it has room for %d GUIDs, and %d are wanted with its own", room, used+1)
	default:
		return ""
	}
}

// want returns the wanted content of a block. Entry 0 is the port's own GUID and never changes. Aliases that do not
// fit, or have no place here, are left empty.
func (t *Table) want(p topo.PortID, a *port, block int) (want mad.GUIDInfo) {
	if block == 0 {
		want.GUID[0] = a.have[0]
	}
	if t.topo.PlaceOf(p) != a.place {
		return want
	}
	for i := range want.GUID {
		if at := block*mad.GUIDsPerBlock + i; at > 0 && at <= len(a.given) && at < t.fabric.Room(p) && t.mayHold(a.given[at-1], t.topo.GUIDOf(p)) {
			want.GUID[i] = a.given[at-1]
		}
	}
	return want
}

// mayHold reports whether no other port holds an alias. An alias that changes its owner is removed from the old one first,
// if that one releases it in time.
func (t *Table) mayHold(alias, guid ib.GUID) bool {
	holder, held := t.holder[alias]
	since, waits := t.waited[alias]
	return !held || holder == guid || waits && t.fabric.Now().Sub(since) >= letGoTime
}

// letGoTime is how long a port may go on showing an alias that belongs to another.
const letGoTime = 10 * time.Second

// await has a port wait for aliases that others hold.
func (t *Table) await(p topo.PortID, a *port) {
	for _, g := range a.given {
		if _, waits := t.waited[g]; g == 0 || waits || t.mayHold(g, t.topo.GUIDOf(p)) {
			continue
		}
		t.waited[g] = t.fabric.Now()
		t.fabric.RetryLater(p, letGoTime)
	}
}

// letGo records that a port no longer holds an alias, and lets the owner have it.
func (t *Table) letGo(alias, guid ib.GUID) {
	if t.holder[alias] != guid {
		return
	}
	delete(t.holder, alias)
	delete(t.waited, alias)
	if owner, ok := t.owner[alias]; ok && owner != guid {
		if p, here := t.fabric.PortByGUID(owner); here {
			t.queue.MarkPort(work.GUID, p)
		}
	}
}

// keep records the content of a block of a port.
func (t *Table) keep(guid ib.GUID, a *port, b int, got *mad.GUIDInfo) {
	block := a.have[b*mad.GUIDsPerBlock:][:mad.GUIDsPerBlock]
	for i, g := range block {
		if g != 0 && b+i > 0 && !slices.Contains(got.GUID[:], g) {
			t.letGo(g, guid)
		}
	}
	for i, g := range got.GUID {
		if _, held := t.holder[g]; g != 0 && b+i > 0 && !held {
			t.holder[g] = guid
		}
	}
	copy(block, got.GUID[:])
}

// Answer takes a block that a port with aliases answered with. A Set is believed when a Get shows the same. It reports
// whether the audit found something else than there was.
func (t *Table) Answer(p topo.PortID, r *work.Request, got *mad.GUIDInfo) (disturbs bool) {
	guid := t.topo.GUIDOf(p)
	a, b := t.byPort[guid], int(r.Mod)
	if r.Method == mad.MethodGet {
		want := t.want(p, a, b)
		for i, g := range got.GUID {
			if g != 0 && g != want.GUID[i] && b+i > 0 {
				t.fabric.ShowsStrange(p, g)
			}
		}
		t.keep(guid, a, b, got)
		a.known[b] = true
		right := t.want(p, a, b) == *got
		if !right && a.wrote == b+1 {
			a.rounds++
		}
		if a.wrote = 0; !right {
			a.told = false
			disturbs = r.Audit
		}
	}
	t.queue.MarkPort(work.GUID, p)
	return disturbs
}

// Knows reports whether a block is one that a port with aliases has.
func (t *Table) Knows(p topo.PortID, block uint32) bool {
	a := t.byPort[t.topo.GUIDOf(p)]
	return a != nil && int(block) < len(a.known)
}

// Reject reports that a port answered with an error.
func (t *Table) Reject(p topo.PortID, method mad.Method, status mad.Status) {
	guid := t.topo.GUIDOf(p)
	t.fabric.Refuse(fault.Key{Kind: fault.AliasRefused, GUID: guid}, guid, 0, fmt.Sprintf("it refuses to %v GUIDInfo: %v", method, status))
}

// done reports that a port holds its aliases.
func (t *Table) done(p topo.PortID, a *port) {
	a.rounds, a.pause = 0, 0
	fits := t.fit(p, a, len(a.known)) == ""
	if fits {
		t.fabric.Solved(fault.Key{Kind: fault.AliasRefused, GUID: t.topo.GUIDOf(p)})
	}
	if fits && !t.holdsAll(a) {
		t.await(p, a)
		return
	}
	if a.told || !fits && t.topo.PlaceOf(p) != a.place {
		return
	}
	a.told, t.stale = true, true
	t.fabric.Applied(t.topo.GUIDOf(p), a.place, slices.Clone(a.given))
}

// holdsAll reports whether a port holds all the aliases it is assigned: none waits for another port to release it.
func (t *Table) holdsAll(a *port) bool {
	for i, g := range a.given {
		if g != 0 && (i+1 >= len(a.have) || a.have[i+1] != g) {
			return false
		}
	}
	return true
}

// Audit has GUIDInfo of a port read again.
func (t *Table) Audit(p topo.PortID) {
	if len(t.byPort) == 0 {
		return
	}
	if a := t.byPort[t.topo.GUIDOf(p)]; a != nil && a.told {
		a.audit = true
		clear(a.known)
		t.queue.MarkPort(work.GUID, p)
	}
}

// Has reports whether it was said which aliases a port is to have.
func (t *Table) Has(guid ib.GUID) bool { return t.byPort[guid] != nil }
