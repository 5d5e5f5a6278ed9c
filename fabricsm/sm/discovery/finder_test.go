package discovery_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is our own switch of 8 ports and what was found behind it. Each port was read and has a link.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	finder *discovery.Finder
	root   topo.NodeID
	own    topo.PortID
	byGUID map[ib.GUID]topo.PortID
	admit  discovery.Admission
	host   ib.Place
	did    []string
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := &fabric{root: topo.None, own: topo.None, byGUID: map[ib.GUID]topo.PortID{}}
	f.finder = discovery.New(f, f, &f.topo, &f.queue, identity.New(contests{f}, f, &f.topo, &f.queue), controls.Strict{})
	f.finder.FoundRoot(&mad.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 8, NodeGUID: 0x100, PortGUID: 0x100})
	f.did = nil
	return f
}

// contests is the fabric as package identity asks it.
type contests struct{ *fabric }

func (c contests) Root() topo.NodeID { return c.root }

func (f *fabric) note(format string, args ...any) {
	f.did = append(f.did, fmt.Sprintf(format, args...))
}
func (f *fabric) at(num ib.PortNum) topo.PortID { return f.topo.PortOf(f.root, num) }
func (f *fabric) num(p topo.PortID) ib.PortNum  { return f.topo.Port(p).Num }
func (f *fabric) guid(p topo.PortID) ib.GUID    { return f.topo.NodeGUID(f.topo.Port(p).Node) }

func (f *fabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.own }

func (f *fabric) IsAlive(id topo.NodeID) bool                         { return f.topo.Node(id).Type != 0 }
func (f *fabric) Life(topo.NodeID) uint32                             { return 1 }
func (f *fabric) IsDark(topo.PortID) bool                             { return false }
func (f *fabric) IsForHost(at ib.Place) bool                          { return at == f.host }
func (f *fabric) IsAlias(ib.GUID, topo.PortID) bool                   { return false }
func (f *fabric) Admit(topo.PortID, mad.NodeInfo) discovery.Admission { return f.admit }
func (f *fabric) PortByGUID(g ib.GUID) (topo.PortID, bool) {
	p, ok := f.byGUID[g]
	return p, ok
}

func (f *fabric) AddRoot(ni mad.NodeInfo) (topo.NodeID, topo.PortID) {
	f.root = f.Add(ni, topo.None)
	f.own = f.topo.PortOf(f.root, ni.LocalPortNum)
	return f.root, f.own
}

func (f *fabric) Add(ni mad.NodeInfo, _ topo.PortID) topo.NodeID {
	id := f.topo.AddNode(discovery.NodeOf(&ni))
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.note("add %x", uint64(ni.NodeGUID))
	return id
}

func (f *fabric) Link(p, q topo.PortID) {
	f.topo.Connect(p, q)
	f.note("link %d to port %d of %x", f.num(p), f.num(q), uint64(f.guid(q)))
}

func (f *fabric) Unlink(p topo.PortID) {
	f.topo.Disconnect(p)
	f.note("unlink %d", f.num(p))
}

func (f *fabric) Name(p topo.PortID, g ib.GUID) {
	tp := f.topo.Port(p)
	tp.GUID = g
	f.topo.SetPort(p, tp)
	f.byGUID[g] = p
}

func (f *fabric) Heard(id topo.NodeID)    { f.note("heard %x", uint64(f.topo.NodeGUID(id))) }
func (f *fabric) LeaveUnread(topo.PortID) {}
func (f *fabric) Describe(topo.NodeID)    {}
func (f *fabric) EnterSwitch(id topo.NodeID, _ topo.PortID) {
	f.note("enter %x", uint64(f.topo.NodeGUID(id)))
}
func (f *fabric) TurnAway(p topo.PortID) { f.note("turn away %d", f.num(p)) }
func (f *fabric) Resized(id topo.NodeID) { f.note("resized %x", uint64(f.topo.NodeGUID(id))) }

func (f *fabric) Own() topo.PortID                       { return f.own }
func (f *fabric) IsKnown(topo.PortID) bool               { return true }
func (f *fabric) IsUp(topo.PortID) bool                  { return true }
func (f *fabric) IsMute(topo.PortID) bool                { return false }
func (f *fabric) IsEntitled(ib.GUID, ib.Place) bool      { return false }
func (f *fabric) MayJoin(ib.GUID, ib.Place) bool         { return true }
func (f *fabric) Verify(p topo.PortID)                   { f.note("verify %d", f.num(p)) }
func (f *fabric) Close(topo.PortID) bool                 { return true }
func (f *fabric) LookLater(topo.PortID)                  {}
func (f *fabric) Join(topo.PortID, topo.PortID, ib.GUID) {}
func (f *fabric) Unname(_ topo.PortID, g ib.GUID)        { delete(f.byGUID, g) }
func (f *fabric) TwinGone(ib.Place)                      {}

func (f *fabric) ReportTwin(g ib.GUID, first, second ib.Place) {
	f.note("twin %x at %d and %d", uint64(g), first.Port, second.Port)
}

// adapter returns the NodeInfo of an adapter of 2 ports, whose GUIDs follow that of the node.
func adapter(guid ib.GUID, num ib.PortNum) *mad.NodeInfo {
	return &mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: guid, PortGUID: guid + ib.GUID(num), LocalPortNum: num, PartitionCap: 32}
}

// TestFound: what follows when an adapter answers behind ports of our switch, one after the other.
func TestFound(t *testing.T) {
	type answer struct {
		behind ib.PortNum
		ni     *mad.NodeInfo
	}
	wide := adapter(0x200, 1)
	wide.PartitionCap = 64
	other := adapter(0x200, 1)
	other.NumPorts = 1
	first := answer{1, adapter(0x200, 1)}
	for _, tt := range []struct {
		name    string
		answers []answer
		admit   discovery.Admission
		want    []string // the actions that follow from the last answer
	}{
		{name: "new", answers: []answer{first}, want: []string{"add 200", "link 1 to port 1 of 200"}},
		{name: "put off", answers: []answer{first}, admit: discovery.PutOff},
		{name: "turned away", answers: []answer{first}, admit: discovery.TurnedAway, want: []string{"turn away 1"}},
		{name: "again", answers: []answer{first, first}, want: []string{"heard 200"}},
		{name: "again with larger tables", answers: []answer{first, {1, wide}}, want: []string{"heard 200", "resized 200"}},
		{name: "second cable", answers: []answer{first, {2, adapter(0x200, 2)}}, want: []string{"link 2 to port 2 of 200"}},
		{name: "at two places", answers: []answer{first, {2, adapter(0x200, 1)}}, want: []string{"verify 1"}},
		{name: "of another size", answers: []answer{first, {2, other}}, want: []string{"twin 200 at 1 and 2"}},
		{name: "another one", answers: []answer{first, {1, adapter(0x300, 1)}}, want: []string{"unlink 1", "add 300", "link 1 to port 1 of 300"}},
		{name: "a port GUID that is taken", answers: []answer{first, {2, adapter(0x1ff, 2)}}, want: []string{"twin 201 at 1 and 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.admit = tt.admit
			linked := false
			for _, a := range tt.answers {
				f.did = nil
				linked = f.finder.Found(f.at(a.behind), a.ni)
			}
			if !slices.Equal(f.did, tt.want) {
				t.Errorf("did %q, want %q", f.did, tt.want)
			}
			last := tt.answers[len(tt.answers)-1]
			if peer := f.topo.Peer(f.at(last.behind)); linked != (peer != topo.None) {
				t.Errorf("linked with what answered: %v, but the port leads to %d", linked, peer)
			}
		})
	}
}

// TestIsPoser: a switch is refused where a host belongs, and nowhere else.
func TestIsPoser(t *testing.T) {
	f := newFabric(t)
	f.host = f.topo.PlaceOf(f.at(1))
	sw := &mad.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 8, NodeGUID: 0x400, PortGUID: 0x400}
	if !f.finder.IsPoser(f.at(1), sw) || f.finder.IsPoser(f.at(2), sw) || f.finder.IsPoser(f.at(1), adapter(0x200, 1)) {
		t.Error("only a switch at the place of a host is one")
	}
}

// TestDeadLinks: two links that fall silent shortly after each other are reported together while both are silent.
func TestDeadLinks(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(num ib.PortNum) ib.Place { return ib.Place{Switch: 0x100, Port: num} }
	gone := ib.Place{}
	silent := func(at ib.Place) bool { return at != gone }
	var d discovery.DeadLinks
	if with := d.Add(at(1), now, silent); !with.IsZero() {
		t.Errorf("the first is reported with %v", with)
	}
	if with := d.Add(at(2), now.Add(20*time.Second), silent); with != at(1) {
		t.Errorf("the second is reported with %v, want the first", with)
	}
	if with := d.Add(at(3), now.Add(45*time.Second), silent); with != at(2) {
		t.Errorf("the third is reported with %v, want the second", with)
	}
	gone = at(3)
	if with := d.Add(at(4), now.Add(60*time.Second), silent); !with.IsZero() {
		t.Errorf("the fourth is reported with %v, want none", with)
	}
}
