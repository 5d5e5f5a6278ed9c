package aliases

import (
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

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
			a.rounds, a.pause = 0, t.longer(a.pause)
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
