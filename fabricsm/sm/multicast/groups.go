// Package multicast keeps which end ports take part in which multicast groups, plans the trees that packets of groups go
// along, and finds out which blocks of multicast forwarding tables have to be read and written for that.
//
// It has no clock and sends nothing. The core says what there is, and asks for the next block of a switch.
package multicast

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Join says how an end port takes part in the group of a multicast LID. State 0:
// it does not, or no longer.
type Join struct {
	MLID  ib.LID
	GUID  ib.GUID // port GUID
	State mcast.JoinState
}

// Seat is a port of a switch with an end port behind it; port 0: the switch itself.
type Seat struct {
	Switch topo.NodeID
	Port   ib.PortNum
}

// Switch is what Groups have to know of a switch.
type Switch struct {
	Cap     int  // entries of its multicast forwarding table; 0: it has none, or is not known
	IsReset bool // it came without configuration, so its table is empty
}

// Fabric is what Groups ask of the core.
type Fabric interface {
	// SeatOf returns where packets for an end port leave the switches, if it is there and its place is reported.
	SeatOf(ib.GUID) (Seat, bool)
	// SwitchOf describes a node. It returns zero for one that is no switch, or is gone.
	SwitchOf(topo.NodeID) Switch
	// Problem reports a fault, once, and keeps it in the views until it is solved.
	Problem(fault.Key, fault.Event)
	// Solved removes a fault from the views.
	Solved(fault.Key)
}

// Groups is the state of multicast. Use New.
type Groups struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue

	forest mcast.Forest
	joins  map[ib.GUID][]Join // by port GUID, each by multicast LID
	seated map[ib.GUID]Seat   // where its joins are counted
	tables []*table           // by topo.NodeID, nil before anything is wanted of it

	ready  bool // the first groups have arrived
	stale  bool // the ground is not that of the routes
	routes Routes
	blocks int // blocks of multicast LIDs that are in use, from 0 on
	told   map[ib.LID]bool
	shown  *View
}

// Routes are the unicast routes beside which trees have to grow.
type Routes struct {
	Fabric *topo.Fabric
	Tables *route.Tables
	Report *route.Report
}

// New returns the state of a fabric without groups.
func New(f Fabric, t *topo.Builder, q *work.Queue) *Groups {
	return &Groups{
		fabric: f, topo: t, queue: q,
		joins: make(map[ib.GUID][]Join), seated: make(map[ib.GUID]Seat), told: make(map[ib.LID]bool),
	}
}

// Set takes all groups that there are, with the members that joins names and no others.
func (g *Groups) Set(mlids []ib.LID, in []Join) {
	keep := make(map[ib.LID]bool, len(mlids))
	for _, mlid := range mlids {
		keep[mlid] = true
	}
	for _, mlid := range g.forest.MLIDs() {
		if !keep[mlid] {
			g.forest.Drop(mlid)
		}
	}
	joins := slices.Clone(in)
	slices.SortStableFunc(joins, byMember)
	for _, guid := range sortedGUIDs(g.joins) {
		for _, j := range slices.Clone(g.joins[guid]) {
			if _, stays := slices.BinarySearchFunc(joins, j, byMember); !stays {
				g.join(Join{MLID: j.MLID, GUID: guid})
			}
		}
	}
	g.Change(nil, mlids, joins)
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

// Change removes groups, then adds groups, and then takes how end ports take part.
func (g *Groups) Change(gone, made []ib.LID, joins []Join) {
	g.ready = true
	if len(gone) > 0 {
		drop := make(map[ib.LID]bool, len(gone))
		for _, mlid := range gone {
			drop[mlid] = true
			g.forest.Drop(mlid)
		}
		for _, guid := range sortedGUIDs(g.joins) {
			g.joins[guid] = slices.DeleteFunc(g.joins[guid], func(j Join) bool { return drop[j.MLID] })
			g.forgetIfIdle(guid)
		}
	}
	for _, mlid := range made {
		if mlid.IsMulticast() {
			g.forest.Add(mlid)
		}
	}
	for _, j := range joins {
		g.join(j)
	}
}

// join takes how an end port takes part in a group now.
func (g *Groups) join(j Join) {
	all := g.joins[j.GUID]
	i, found := slices.BinarySearchFunc(all, j, byMember)
	switch {
	case found && j.State.Sends():
		all[i] = j
	case found:
		g.joins[j.GUID] = slices.Delete(all, i, i+1)
	case !j.State.Sends() || !g.forest.Has(j.MLID):
		return
	default:
		g.joins[j.GUID] = slices.Insert(all, i, j)
	}
	s, ok := g.seated[j.GUID]
	if !ok {
		if s, ok = g.fabric.SeatOf(j.GUID); ok {
			g.seated[j.GUID] = s
		}
	}
	if ok {
		g.forest.Seat(j.MLID, s.Switch, s.Port, j.State)
	}
	g.forgetIfIdle(j.GUID)
}

func (g *Groups) forgetIfIdle(guid ib.GUID) {
	if len(g.joins[guid]) == 0 {
		delete(g.joins, guid)
		delete(g.seated, guid)
	}
}

// Reseat moves the memberships of an end port to where it is now.
func (g *Groups) Reseat(guid ib.GUID) {
	joins := g.joins[guid]
	if len(joins) == 0 {
		return
	}
	was, had := g.seated[guid]
	now, has := g.fabric.SeatOf(guid)
	if had == has && was == now {
		return
	}
	for _, j := range joins {
		if had {
			g.forest.Seat(j.MLID, was.Switch, was.Port, 0)
		}
		if has {
			g.forest.Seat(j.MLID, now.Switch, now.Port, j.State)
		}
	}
	if delete(g.seated, guid); has {
		g.seated[guid] = now
	}
}

// GrowOn takes the routes that trees have to go with.
func (g *Groups) GrowOn(r Routes) { g.routes, g.stale = r, true }

// HasRoutes reports whether GrowOn was called.
func (g *Groups) HasRoutes() bool { return g.routes.Report != nil }

// Ground returns where trees may grow beside the present routes, nil if that is not known. A ground is made when there is a
// group to grow on it, or when it decides about a virtual lane.
func (g *Groups) Ground() *mcast.Ground {
	if g.stale && (g.forest.Top() != 0 || g.routes.Tables.Layers() > 1) {
		g.stale = false
		g.makeGround()
	}
	return g.forest.Ground()
}

// makeGround finds where trees may grow beside the present routes. Without any
// they stay where they are.
func (g *Groups) makeGround() {
	gr, err := mcast.NewGround(g.routes.Fabric, g.routes.Tables, g.routes.Report)
	if err != nil && g.forest.Top() != 0 {
		g.fabric.Problem(fault.Key{Kind: fault.MulticastRefused}, &TreesRefused{Reason: err.Error()})
	} else {
		g.fabric.Solved(fault.Key{Kind: fault.MulticastRefused})
	}
	if gr != nil {
		g.forest.SetGround(gr)
	}
}

// Plan plans what changed of the trees, and marks the tables that differ. It reports whether anything changed.
func (g *Groups) Plan() bool {
	if !g.forest.Dirty() {
		return false
	}
	g.widen(g.forest.Top())
	g.forest.Flush(g.wantMask)
	g.tellLeft()
	return true
}

// tellLeft reports groups whose members cannot all be reached.
func (g *Groups) tellLeft() {
	for _, mlid := range g.forest.Planned() {
		k := fault.Key{Kind: fault.MulticastCut, MLID: mlid}
		left := g.forest.Left(mlid)
		if len(left) == 0 {
			if g.told[mlid] {
				delete(g.told, mlid)
				g.fabric.Solved(k)
			}
			continue
		}
		if !g.told[mlid] {
			g.told[mlid] = true
			g.fabric.Problem(k, &GroupCut{MLID: mlid, Switch: g.topo.NodeGUID(left[0]), Switches: len(left)})
		}
	}
}

// TreesRefused says that multicast cannot be routed without a possible credit
// loop in a part of the fabric. Groups there reach the hosts of one switch only.
type TreesRefused struct{ Reason string }

// GroupCut says that the tree of a group does not reach all switches with
// members.
type GroupCut struct {
	MLID     ib.LID
	Switch   ib.GUID // the first of those that are left out
	Switches int     // how many are
}

// FabricEvent marks an event of the fabric.
func (*TreesRefused) FabricEvent() {}

// FabricEvent marks an event of the fabric.
func (*GroupCut) FabricEvent() {}

func (e *TreesRefused) String() string { return "multicast: " + e.Reason }

func (e *GroupCut) String() string {
	return fmt.Sprintf("multicast LID 0x%04x does not reach the members at switch %v, nor those at %d others: no safe way leads there, or a table has no room",
		uint16(e.MLID), e.Switch, e.Switches-1)
}

// blocksTo returns the number of blocks up to a multicast LID, none up to 0.
func blocksTo(top ib.LID) int {
	if top == 0 {
		return 0
	}
	return int(top-ib.MinMulticastLID)/mad.MLIDsPerBlock + 1
}
