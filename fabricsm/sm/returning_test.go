package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// TestHealedSplitLosesNothing: all uplinks of the manager's leaf are cut and come back. Discovery, or what is read after it,
// then takes longer than tables wait for a change. Hosts on other leaves reach each other at every step: no table is
// written without them.
func TestHealedSplitLosesNothing(t *testing.T) {
	const slow = 20 * time.Millisecond
	for name, late := range map[string]func(*transport.Packet) time.Duration{
		"all answers": func(*transport.Packet) time.Duration { return slow },
		"PortInfo": func(p *transport.Packet) time.Duration {
			if p.MAD.Attr() == mad.AttrPortInfo {
				return 3 * slow
			}
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) { healedSplit(t, late) })
	}
}

func healedSplit(t *testing.T, late func(*transport.Packet) time.Duration) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 24, Radix: 16, Leaves: 4, Spines: 3})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true, Device: sim.Modern()}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Minute)
	leaf := e.list.Find("sm").Ports[1].Peer
	var far []endPort // one host of each other leaf
	seen := map[string]bool{leaf: true}
	for _, h := range hosts(e.list) {
		if !seen[h.peer] {
			seen[h.peer] = true
			far = append(far, h)
		}
	}
	var in sm.Intent
	for _, h := range far {
		in.Grants = append(in.Grants, sm.Grant{GUID: h.node.PortGUID(h.num), PKey: 0x8001, Place: h.place})
	}
	in.Revision = 1
	e.want(in)
	e.mustSettle(time.Minute)
	e.slow = late
	sent := 0
	e.onStep = func() {
		for _, a := range far {
			for _, b := range far {
				if a.node == b.node {
					continue
				}
				sent++
				slid, dlid := e.fab.PortInfo(a.node.Name, a.num).LID, e.fab.PortInfo(b.node.Name, b.num).LID
				r, err := e.fab.Inject(sim.Endpoint{Node: a.node.Name, Port: a.num}, sim.Data{SLID: slid, DLID: dlid, PKey: 0x8001, DestQP: 2, Payload: 64})
				if err != nil || r.Fate != sim.Delivered {
					t.Fatalf("after %v from %s to %s: %v at %s port %d, %v", e.now, a.node.Name, b.node.Name, r.Fate, r.At.Node, r.At.Port, err)
				}
			}
		}
	}
	var cut []ib.PortNum
	sw := e.list.Find(leaf)
	for num := 1; num < len(sw.Ports); num++ {
		if peer := sw.Ports[num].Peer; peer != "" && e.list.Find(peer).Type == ib.NodeSwitch {
			cut = append(cut, ib.PortNum(num))
			if err := e.fab.Unlink(leaf, ib.PortNum(num)); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.arrive(e.st.Take(nil))
	e.run(10 * time.Second)
	for _, num := range cut {
		if err := e.fab.Restore(leaf, num); err != nil {
			t.Fatal(err)
		}
	}
	e.arrive(e.st.Take(nil))
	e.mustSettle(5 * time.Minute)
	if sent == 0 || len(far) < 3 {
		t.Errorf("%d packets were sent between %d hosts, so nothing is proven", sent, len(far))
	}
}
