package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// Join says how an end port takes part in the group of a multicast LID. State 0:
// it does not, or no longer.
type Join struct {
	MLID  ib.LID
	GUID  ib.GUID // port GUID
	State mcast.JoinState
}

// GroupsSet replaces all multicast groups: those of MLIDs, with the members that Joins names and no others. A LID that is
// not multicast is ignored. It comes with the first groups after a start: before it nothing is known, and no table is
// touched.
type GroupsSet struct {
	MLIDs []ib.LID
	Joins []Join
}

// GroupsChanged changes multicast groups: first Gone, then Made, then Joins.
type GroupsChanged struct {
	Made  []ib.LID
	Gone  []ib.LID
	Joins []Join // of groups that there are
}

func (*GroupsSet) input()     {}
func (*GroupsChanged) input() {}

// Multicast is the multicast part of a View.
type Multicast struct {
	// SL is the service level that packets of groups must have.
	SL ib.SL
	// Ceiling is the lowest multicast LID that cannot be used, as some switch
	// has no room for it.
	Ceiling ib.LID
	// Trees are what is wanted of switches, by multicast LID, and when
	// View.Settled what they have.
	Trees []mcast.Tree
}

// groups is the state of multicast.
type groups struct {
	forest mcast.Forest
	joins  map[ib.GUID][]Join // by port GUID, each by multicast LID
	seated map[ib.GUID]seat   // where its joins are counted

	ready  bool // the first groups have arrived
	stale  bool // the ground is not that of the tables
	fabric *topo.Fabric
	tables *route.Tables
	report *route.Report
	blocks int // blocks of multicast LIDs that are in use, from 0 on
	told   map[ib.LID]bool
	shown  *Multicast
}

// seat is a port of a switch with an end port behind it.
type seat struct {
	sw   topo.NodeID
	port ib.PortNum
}

func newGroups() groups {
	return groups{joins: make(map[ib.GUID][]Join), seated: make(map[ib.GUID]seat), told: make(map[ib.LID]bool)}
}

// setGroups takes all groups that there are.
func (c *Core) setGroups(in *GroupsSet) {
	m := &c.groups
	keep := make(map[ib.LID]bool, len(in.MLIDs))
	for _, mlid := range in.MLIDs {
		keep[mlid] = true
	}
	for _, mlid := range m.forest.MLIDs() {
		if !keep[mlid] {
			m.forest.Drop(mlid)
		}
	}
	joins := slices.Clone(in.Joins)
	slices.SortStableFunc(joins, byMember)
	for _, guid := range sortedGUIDs(m.joins) {
		for _, j := range slices.Clone(m.joins[guid]) {
			if _, stays := slices.BinarySearchFunc(joins, j, byMember); !stays {
				c.join(Join{MLID: j.MLID, GUID: guid})
			}
		}
	}
	c.changeGroups(&GroupsChanged{Made: in.MLIDs, Joins: joins})
}

func byMember(a, b Join) int { return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.MLID, b.MLID)) }

func sortedGUIDs(m map[ib.GUID][]Join) []ib.GUID {
	guids := make([]ib.GUID, 0, len(m))
	for g := range m {
		guids = append(guids, g)
	}
	slices.Sort(guids)
	return guids
}

func (c *Core) changeGroups(in *GroupsChanged) {
	m := &c.groups
	c.viewDue, m.ready = true, true
	if len(in.Gone) > 0 {
		gone := make(map[ib.LID]bool, len(in.Gone))
		for _, mlid := range in.Gone {
			gone[mlid] = true
			m.forest.Drop(mlid)
		}
		for _, guid := range sortedGUIDs(m.joins) {
			m.joins[guid] = slices.DeleteFunc(m.joins[guid], func(j Join) bool { return gone[j.MLID] })
			c.forgetIfIdle(guid)
		}
	}
	for _, mlid := range in.Made {
		if mlid.IsMulticast() {
			m.forest.Add(mlid)
		}
	}
	for _, j := range in.Joins {
		c.join(j)
	}
}

// join takes how an end port takes part in a group now.
func (c *Core) join(j Join) {
	m := &c.groups
	all := m.joins[j.GUID]
	i, found := slices.BinarySearchFunc(all, j, byMember)
	switch {
	case found && j.State.Sends():
		all[i] = j
	case found:
		m.joins[j.GUID] = slices.Delete(all, i, i+1)
	case !j.State.Sends() || !m.forest.Has(j.MLID):
		return
	default:
		m.joins[j.GUID] = slices.Insert(all, i, j)
	}
	s, ok := m.seated[j.GUID]
	if !ok {
		if s, ok = c.seatOf(j.GUID); ok {
			m.seated[j.GUID] = s
		}
	}
	if ok {
		m.forest.Seat(j.MLID, s.sw, s.port, j.State)
	}
	c.forgetIfIdle(j.GUID)
}

func (c *Core) forgetIfIdle(guid ib.GUID) {
	if len(c.groups.joins[guid]) == 0 {
		delete(c.groups.joins, guid)
		delete(c.groups.seated, guid)
	}
}

// seatOf returns where packets for an end port leave the switches, if it is there and its place is reported.
func (c *Core) seatOf(guid ib.GUID) (seat, bool) {
	p, ok := c.byPort[guid]
	if !ok {
		return seat{}, false
	}
	pt := &c.ports[p]
	if pt.num == 0 {
		return seat{sw: pt.node}, true
	}
	at := c.topo.Peer(p)
	if !pt.placed || at == topo.None || !c.topo.IsExternal(at) {
		return seat{}, false
	}
	return seat{c.ports[at].node, c.ports[at].num}, true
}

// reseat moves the memberships of an end port to where it is now.
func (c *Core) reseat(guid ib.GUID) {
	m := &c.groups
	joins := m.joins[guid]
	if len(joins) == 0 {
		return
	}
	was, had := m.seated[guid]
	now, has := c.seatOf(guid)
	if had == has && was == now {
		return
	}
	for _, j := range joins {
		if had {
			m.forest.Seat(j.MLID, was.sw, was.port, 0)
		}
		if has {
			m.forest.Seat(j.MLID, now.sw, now.port, j.State)
		}
	}
	if delete(m.seated, guid); has {
		m.seated[guid] = now
	}
}

// growOn takes the tables that trees have to go with.
func (c *Core) growOn(in *TablesReady) {
	m := &c.groups
	m.fabric, m.tables, m.report, m.stale = in.fabric, in.tables, in.report, true
}

// plant plans what changed of the trees, and marks the tables that differ.
func (c *Core) plant() {
	m := &c.groups
	if m.report == nil {
		return
	}
	// A ground is made when there is a group to grow on it, or when it decides
	// about a virtual lane.
	if m.stale && (m.forest.Top() != 0 || m.tables.Layers() > 1) {
		m.stale = false
		c.makeGround()
	}
	if c.lanes.routes != c.routing.tables || c.lanes.ground != m.forest.Ground() {
		c.relane()
	}
	if !m.forest.Dirty() {
		return
	}
	c.widen(m.forest.Top())
	m.forest.Flush(c.wantMask)
	c.tellLeft()
	c.viewDue = true
}

// makeGround finds where trees may grow beside the present routes. Without any
// they stay where they are.
func (c *Core) makeGround() {
	m := &c.groups
	gr, err := mcast.NewGround(m.fabric, m.tables, m.report)
	if err != nil && m.forest.Top() != 0 {
		c.problem(fault.Key{Kind: fault.MulticastRefused}, &TreesRefused{Reason: err.Error()})
	} else {
		c.faults.Clear(fault.Key{Kind: fault.MulticastRefused})
	}
	if gr != nil {
		m.forest.SetGround(gr)
	}
}

// tellLeft reports groups whose members cannot all be reached.
func (c *Core) tellLeft() {
	m := &c.groups
	for _, mlid := range m.forest.Planned() {
		k := fault.Key{Kind: fault.MulticastCut, MLID: mlid}
		left := m.forest.Left(mlid)
		if len(left) == 0 {
			if m.told[mlid] {
				delete(m.told, mlid)
				c.faults.Clear(k)
			}
			continue
		}
		if !m.told[mlid] {
			m.told[mlid] = true
			c.problem(k, &GroupCut{MLID: mlid, Switch: c.topo.NodeGUID(left[0]), Switches: len(left)})
		}
	}
}

// multicastView returns the multicast part of a view, the one before if nothing changed.
func (c *Core) multicastView() *Multicast {
	m := &c.groups
	trees := m.forest.Trees()
	v := Multicast{Trees: trees, Ceiling: mcast.Ceiling(c.topo.Freeze())}
	if gr := m.forest.Ground(); gr != nil {
		v.SL = gr.SL
	}
	if s := m.shown; s != nil && s.SL == v.SL && s.Ceiling == v.Ceiling && len(s.Trees) == len(trees) && (len(trees) == 0 || &s.Trees[0] == &trees[0]) {
		return s
	}
	m.shown = &v
	return m.shown
}
