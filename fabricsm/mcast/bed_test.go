package mcast_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

const first = ib.MinMulticastLID

// multicast lets all switches of a kit forward multicast.
func multicast(k *topotest.Kit, room uint16) *topotest.Kit {
	for _, id := range k.Freeze().Switches() {
		n := k.Node(id)
		n.MulticastFDBCap = room
		k.SetNode(id, n)
	}
	return k
}

// routed returns a fabric with LIDs and its unicast tables.
func routed(t testing.TB, k *topotest.Kit, engines ...route.Engine) (*topo.Fabric, *route.Tables, *route.Report) {
	t.Helper()
	if len(engines) == 0 {
		engines = []route.Engine{minhop.Engine{}, updn.Engine{}}
	}
	f := multicast(k, 1024).Fabric()
	c, err := route.First(f, nil, engines...)
	if err != nil {
		t.Fatal(err)
	}
	return f, c.Tables, &c.Report
}

func ground(t testing.TB, k *topotest.Kit, engines ...route.Engine) *mcast.Ground {
	t.Helper()
	f, tables, report := routed(t, k, engines...)
	gr, err := mcast.NewGround(f, tables, report)
	if err != nil {
		t.Fatal(err)
	}
	return gr
}

// bed is a forest on a ground with what switches hold, as the changes say.
type bed struct {
	t       testing.TB
	f       *topo.Fabric
	forest  mcast.Forest
	masks   map[topo.NodeID]map[ib.LID]mcast.Ports
	members map[ib.LID]*mcast.Members
	changes int
}

func newBed(t testing.TB, gr *mcast.Ground) *bed {
	b := &bed{t: t, masks: make(map[topo.NodeID]map[ib.LID]mcast.Ports), members: make(map[ib.LID]*mcast.Members)}
	b.stand(gr)
	return b
}

func (b *bed) stand(gr *mcast.Ground) {
	b.f = gr.Fabric()
	b.forest.SetGround(gr)
	b.flush()
}

func (b *bed) flush() int {
	before := b.changes
	b.forest.Flush(func(c mcast.Change) {
		b.changes++
		if b.masks[c.Switch] == nil {
			b.masks[c.Switch] = make(map[ib.LID]mcast.Ports)
		}
		b.masks[c.Switch][c.MLID] = c.Ports
	})
	return b.changes - before
}

func (b *bed) mask(sw topo.NodeID, mlid ib.LID) mcast.Ports { return b.masks[sw][mlid] }

// host returns the end port of a host, and its switch and port.
func (b *bed) host(i int) (topo.PortID, topo.NodeID, ib.PortNum) {
	p := b.f.PortByGUID(topotest.HostGUID(i) + 1)
	if p == topo.None {
		b.t.Fatalf("there is no host %d", i)
	}
	at := b.f.Port(b.f.Port(p).Peer)
	return p, at.Node, at.Num
}

func (b *bed) join(mlid ib.LID, host int, state mcast.JoinState) {
	p, sw, num := b.host(host)
	if b.members[mlid] == nil {
		b.members[mlid] = &mcast.Members{MLID: mlid}
		b.forest.Add(mlid)
	}
	m := b.members[mlid]
	out := func(q topo.PortID) bool { return p == q }
	m.Receives, m.Sends = slices.DeleteFunc(m.Receives, out), slices.DeleteFunc(m.Sends, out)
	switch {
	case state.Receives():
		m.Receives = append(m.Receives, p)
	case state.Sends():
		m.Sends = append(m.Sends, p)
	}
	b.forest.Seat(mlid, sw, num, state)
}

// height is how many links it is from a root to the furthest switch of its tree.
func (b *bed) height(tree []mcast.Branch, root topo.NodeID) int {
	far := map[topo.NodeID]int{root: 0}
	most := 0
	for todo := []topo.NodeID{root}; len(todo) > 0; todo = todo[1:] {
		i := slices.IndexFunc(tree, func(br mcast.Branch) bool { return br.Switch == todo[0] })
		if i < 0 {
			b.t.Fatalf("switch %d is not in the tree", todo[0])
		}
		most = max(most, far[todo[0]])
		tree[i].Ports.Each(func(num ib.PortNum) {
			peer := b.f.Port(b.f.PortOf(todo[0], num)).Peer
			if b.f.NodeOf(peer).Type != ib.NodeSwitch {
				return
			}
			if to := b.f.Port(peer).Node; to != root && far[to] == 0 {
				far[to] = far[todo[0]] + 1
				todo = append(todo, to)
			}
		})
	}
	if len(far) != len(tree) {
		b.t.Errorf("%d of %d switches are below the root", len(far), len(tree))
	}
	return most
}

// judge runs the checker on the tables that switches hold.
func (b *bed) judge(report *route.Report, sl ib.SL) {
	b.t.Helper()
	var all []mcast.Members
	var lids []ib.LID
	for mlid, m := range b.members {
		all = append(all, *m)
		lids = append(lids, mlid)
	}
	if err := mcast.Check(b.f, b.mask, all); err != nil {
		b.t.Fatal(err)
	}
	if int(sl) >= len(report.Waits) {
		return // a lane of its own
	}
	if err := mcast.CheckWaits(b.f, report.Waits[sl], b.mask, lids); err != nil {
		b.t.Fatal(err)
	}
}
