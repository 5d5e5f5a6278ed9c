package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// planFor plans the P_Keys of an end port on the present topology.
func (c *Core) planFor(h topo.PortID) partition.PortPlan {
	if c.members.plan == nil {
		c.members.plan = c.topo.Freeze()
	}
	weak := &c.cfg.Weakness
	rules := partition.Rules{
		SM: c.members.self[:0], FullSwitches: c.cfg.ClassKeys.FullSwitches, FullDefault: weak.FullDefault, MoveKeys: weak.MovesKeys, AnyCapacity: weak.AnyCapacity,
	}
	if c.managerPort(h) {
		c.members.self[0] = h
		rules.SM = c.members.self[:1]
	}
	if c.cfg.Enforcement == Accepted {
		rules.Enforcement = partition.EnforceCapacity
	}
	now := partition.Current{EndPort: c.ports[h].pkeys.table()}
	sp := c.topo.Peer(h)
	if sp != topo.None && c.topo.IsExternal(sp) {
		now.Switch = c.ports[sp].pkeys.table()
	}
	wishes := c.members.wishesOf(c.topo.GUIDOf(h))
	if sp != topo.None && len(wishes) > 0 && (c.forgetsEnforcement(sp) || !c.law.MayBelong(sp)) {
		wishes = nil
	}
	return partition.PlanPort(c.members.plan, rules, h, wishes, now)
}

// wishesOf returns what is granted to a GUID; the result is valid until the next call.
func (m *members) wishesOf(guid ib.GUID) []partition.Member {
	m.wishes = m.wishes[:0]
	for _, ms := range m.byGUID[guid] {
		if !ms.leaving && !ms.held {
			m.wishes = append(m.wishes, partition.Member(ms.Grant))
		}
	}
	return m.wishes
}

// wantKeys returns the table a port should hold now. It is not yet the planned one while the other end of the cable has to
// come first.
func (c *Core) wantKeys(p topo.PortID) (partition.Table, bool) {
	if !c.topo.IsExternal(p) {
		return c.wantEndKeys(p), true
	}
	peer := c.topo.Peer(p)
	if peer == topo.None || !c.topo.IsEndPort(peer) {
		return c.wantIdleKeys(p), true
	}
	if c.topo.GUIDOf(peer) == 0 {
		return nil, false
	}
	plan := c.planFor(peer)
	if c.cfg.Weakness.HCAFirst {
		plan.Switch = c.withKeysOf(peer, plan.Switch, c.ports[p].pkeys.table())
	}
	return plan.Switch, plan.SwitchPort == p
}

// wantIdleKeys is for a switch port with no host on it: it keeps the keys that
// are granted to the place, so that a reboot costs nothing, and loses others.
func (c *Core) wantIdleKeys(p topo.PortID) partition.Table {
	have := c.ports[p].pkeys.keys
	want := slices.Clone(have)
	for i, k := range want {
		if isTenant(k) && (c.ports[p].law > health.Ignore || !c.members.keep && !c.members.granted(c.topo.PlaceOf(p), k, false)) {
			want[i] = 0
		}
	}
	return want
}

// wantEndKeys is the planned table of an end port, but for tenant keys whose
// turn it is not yet: a new one waits until the switch port was read back with
// it. For those that are to go see mustWait.
func (c *Core) wantEndKeys(p topo.PortID) partition.Table {
	pt := &c.ports[p]
	plan := c.planFor(p).EndPort
	want := make(partition.Table, max(len(plan), len(pt.pkeys.keys)))
	copy(want, plan)
	sp := c.topo.Peer(p)
	for i, have := range pt.pkeys.keys {
		if want[i] != have && isTenant(want[i]) && !c.switchHolds(sp, want[i]) {
			want[i] = 0
		}
	}
	return want
}

// mustWait reports whether a block of an end port holds a key that is to be removed, and its switch port was not yet read
// back without that key. The block is then not written at all. A write with the old key could restore it on a port that has
// lost it in the meantime.
func (c *Core) mustWait(p topo.PortID, b int, want partition.Table) bool {
	sp := c.topo.Peer(p)
	if c.cfg.Weakness.HCAFirst {
		return false
	}
	for i := b * keysPerBlock; i < (b+1)*keysPerBlock; i++ {
		have := c.ports[p].pkeys.keys[i]
		if isTenant(have) && want[i] != have && !c.switchLacks(sp, have) {
			return true
		}
	}
	return false
}

func (c *Core) switchHolds(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !c.topo.IsExternal(sp) || !c.enforces(sp) {
		return false
	}
	return c.ports[sp].pkeys.proves(k)
}

// switchLacks reports whether a key is proven to be absent from the switch port. It is also true where the switch has no
// P_Key table for it.
func (c *Core) switchLacks(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !c.topo.IsExternal(sp) || c.nodes[c.ports[sp].node].info.PartitionEnforcementCap == 0 {
		return true
	}
	t := c.ports[sp].pkeys
	if t == nil {
		return false
	}
	for i, o := range t.keys {
		if s := t.blocks[i/keysPerBlock]; s == blockUnknown || s == blockProve {
			return false
		}
		if o.Base() == k.Base() && isTenant(k) {
			return o != k // held with another membership: replaced, not removed
		}
	}
	return true
}
