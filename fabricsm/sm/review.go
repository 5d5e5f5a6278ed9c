package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// A state that was restored from a backup is older than the fabric. Later grants and withdrawals are in the tables of the
// devices, but in no record. Until an operator has compared the two, an intent may hold memberships (Intent.Held), which
// are granted only where the switch port was read with the P_Key. It may also keep those that it does not name
// (Intent.Keep). A membership that a switch port was once seen to have stays granted, also when the switch loses its
// tables. Nothing is kept for a port whose link is in Init: no data passes it, and a port that comes up there is not proven
// to be the one that had the P_Key.

// setHeld takes the memberships that are granted where they are found.
func (m *members) setHeld(held []Grant) (named int) {
	for _, g := range held {
		ms := m.find(g)
		switch {
		case ms == nil:
			ms = m.add(membership{Grant: g, held: true})
		case ms.round == m.round:
			continue // granted, too: that counts
		case ms.leaving:
			ms.PKey, ms.leaving, ms.applied, ms.held = g.PKey, false, false, true
			m.changed = append(m.changed, ms)
		}
		if ms.round != m.round {
			ms.round = m.round
			named++
		}
		ms.kept = false
	}
	return named
}

// review compares a switch port's table, which was read whole and is not written yet, with an intent that holds
// memberships or keeps others.
func (c *Core) review(p topo.PortID) {
	m := &c.members
	if !m.keep || !c.topo.IsExternal(p) {
		return
	}
	pl, agreed := c.topo.PlaceOf(p), false
	for _, guid := range m.byPlace[pl] {
		for _, ms := range m.byGUID[guid] {
			if !ms.held || ms.Place != pl {
				continue
			}
			same := func(k ib.PKey) bool { return isTenant(k) && k.Base() == ms.PKey.Base() }
			if i := slices.IndexFunc(c.ports[p].pkeys.keys, same); i >= 0 {
				ms.PKey, ms.held, agreed = c.ports[p].pkeys.keys[i], false, true // full or limited, as it is
			}
		}
	}
	if kept := c.keepFound(p, pl); !agreed && !kept {
		return
	}
	if peer := c.topo.Peer(p); peer != topo.None {
		c.q.MarkPort(work.PKey, peer)
	}
	c.judgePort(p)
}

// keepFound records the tenants' P_Keys of a switch port that no membership of the place is about, as memberships of the
// port behind it.
func (c *Core) keepFound(p topo.PortID, pl ib.Place) (any bool) {
	m, peer := &c.members, c.topo.Peer(p)
	if peer == topo.None || !c.topo.IsEndPort(peer) || c.ports[p].info.PortState < ib.PortArmed {
		return false
	}
	guid := c.topo.GUIDOf(peer)
	if guid == 0 {
		return false
	}
	for _, k := range c.ports[p].pkeys.keys {
		if isTenant(k) && !m.about(pl, k) {
			m.add(membership{Grant: Grant{GUID: guid, PKey: k, Place: pl}, kept: true, round: m.round})
			m.changed = nil // no intent has changed it
			any = true
		}
	}
	return any
}

// about reports whether a membership of a place, of any port and also one that is to go, is of a partition.
func (m *members) about(pl ib.Place, k ib.PKey) bool {
	return slices.ContainsFunc(m.byPlace[pl], func(g ib.GUID) bool {
		return slices.ContainsFunc(m.byGUID[g], func(ms *membership) bool { return ms.Place == pl && ms.PKey.Base() == k.Base() })
	})
}

// tellHeld emits the event that a membership is held, once it is known that the switch port does not have the P_Key.
func (c *Core) tellHeld(ms *membership) {
	sp := c.topo.SwitchPortAt(ms.Place)
	if sp == topo.None || c.ports[sp].pkeys == nil || slices.Contains(c.ports[sp].pkeys.blocks, blockUnknown) {
		return
	}
	c.problem(ms.refused(), &MembershipRefused{
		GUID: ms.GUID, PKey: ms.PKey, Place: ms.Place, Revision: c.members.revision,
		Reason: "the state was restored, and the switch port does not have this P_Key: review the restore",
	})
}
