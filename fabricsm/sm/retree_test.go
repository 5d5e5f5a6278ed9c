package sm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestWaysAreShortest pulls cables between switches one after the other, until parts
// are cut off. After each, every node that can be reached is there, and asked over
// as few links as there can be.
func TestWaysAreShortest(t *testing.T) {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	l = list(t, l, err)
	for seed := range uint64(3) {
		e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, seed)
		e.start()
		e.mustSettle(10 * time.Second)
		rnd := rand.New(rand.NewPCG(seed, 3))
		all := cables(l)
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		lost, pulled := 0, make(map[[2]string]bool)
		for _, c := range all {
			if l.Find(c.peer).Type != ib.NodeSwitch {
				continue
			}
			if err := e.fab.Unlink(c.node, c.num); err != nil {
				t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
			e.run(100 * time.Millisecond)
			e.mustSettle(30 * time.Second)
			pulled[[2]string{c.node, c.peer}], pulled[[2]string{c.peer, c.node}] = true, true
			hops := hopsIn(l, pulled)
			for id, n := range e.view.Fabric.Nodes() {
				want, reached := hops[n.GUID]
				if (n.Type != 0) != reached {
					t.Fatalf("seed %d, %s/%d pulled: node %v is part of the fabric: %v, can be reached: %v", seed, c.node, c.num, n.GUID, n.Type != 0, reached)
				}
				if got := e.core.Hops(id); reached && got != want {
					t.Fatalf("seed %d, %s/%d pulled: node %v is asked over %d links, %d are enough", seed, c.node, c.num, n.GUID, got, want)
				}
			}
			if lost = len(l.Nodes) - len(hops); lost > 40 {
				break
			}
		}
		if lost <= 40 {
			t.Errorf("seed %d: only %d nodes were cut off", seed, lost)
		}
	}
}

// hopsIn returns the least number of links from the subnet manager to each node that can be reached, by GUID, without
// cables between some nodes.
func hopsIn(l *netlist.Netlist, pulled map[[2]string]bool) map[ib.GUID]int {
	sm := l.Find("sm")
	hops, todo := map[ib.GUID]int{sm.GUID: 0}, []*netlist.Node{sm}
	for ; len(todo) > 0; todo = todo[1:] {
		for _, p := range todo[0].Ports {
			if p.Peer == "" || pulled[[2]string{todo[0].Name, p.Peer}] {
				continue
			}
			next := l.Find(p.Peer)
			if _, ok := hops[next.GUID]; !ok {
				hops[next.GUID] = hops[todo[0].GUID] + 1
				todo = append(todo, next)
			}
		}
	}
	return hops
}
