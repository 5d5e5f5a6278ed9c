package sm

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// workAliases makes GUIDInfo of a port right, one block at a time.
func (c *Core) workAliases(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.topo.GUIDOf(p)
	a := c.aliases.byPort[guid]
	if a == nil {
		c.workStrangeGUIDs(p)
		return
	}
	if !pt.placed || !pt.known || !c.writing() || c.now.Before(a.hold) {
		return
	}
	blocks := (int(pt.info.GUIDCap) + mad.GUIDsPerBlock - 1) / mad.GUIDsPerBlock
	k := fault.Key{Kind: fault.AliasRefused, GUID: guid}
	if reason := c.aliasesFit(p, a, blocks); reason != "" {
		c.problem(k, &AliasRefused{GUID: guid, Reason: reason})
		if blocks == 0 {
			return
		}
	}
	if len(a.known) != blocks {
		a.have, a.known = make([]ib.GUID, blocks*mad.GUIDsPerBlock), make([]bool, blocks)
	}
	x := work.OnPort(work.GUID, p)
	for b, known := range a.known {
		if !known {
			c.auditing = a.audit
			c.ask(x, pt.node, mad.MethodGet, mad.AttrGUIDInfo, uint32(b))
			c.auditing = false
			return
		}
	}
	a.audit = false
	for b := range a.known {
		want := c.wantGUIDs(p, a, b)
		if slices.Equal(want.GUID[:], a.have[b*mad.GUIDsPerBlock:][:mad.GUIDsPerBlock]) {
			continue
		}
		if a.rounds > maxSetRounds {
			a.rounds, a.pause = 0, c.longer(a.pause)
			a.hold = c.now.Add(a.pause)
			c.problem(k, &AliasRefused{GUID: guid, Reason: "it answers without an error and changes nothing"})
			c.after(a.pause, work.Retry, x)
			return
		}
		a.known[b], a.wrote = false, b+1 // until it was read back
		for i, g := range want.GUID {
			if g != 0 && b+i > 0 {
				c.aliases.holder[g] = guid
				delete(c.aliases.waited, g)
			}
		}
		m := c.ask(x, pt.node, mad.MethodSet, mad.AttrGUIDInfo, uint32(b))
		c.encode(mad.Encode(m.Data(), &want))
		return
	}
	c.aliasesDone(p, a)
}

// aliasesFit says why a port cannot have its aliases as things stand.
func (c *Core) aliasesFit(p topo.PortID, a *aliasPort, blocks int) string {
	pt := &c.ports[p]
	used := len(a.given)
	for used > 0 && a.given[used-1] == 0 {
		used--
	}
	switch {
	case used == 0:
		return ""
	case c.topo.PlaceOf(p) != a.place:
		return fmt.Sprintf("wrong place: the port is seen at %v, not at %v", c.topo.PlaceOf(p), a.place)
	case blocks == 0 || used >= int(pt.info.GUIDCap):
		return fmt.Sprintf("it has room for %d GUIDs, and %d are wanted with its own", pt.info.GUIDCap, used+1)
	default:
		return ""
	}
}

// wantGUIDs returns the wanted content of a block. Entry 0 is the port's own GUID and never changes. Aliases that do not
// fit, or have no place here, are left empty.
func (c *Core) wantGUIDs(p topo.PortID, a *aliasPort, block int) (want mad.GUIDInfo) {
	if block == 0 {
		want.GUID[0] = a.have[0]
	}
	if c.topo.PlaceOf(p) != a.place {
		return want
	}
	for i := range want.GUID {
		if at := block*mad.GUIDsPerBlock + i; at > 0 && at <= len(a.given) && at < int(c.ports[p].info.GUIDCap) && c.mayHold(a.given[at-1], c.topo.GUIDOf(p)) {
			want.GUID[i] = a.given[at-1]
		}
	}
	return want
}

// mayHold reports whether no other port holds an alias. An alias that changes its owner is removed from the old one first,
// if that one releases it in time.
func (c *Core) mayHold(alias, guid ib.GUID) bool {
	holder, held := c.aliases.holder[alias]
	since, waits := c.aliases.waited[alias]
	return !held || holder == guid || waits && c.now.Sub(since) >= letGoTime
}

// letGoTime is how long a port may go on showing an alias that belongs to another.
const letGoTime = 10 * time.Second

// await has a port wait for aliases that others hold.
func (c *Core) await(p topo.PortID, a *aliasPort) {
	for _, g := range a.given {
		if _, waits := c.aliases.waited[g]; g == 0 || waits || c.mayHold(g, c.topo.GUIDOf(p)) {
			continue
		}
		c.aliases.waited[g] = c.now
		c.after(letGoTime, work.Retry, work.OnPort(work.GUID, p))
	}
}

// letGo records that a port no longer holds an alias, and lets the owner have it.
func (c *Core) letGo(alias, guid ib.GUID) {
	if c.aliases.holder[alias] != guid {
		return
	}
	delete(c.aliases.holder, alias)
	delete(c.aliases.waited, alias)
	if owner, ok := c.aliases.owner[alias]; ok && owner != guid {
		if p, here := c.byPort[owner]; here {
			c.q.MarkPort(work.GUID, p)
		}
	}
}

// hold records the content of a block of a port.
func (c *Core) hold(guid ib.GUID, a *aliasPort, b int, got *mad.GUIDInfo) {
	block := a.have[b*mad.GUIDsPerBlock:][:mad.GUIDsPerBlock]
	for i, g := range block {
		if g != 0 && b+i > 0 && !slices.Contains(got.GUID[:], g) {
			c.letGo(g, guid)
		}
	}
	for i, g := range got.GUID {
		if _, held := c.aliases.holder[g]; g != 0 && b+i > 0 && !held {
			c.aliases.holder[g] = guid
		}
	}
	copy(block, got.GUID[:])
}

// gotGUIDs takes a block. A Set is believed when a Get shows the same.
func (c *Core) gotGUIDs(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	a := c.aliases.byPort[c.topo.GUIDOf(p)]
	b := int(r.Mod)
	var got mad.GUIDInfo
	if a == nil && status == mad.StatusOK && mad.Decode(m.Data(), &got) == nil {
		c.gotStrangeGUIDs(p, r, &got)
		return
	}
	if a == nil || b >= len(a.known) {
		return
	}
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil {
		c.problem(fault.Key{Kind: fault.AliasRefused, GUID: c.topo.GUIDOf(p)}, &AliasRefused{
			GUID: c.topo.GUIDOf(p), Reason: fmt.Sprintf("it refuses to %v GUIDInfo: %v", r.Method, status),
		})
		c.refused(r, status.String())
		return
	}
	if r.Method == mad.MethodGet {
		c.tellStrangeAliases(p, a, b, &got)
		c.hold(c.topo.GUIDOf(p), a, b, &got)
		a.known[b] = true
		right := c.wantGUIDs(p, a, b) == got
		if !right && a.wrote == b+1 {
			a.rounds++
		}
		if a.wrote = 0; !right {
			a.told = false
			if r.Audit {
				c.disturb()
			}
		}
	}
	c.q.MarkPort(work.GUID, p)
}

// aliasesDone says that a port holds its aliases.
func (c *Core) aliasesDone(p topo.PortID, a *aliasPort) {
	a.rounds, a.pause = 0, 0
	fits := c.aliasesFit(p, a, len(a.known)) == ""
	if fits {
		c.faults.Clear(fault.Key{Kind: fault.AliasRefused, GUID: c.topo.GUIDOf(p)})
	}
	if fits && !c.holdsAll(a) {
		c.await(p, a)
		return
	}
	if a.told || !fits && c.topo.PlaceOf(p) != a.place {
		return
	}
	a.told, c.aliases.stale, c.viewDue = true, true, true
	c.event(&AliasesApplied{GUID: c.topo.GUIDOf(p), Place: a.place, Aliases: slices.Clone(a.given)})
}

// holdsAll reports whether a port holds all the aliases it is assigned: none waits for another port to release it.
func (c *Core) holdsAll(a *aliasPort) bool {
	for i, g := range a.given {
		if g != 0 && (i+1 >= len(a.have) || a.have[i+1] != g) {
			return false
		}
	}
	return true
}

// auditAliases has GUIDInfo of a port read again.
func (c *Core) auditAliases(p topo.PortID) {
	if len(c.aliases.byPort) == 0 {
		return
	}
	if a := c.aliases.byPort[c.topo.GUIDOf(p)]; a != nil && a.told {
		a.audit = true
		clear(a.known)
		c.q.MarkPort(work.GUID, p)
	}
}

// aliasesShown is what views show of aliases. It is immutable.
type aliasesShown struct{ byPort map[topo.PortID][]ib.GUID }

// showAliases returns the aliases that were read back, by port.
func (c *Core) showAliases() *aliasesShown {
	if !c.aliases.stale {
		return c.aliases.shown
	}
	c.aliases.stale = false
	shown := &aliasesShown{make(map[topo.PortID][]ib.GUID)}
	for guid, a := range c.aliases.byPort {
		if p, ok := c.byPort[guid]; ok && a.told {
			shown.byPort[p] = slices.Clone(a.given)
		}
	}
	c.aliases.shown = shown
	return shown
}

// Aliases returns the alias GUIDs that a port holds, as they were read back: entries of GUIDInfo from 1 on, 0 for unused
// ones. The caller must not write to the result.
func (v *View) Aliases(p topo.PortID) []ib.GUID { return v.aliases.of(p) }

func (a *aliasesShown) of(p topo.PortID) []ib.GUID {
	if a == nil {
		return nil
	}
	return a.byPort[p]
}

// ChangedAliases visits the ports whose aliases differ from those of an older
// view, nil for none, some of them twice, in no order. Without a change it costs
// nothing.
func (v *View) ChangedAliases(old *View) iter.Seq[topo.PortID] {
	var was *aliasesShown
	if old != nil {
		was = old.aliases
	}
	return func(yield func(topo.PortID) bool) {
		if v.aliases == was {
			return
		}
		for _, side := range []*aliasesShown{was, v.aliases} {
			if side == nil {
				continue
			}
			for p := range side.byPort {
				if !slices.Equal(was.of(p), v.aliases.of(p)) && !yield(p) {
					return
				}
			}
		}
	}
}
