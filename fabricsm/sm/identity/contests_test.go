package identity_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch of 8 ports with adapters of 2 ports behind it. Each port has a link and was read, unless it is down.
type fabric struct {
	topo     topo.Builder
	queue    work.Queue
	contests *identity.Contests
	sw       topo.NodeID
	byGUID   map[ib.GUID]topo.PortID
	granted  map[ib.GUID]ib.Place
	host     ib.Place // place for a host
	down     map[topo.PortID]bool
	unread   map[topo.PortID]bool

	verified []topo.PortID
	twins    map[topo.PortID]ib.Place // closed ports, and where the GUID was first
}

func newFabric() *fabric {
	f := &fabric{
		byGUID: map[ib.GUID]topo.PortID{}, granted: map[ib.GUID]ib.Place{},
		down: map[topo.PortID]bool{}, unread: map[topo.PortID]bool{}, twins: map[topo.PortID]ib.Place{},
	}
	f.contests = identity.New(f, f, &f.topo, &f.queue)
	f.sw = f.topo.AddNode(topo.Node{GUID: 0x100, Type: ib.NodeSwitch, NumPorts: 8})
	f.queue.Extend(1, f.topo.NumPorts())
	return f
}

func (f *fabric) Root() topo.NodeID          { return f.sw }
func (f *fabric) Own() topo.PortID           { return f.topo.PortOf(f.sw, 0) }
func (f *fabric) IsKnown(p topo.PortID) bool { return !f.unread[p] }
func (f *fabric) IsUp(p topo.PortID) bool    { return !f.down[p] }
func (f *fabric) IsMute(topo.PortID) bool    { return false }

func (f *fabric) PortByGUID(g ib.GUID) (topo.PortID, bool) {
	p, ok := f.byGUID[g]
	return p, ok
}

func (f *fabric) IsEntitled(g ib.GUID, at ib.Place) bool { return f.granted[g] == at }
func (f *fabric) MayJoin(g ib.GUID, at ib.Place) bool    { return f.IsEntitled(g, at) }
func (f *fabric) IsForHost(at ib.Place) bool             { return at == f.host }

func (f *fabric) Verify(p topo.PortID)     { f.verified = append(f.verified, p) }
func (f *fabric) LookLater(topo.PortID)    {}
func (f *fabric) TwinGone(second ib.Place) { delete(f.twins, f.topo.SwitchPortAt(second)) }

func (f *fabric) Close(p topo.PortID) bool {
	f.topo.Disconnect(p)
	return true
}

func (f *fabric) Join(p, end topo.PortID, guid ib.GUID) {
	f.byGUID[guid] = end
	f.topo.Connect(p, end)
}

func (f *fabric) Unname(_ topo.PortID, g ib.GUID) { delete(f.byGUID, g) }

func (f *fabric) ReportTwin(_ ib.GUID, first, second ib.Place) {
	f.twins[f.topo.SwitchPortAt(second)] = first
}

func (f *fabric) at(num ib.PortNum) topo.PortID { return f.topo.PortOf(f.sw, num) }

// probes empties the queue, and reports whether a port is to ask what is behind it.
func (f *fabric) probes(p topo.PortID) (found bool) {
	for x, ok := f.queue.Pop(); ok; x, ok = f.queue.Pop() {
		f.queue.Unmark(x)
		found = found || x == work.OnPort(work.Probe, p)
	}
	return found
}

// add adds an adapter behind a port of the switch, with its port 1, whose GUID is one more than that of the node.
func (f *fabric) add(num ib.PortNum, guid ib.GUID) topo.NodeID {
	id := f.topo.AddNode(topo.Node{GUID: guid, Type: ib.NodeCA, NumPorts: 2, PartitionCap: 32})
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.Join(f.at(num), f.topo.PortOf(id, 1), guid+1)
	p := f.topo.Port(f.topo.PortOf(id, 1))
	p.GUID = guid + 1
	f.topo.SetPort(f.topo.PortOf(id, 1), p)
	return id
}

func adapter(node, port ib.GUID, num ib.PortNum) *mad.NodeInfo {
	return &mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: node, PortGUID: port, LocalPortNum: num, PartitionCap: 32}
}

// TestContest: a second place shows what is linked to the first. The first answers again, is gone, or shows another port.
func TestContest(t *testing.T) {
	f := newFabric()
	f.add(1, 0x200)
	f.contests.Contest(f.at(1), f.at(2))
	if !f.contests.IsOpen(f.at(1)) || len(f.verified) != 1 || !f.probes(f.at(1)) {
		t.Errorf("the first place is not asked again: open %v, verified %v", f.contests.IsOpen(f.at(1)), f.verified)
	}
	f.contests.Confirm(f.at(1))
	first, closed := f.twins[f.at(2)]
	if !closed || first != f.topo.PlaceOf(f.at(1)) || !f.contests.IsFenced(f.at(2)) || f.contests.IsOpen(f.at(1)) {
		t.Errorf("closed %v; want the second place alone", f.twins)
	}
	if f.contests.Unfence(f.at(2)); len(f.twins) > 0 || f.contests.IsFenced(f.at(2)) {
		t.Errorf("closed %v after the twin went", f.twins)
	}

	f.contests.Contest(f.at(1), f.at(3))
	if f.contests.Release(f.at(1)); !f.probes(f.at(3)) || len(f.twins) > 0 {
		t.Errorf("the claimant is not asked again when the first place is gone; closed %v", f.twins)
	}
}

// TestDeny: the second port of an adapter is shown at a place. It is linked when it says that it has a link, and closed
// when it says three times that it has none.
func TestDeny(t *testing.T) {
	for _, agrees := range []bool{true, false} {
		f := newFabric()
		id := f.add(1, 0x200)
		q := f.topo.PortOf(id, 2)
		f.down[q] = true
		if !f.contests.IsContradicted(f.at(2), q, adapter(0x200, 0x202, 2)) {
			t.Error("a port without a link is taken to lead there")
		}
		for range 2 {
			f.contests.Deny(f.at(2), q, 0x202)
		}
		if len(f.twins) > 0 {
			t.Errorf("closed %v too early", f.twins)
		}
		if agrees {
			delete(f.down, q)
			if !f.contests.Settle(q) || f.topo.Peer(q) != f.at(2) || f.contests.Settle(q) {
				t.Errorf("port 2 leads to %d, want %d", f.topo.Peer(q), f.at(2))
			}
			continue
		}
		f.contests.Deny(f.at(2), q, 0x202)
		if f.twins[f.at(2)] != f.topo.PlaceOf(f.at(1)) {
			t.Errorf("closed %v, want the second place", f.twins)
		}
	}
}

// TestMakeRoom: a place that a grant names for a GUID goes before the place where it was seen first.
func TestMakeRoom(t *testing.T) {
	f := newFabric()
	f.add(1, 0x200)
	f.contests.MakeRoom(f.at(2), adapter(0x300, 0x201, 1))
	if len(f.twins) > 0 {
		t.Errorf("closed %v without a grant", f.twins)
	}
	f.granted[0x201] = f.topo.PlaceOf(f.at(2))
	f.contests.MakeRoom(f.at(2), adapter(0x300, 0x201, 1))
	if f.twins[f.at(1)] != f.topo.PlaceOf(f.at(2)) {
		t.Errorf("closed %v, want the place without a grant", f.twins)
	}
	if _, ok := f.byGUID[0x201]; ok {
		t.Error("the port without a cable keeps its GUID")
	}
}

// TestRename: a host with a grant that shows the node GUID of another node gets one of its own, others do not.
func TestRename(t *testing.T) {
	f := newFabric()
	f.add(1, 0x200)
	ni := adapter(0x200, 0x301, 1)
	if f.contests.Rename(f.at(2), ni); ni.NodeGUID != 0x200 {
		t.Errorf("node GUID %v without a grant", ni.NodeGUID)
	}
	f.granted[0x301] = f.topo.PlaceOf(f.at(2))
	if f.contests.Rename(f.at(2), ni); ni.NodeGUID != 0x301^2<<56 {
		t.Errorf("node GUID %v, want one of its own", ni.NodeGUID)
	}
}
