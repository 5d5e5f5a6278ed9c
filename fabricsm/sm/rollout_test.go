package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// ways follows packets through the tables that switches hold.
type ways struct {
	e    *env
	list *netlist.Netlist
	gone map[[2]string]bool // both directions of cables that are out
	lids map[string]ib.LID  // by CA
}

// outcome is where packets from a switch to a LID end.
type outcome int

const (
	arrives outcome = iota
	dropped
	circles
)

// follow returns the outcome for packets from a switch to a CA.
func (w *ways) follow(at, to string) outcome {
	for range 20 {
		port := w.e.fab.Egress(at, w.lids[to])
		n := w.list.Find(at)
		if port == ib.NoPort || int(port) >= len(n.Ports) || n.Ports[port].Peer == "" || w.gone[[2]string{at, n.Ports[port].Peer}] {
			return dropped
		}
		if at = n.Ports[port].Peer; at == to {
			return arrives
		}
	}
	return circles
}

// TestRepairsGoRoundNowhere pulls single cables between switches. While tables
// are written no packet between hosts goes round, none that arrived stops
// arriving, and nothing is written that the lost cable did not ask for; with the
// cable back the tables are as before.
func TestRepairsGoRoundNowhere(t *testing.T) {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	list(t, l, err)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(30 * time.Second)
	w := &ways{e: e, list: l, gone: make(map[[2]string]bool), lids: make(map[string]ib.LID)}
	var leaves []string
	for _, h := range hosts(l) {
		w.lids[h.node.Name] = e.fab.PortInfo(h.node.Name, h.num).LID
		if len(leaves) == 0 || leaves[len(leaves)-1] != h.peer {
			leaves = append(leaves, h.peer)
		}
	}
	for _, cable := range []struct {
		node string
		port ib.PortNum
	}{{leaves[4], 5}, {leaves[9], 4}} {
		peer := l.Find(cable.node).Ports[cable.port]
		w.gone[[2]string{cable.node, peer.Peer}], w.gone[[2]string{peer.Peer, cable.node}] = true, true
		before := e.smps["Set LinearForwardingTable"]
		if err := e.fab.Unlink(cable.node, cable.port); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		w.watch(t, leaves)
		written := e.smps["Set LinearForwardingTable"] - before
		if most := len(l.Nodes) - 54; written == 0 || written > 2*most {
			t.Errorf("%s port %d: %d blocks written on %d switches", cable.node, cable.port, written, most)
		}
		clear(w.gone)
		if err := e.fab.Relink(cable.node, cable.port, peer.Peer, peer.PeerPort); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		w.watch(t, leaves)
		if back := e.smps["Set LinearForwardingTable"] - before - written; back != written {
			t.Errorf("%s port %d: %d blocks written when the cable came back, %d when it went", cable.node, cable.port, back, written)
		}
	}
}

// watch lets the fabric settle and looks at all ways between leaves and hosts
// whenever a table was written.
func (w *ways) watch(t *testing.T, leaves []string) {
	t.Helper()
	arrived := make(map[[2]string]bool)
	looked := -1
	end := w.e.now.Add(20 * time.Second)
	for w.e.next(end) {
		if n := w.e.smps["Set LinearForwardingTable"]; n == looked {
			continue
		} else {
			looked = n
		}
		for _, leaf := range leaves {
			for host := range w.lids {
				k := [2]string{leaf, host}
				switch w.follow(leaf, host) {
				case arrives:
					arrived[k] = true
				case circles:
					t.Fatalf("packets from %s to %s go round", leaf, host)
				case dropped:
					if arrived[k] {
						t.Fatalf("packets from %s to %s arrived and do not any longer", leaf, host)
					}
				}
			}
		}
	}
	for _, leaf := range leaves {
		for host := range w.lids {
			if got := w.follow(leaf, host); got != arrives {
				t.Fatalf("in the end packets from %s to %s do not arrive", leaf, host)
			}
		}
	}
}
