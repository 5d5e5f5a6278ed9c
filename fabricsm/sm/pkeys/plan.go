package pkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/topo"
)

// planner knows what tables should hold.
type planner struct {
	fabric      Fabric
	topo        *topo.Builder
	members     *members.Register
	known       *known
	rules       partition.Rules
	switchFirst bool // controls.Partitions

	onlyDefault partition.Table // what most ports are to hold
	snapshot    *topo.Fabric    // that is planned on, nil when it is out of date
	self        [1]topo.PortID
}

func (l *planner) concerns(p topo.PortID) bool {
	if l.members.IsEmpty() {
		return false
	}
	return l.members.HasAt(l.topo.PlaceOf(p)) || !l.topo.IsExternal(p) && l.members.Has(l.topo.GUIDOf(p))
}

// needsOnlyDefault reports whether a port is to be a limited member of the default partition and nothing else, which needs
// no plan.
func (l *planner) needsOnlyDefault(p topo.PortID, pt *Port) bool {
	h, num := p, pt.Num
	if l.topo.IsExternal(p) {
		if h = l.topo.Peer(p); h == topo.None || !l.topo.IsEndPort(h) || !l.fabric.EnforcementOf(p).Possible {
			return false
		}
		num = l.topo.Port(h).Num
	}
	guid := l.topo.GUIDOf(h)
	full := l.fabric.IsManager(h) || l.rules.FullSwitches && num == 0
	return guid != 0 && !full && !l.members.Has(guid)
}

// planFor plans the P_Keys of an end port on the present topology.
func (l *planner) planFor(h topo.PortID) partition.PortPlan {
	if l.snapshot == nil {
		l.snapshot = l.topo.Freeze()
	}
	rules := l.rules
	rules.SM = l.self[:0]
	if l.fabric.IsManager(h) {
		l.self[0] = h
		rules.SM = l.self[:1]
	}
	now := partition.Current{EndPort: l.known.table(h).Keys()}
	sp := l.topo.Peer(h)
	if sp != topo.None && l.topo.IsExternal(sp) {
		now.Switch = l.known.table(sp).Keys()
	}
	wishes := l.members.Wishes(l.topo.GUIDOf(h))
	if sp != topo.None && len(wishes) > 0 && (l.fabric.EnforcementOf(sp).Forgotten || !l.fabric.MayBelong(sp)) {
		wishes = nil
	}
	return partition.PlanPort(l.snapshot, rules, h, wishes, now)
}

// want returns the table a port should hold now. It is not yet the planned one while the other end of the cable has to come
// first.
func (l *planner) want(p topo.PortID, pt *Port) (partition.Table, bool) {
	if !l.topo.IsExternal(p) {
		return l.wantEnd(p), true
	}
	peer := l.topo.Peer(p)
	if peer == topo.None || !l.topo.IsEndPort(peer) {
		return l.wantIdle(p, pt), true
	}
	if l.topo.GUIDOf(peer) == 0 {
		return nil, false
	}
	plan := l.planFor(peer)
	if !l.switchFirst {
		plan.Switch = l.withKeysOf(peer, plan.Switch, l.known.table(p).Keys())
	}
	return plan.Switch, plan.SwitchPort == p
}

// wantIdle is for a switch port with no host on it: it keeps the keys that are granted to the place, so that a reboot costs
// nothing, and loses others.
func (l *planner) wantIdle(p topo.PortID, pt *Port) partition.Table {
	want := slices.Clone(l.known.table(p).Keys())
	for i, k := range want {
		stays := l.members.Reviews() || l.members.IsInheritable(k) || l.members.IsGranted(l.topo.PlaceOf(p), k, false)
		if members.IsTenant(k) && (pt.Barred || !stays) {
			want[i] = 0
		}
	}
	return want
}

// wantEnd is the planned table of an end port, but for tenant keys whose turn it is not yet: a new one waits until the
// switch port was read back with it. For those that are to go see mustWait.
func (l *planner) wantEnd(p topo.PortID) partition.Table {
	plan, keys := l.planFor(p).EndPort, l.known.table(p).Keys()
	want := make(partition.Table, max(len(plan), len(keys)))
	copy(want, plan)
	sp := l.topo.Peer(p)
	for i, have := range keys {
		if want[i] != have && members.IsTenant(want[i]) && !l.switchHolds(sp, want[i]) {
			want[i] = 0
		}
	}
	return want
}

// withKeysOf returns the wanted table of a switch port while the tenants' keys that the end port behind it still has are
// left there, without controls.Partitions.SwitchFirst.
func (l *planner) withKeysOf(h topo.PortID, want, have partition.Table) partition.Table {
	want = slices.Clone(want)
	for i, k := range have {
		if t := l.known.table(h); members.IsTenant(k) && !slices.Contains(want, k) && (t == nil || slices.Contains(t.keys, k)) {
			for len(want) <= i {
				want = append(want, 0)
			}
			want[i] = k
		}
	}
	return want
}

// mustWait reports whether a block of an end port holds a key that is to be removed, and its switch port was not yet read
// back without that key. The block is then not written at all. A write with the old key could restore it on a port that has
// lost it in the meantime.
func (l *planner) mustWait(p topo.PortID, b int, want partition.Table) bool {
	if !l.switchFirst {
		return false
	}
	sp, keys := l.topo.Peer(p), l.known.table(p).Keys()
	for i := b * perBlock; i < (b+1)*perBlock; i++ {
		if have := keys[i]; members.IsTenant(have) && want[i] != have && !l.switchLacks(sp, have) {
			return true
		}
	}
	return false
}

func (l *planner) switchHolds(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !l.topo.IsExternal(sp) || !l.fabric.EnforcementOf(sp).Proven {
		return false
	}
	return l.known.table(sp).proves(k)
}

// switchLacks reports whether a key is proven to be absent from the switch port. It is also true where the switch has no
// P_Key table for it.
func (l *planner) switchLacks(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !l.topo.IsExternal(sp) || l.nodeOf(sp).Cap == 0 {
		return true
	}
	t := l.known.table(sp)
	if t == nil {
		return false
	}
	for i, o := range t.keys {
		if s := t.blocks[i/perBlock]; s == unknown || s == toProve {
			return false
		}
		if o.Base() == k.Base() && members.IsTenant(k) {
			return o != k // held with another membership: replaced, not removed
		}
	}
	return true
}

// nodeOf describes the node of a port.
func (l *planner) nodeOf(p topo.PortID) Node { return l.fabric.NodeOf(l.topo.Port(p).Node) }
