package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestTwoChangesBehindOneTrap pulls a host and a link between switches at the same moment, while the switch at the other
// end of that link sends no trap: the host is seen gone at once, the link soon after.
func TestTwoChangesBehindOneTrap(t *testing.T) {
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	all := hosts(l)
	h := all[len(all)-1]
	leaf := l.Find(h.peer)
	trunk, spine := ib.PortNum(0), ""
	for num := 1; num < len(leaf.Ports); num++ {
		if peer := l.Find(leaf.Ports[num].Peer); peer != nil && peer.Type == ib.NodeSwitch {
			trunk, spine = ib.PortNum(num), peer.Name
		}
	}
	before := e.smps["Get PortInfo"]
	if err := e.fab.Unlink(leaf.Name, trunk); err != nil {
		t.Fatal(err)
	}
	cut(e, h.node.Name)
	if err := e.fab.SetFault(spine, sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		f := e.view.Fabric
		return f.Port(f.PortOf(f.NodeByGUID(leaf.GUID), trunk)).State == ib.PortDown
	}
	e.run(5 * time.Second)
	if _, ok := find(e.takeEvents(), func(p *sm.PortGone) bool { return p.GUID == h.node.PortGUID(h.num) }); !ok {
		t.Error("the host is not seen gone")
	}
	if !gone() {
		t.Errorf("the link from %s port %d is not seen gone after %d reads", leaf.Name, trunk, e.smps["Get PortInfo"]-before)
	}
}

// TestHostLeavesAsAnotherComes pulls a host at the very moment in which another
// one at the same switch is plugged in: the second explains the trap, the first
// is seen gone soon after.
func TestHostLeavesAsAnotherComes(t *testing.T) {
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	all := hosts(l)
	leaves, comes := all[len(all)-1], all[len(all)-2]
	if leaves.peer != comes.peer {
		t.Fatalf("%s and %s are at different switches", leaves.node.Name, comes.node.Name)
	}
	cut(e, comes.node.Name)
	e.run(5 * time.Second)
	e.mustSettle(time.Second)
	e.takeEvents()

	before := e.smps["Get PortInfo"]
	if err := e.fab.Unlink(leaves.node.Name, leaves.num); err != nil {
		t.Fatal(err)
	}
	back := comes.node.Ports[comes.num]
	if err := e.fab.Relink(comes.node.Name, comes.num, back.Peer, back.PeerPort); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	e.run(100 * time.Millisecond)
	if reads := e.smps["Get PortInfo"] - before; reads > 4 {
		t.Errorf("%d ports were read at once, want those without a link and the new one", reads)
	}
	e.run(3 * time.Second)
	events := e.takeEvents()
	if _, ok := find(events, func(p *sm.PortPlaced) bool { return p.GUID == comes.node.PortGUID(comes.num) }); !ok {
		t.Errorf("the host that came is not placed: %v", events)
	}
	if _, ok := find(events, func(p *sm.PortGone) bool { return p.GUID == leaves.node.PortGUID(leaves.num) }); !ok {
		t.Errorf("the host that left is not seen gone: %v", events)
	}
}
