package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestTwoChangesBehindOneTrap pulls a host and a link between switches at the
// same moment, while the switch at the other end of that link tells nothing:
// the host is seen gone at once, the link soon after.
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
