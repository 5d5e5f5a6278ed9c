package pkeys

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// MaxInherited bounds the P_Keys that one port keeps at a takeover.
const MaxInherited = 126

// Inherited is what a port had when it was read first, and keeps while a takeover is open.
type Inherited struct {
	GUID  ib.GUID
	Place ib.Place
	PKeys []ib.PKey // full or limited as the port had it, each partition once
}

// takeOver finds, once for each switch port with an adapter behind it, what the two keep while a takeover is open. It reports
// whether the table of p may be written: until both tables were read, neither is.
func (k *Keeper) takeOver(p topo.PortID) bool {
	t, m, f := k.planner.topo, k.planner.members, k.planner.fabric
	if !m.TakesOver() {
		clear(k.looked)
		return true
	}
	sp, h := p, t.Peer(p)
	if !t.IsExternal(p) {
		sp, h = h, p
	}
	if sp == topo.None || h == topo.None || !t.IsExternal(sp) || !t.IsEndPort(h) || t.GUIDOf(h) == 0 || k.looked[t.PlaceOf(sp)] {
		return true
	}
	at := f.PortOf(sp)
	if !at.Known || !f.NodeOf(at.Node).Known {
		return false
	}
	// No data passes a link in Init, and a port that comes up there is not proven to be the one that had the P_Keys.
	if at.State >= ib.PortArmed && !at.Fresh {
		if !k.isRead(sp) || !k.isRead(h) && !k.planner.nodeOf(h).Silent && !f.IsPaused(h) {
			return false
		}
		k.inherit(sp, h, at.Checked && k.Blocks(sp) > 0)
	}
	k.looked[t.PlaceOf(sp)] = true
	k.queue.MarkPort(work.PKey, sp)
	k.queue.MarkPort(work.PKey, h)
	return true
}

// isRead reports whether all of a table was read, or there is none.
func (k *Keeper) isRead(p topo.PortID) bool { return k.Blocks(p) == 0 || k.known.table(p).IsKnown() }

// inherit has a port keep what it could use: the P_Keys of its adapter, and where its switch port checked P_Keys, those of them
// that the switch port has, too. A table of the adapter that cannot be read counts as that of the switch port then.
func (k *Keeper) inherit(sp, h topo.PortID, checked bool) {
	t, m := k.planner.topo, k.planner.members
	limits := []partition.Table{k.known.table(h).Keys()}
	if checked {
		limits = append(limits, k.known.table(sp).Keys())
		if !k.isRead(h) {
			limits = limits[1:]
		}
	} else if !k.isRead(h) {
		return
	}
	var keys []ib.PKey
	for _, have := range limits[0] {
		form, ok := usable(have, limits)
		if ok && m.IsInheritable(have) && !slices.Contains(keys, form) && len(keys) < MaxInherited {
			keys = append(keys, form)
		}
	}
	guid, pl := t.GUIDOf(h), t.PlaceOf(sp)
	if keys = m.Inherit(guid, pl, keys); len(keys) == 0 {
		return
	}
	slices.SortFunc(keys, func(a, b ib.PKey) int { return cmp.Compare(a.Base(), b.Base()) })
	k.Judge.events.Inherited(&Inherited{GUID: guid, Place: pl, PKeys: keys})
	k.Judge.Port(sp)
}

// usable returns the most that a port can use of a partition that all of some tables must have: full membership where all have it.
func usable(k ib.PKey, tables []partition.Table) (form ib.PKey, ok bool) {
	if !members.IsTenant(k) {
		return 0, false
	}
	form = k.Full()
	for _, t := range tables {
		switch {
		case slices.Contains(t, k.Full()):
		case slices.Contains(t, k.Limited()):
			form = k.Limited()
		default:
			return 0, false
		}
	}
	return form, true
}

// Failed takes that a device does not answer, or not as it is to: its switch ports may not have to wait for its tables any longer.
func (k *Keeper) Failed(id topo.NodeID) {
	if !k.planner.members.TakesOver() {
		return
	}
	k.planner.topo.EachEndPort(id, func(p topo.PortID) {
		if sp := k.planner.topo.Peer(p); sp != topo.None {
			k.queue.MarkPort(work.PKey, sp)
		}
	})
}
