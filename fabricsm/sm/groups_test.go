package sm_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/transport"
)

// wanted records which hosts are in which groups, kept beside the inputs of the core.
type wanted map[ib.LID]map[string]mcast.JoinState

func (w wanted) mlids() (all []ib.LID) {
	for mlid := range w {
		all = append(all, mlid)
	}
	slices.Sort(all)
	return all
}

func (w wanted) set(e *env) *sm.GroupsSet {
	in := &sm.GroupsSet{MLIDs: w.mlids()}
	for _, mlid := range in.MLIDs {
		for _, h := range sortedNames(w[mlid]) {
			in.Joins = append(in.Joins, multicast.Join{MLID: mlid, GUID: e.list.Find(h).PortGUID(1), State: w[mlid][h]})
		}
	}
	return in
}

func sortedNames(m map[string]mcast.JoinState) (all []string) {
	for h := range m {
		all = append(all, h)
	}
	slices.Sort(all)
	return all
}

// join has a host take part in a group, at once in the core too.
func (w wanted) join(e *env, mlid ib.LID, host string, state mcast.JoinState) {
	in := &sm.GroupsChanged{Joins: []multicast.Join{{MLID: mlid, GUID: e.list.Find(host).PortGUID(1), State: state}}}
	if w[mlid] == nil {
		w[mlid] = make(map[string]mcast.JoinState)
		in.Made = []ib.LID{mlid}
	}
	if delete(w[mlid], host); state.Sends() {
		w[mlid][host] = state
	}
	e.step(in)
}

// judge sends a packet from every member through the tables that the simulated switches have. All receiving members whose
// link is up, and that can be reached at all, get one copy, and no other host gets any.
func (w wanted) judge(e *env) {
	e.t.Helper()
	reach := islandsOf(e)
	for _, mlid := range w.mlids() {
		for _, from := range sortedNames(w[mlid]) {
			if e.fab.PortInfo(from, 1).PortState != ib.PortActive {
				continue
			}
			var want []sim.Endpoint
			for _, to := range sortedNames(w[mlid]) {
				if to != from && w[mlid][to].Receives() && reach[to] == reach[from] && e.fab.PortInfo(to, 1).PortState == ib.PortActive {
					want = append(want, sim.Endpoint{Node: to, Port: 1})
				}
			}
			got, err := e.fab.Multicast(sim.Endpoint{Node: from, Port: 1}, mlid)
			if err != nil {
				e.t.Fatal(err)
			}
			slices.SortFunc(got, func(a, b sim.Endpoint) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port)) })
			if !slices.Equal(got, want) {
				e.t.Fatalf("multicast 0x%04x from %s comes to %v, want %v; problems %q", uint16(mlid), from, got, want, e.problems())
			}
		}
	}
}

// islandsOf returns for each node a node that stands for all that it is connected with.
func islandsOf(e *env) map[string]string {
	head := make(map[string]string)
	for i := range e.list.Nodes {
		start := e.list.Nodes[i].Name
		if head[start] != "" {
			continue
		}
		head[start] = start
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			n := e.list.Find(queue[0])
			if n.Type != ib.NodeSwitch && queue[0] != start {
				continue
			}
			for num := 1; num < len(n.Ports); num++ {
				p := n.Ports[num]
				if p.Peer != "" && head[p.Peer] == "" && e.fab.PortInfo(n.Name, ib.PortNum(num)).PortState == ib.PortActive {
					head[p.Peer] = start
					queue = append(queue, p.Peer)
				}
			}
		}
	}
	return head
}

// spread makes some groups over the hosts of a fabric.
func spread(e *env, groups, members int, seed uint64) wanted {
	rng := rand.New(rand.NewPCG(seed, 9))
	all := hosts(e.list)
	w := make(wanted)
	for g := range groups {
		mlid := ib.MinMulticastLID + ib.LID(g*7) // over several blocks
		w[mlid] = make(map[string]mcast.JoinState)
		for range members {
			w[mlid][all[rng.IntN(len(all))].node.Name] = []mcast.JoinState{mcast.FullMember, mcast.NonMember, mcast.SendOnlyNonMember}[rng.IntN(3)]
		}
	}
	return w
}

func multicastEnv(t testing.TB, o sim.Options) *env {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	e := newEnv(t, list(t, l, err), o, sm.Config{AuditPeriod: time.Minute}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	return e
}

func (e *env) mftSMPs() (gets, sets int) {
	return e.smps["Get MulticastForwardingTable"], e.smps["Set MulticastForwardingTable"]
}

func TestGroupsAreProgrammed(t *testing.T) {
	for _, o := range []sim.Options{{}, {MulticastTop: true}} {
		t.Run(fmt.Sprintf("with MulticastFDBTop %v", o.MulticastTop), func(t *testing.T) {
			e := multicastEnv(t, o)
			w := spread(e, 20, 8, 1)
			e.step(w.set(e))
			e.mustSettle(10 * time.Second)
			w.judge(e)
			gets, sets := e.mftSMPs()
			if gets != 0 || sets == 0 {
				t.Errorf("%d blocks read and %d written on switches that had no configuration", gets, sets)
			}
			if len(e.view.Multicast.Trees) != 20 || e.view.Multicast.SL != 0 || e.view.Multicast.Ceiling != ib.MinMulticastLID+1024 {
				t.Errorf("view: %d trees, SL %d, ceiling %v", len(e.view.Multicast.Trees), e.view.Multicast.SL, e.view.Multicast.Ceiling)
			}

			before := e.sets()
			e.start()
			e.step(w.set(e))
			e.mustSettle(10 * time.Second)
			w.judge(e)
			if n := e.sets() - before; n != 0 {
				t.Errorf("a restart wrote %d times: %v", n, e.smps)
			}
			if more, _ := e.mftSMPs(); more == gets {
				t.Error("a restart read no multicast table")
			}
		})
	}
}

// TestGroupChangesCostLittle counts the writes of one change each.
func TestGroupChangesCostLittle(t *testing.T) {
	e := multicastEnv(t, sim.Options{})
	w := spread(e, 20, 8, 1)
	e.step(w.set(e))
	e.mustSettle(10 * time.Second)
	mlid := ib.MinMulticastLID + 7
	for _, tt := range []struct {
		name   string
		change func()
		most   int
	}{
		{"a host joins", func() { w.join(e, mlid, "h50", mcast.FullMember) }, 3},
		{"it joins again", func() { w.join(e, mlid, "h50", mcast.FullMember) }, 0},
		{"its neighbour joins", func() { w.join(e, mlid, "h51", mcast.FullMember) }, 1},
		{"it leaves", func() { w.join(e, mlid, "h51", 0) }, 1},
		{"a group goes", func() { delete(w, mlid); e.step(&sm.GroupsChanged{Gone: []ib.LID{mlid}}) }, 19},
		{"a group comes", func() { w.join(e, mlid, "h3", mcast.FullMember) }, 1},
		{"all groups told again", func() { e.step(w.set(e)) }, 0},
	} {
		_, before := e.mftSMPs()
		tt.change()
		e.mustSettle(10 * time.Second)
		w.judge(e)
		if _, now := e.mftSMPs(); now-before > tt.most {
			t.Errorf("%s: %d writes, want at most %d", tt.name, now-before, tt.most)
		}
	}
}

func TestTreesFollowTheFabric(t *testing.T) {
	e := multicastEnv(t, sim.Options{})
	w := spread(e, 20, 8, 1)
	e.step(w.set(e))
	e.mustSettle(10 * time.Second)
	leaf := e.list.Find("h3").Ports[1].Peer
	up := e.list.Find(leaf).Ports[6]
	for _, tt := range []struct {
		name   string
		change func() error
	}{
		{"a cable between switches goes", func() error { return e.fab.Unlink(leaf, 6) }},
		{"it comes back", func() error { return e.fab.Relink(leaf, 6, up.Peer, up.PeerPort) }},
		{"a host reboots", func() error { return e.fab.Reboot("h3") }},
		{"a leaf reboots", func() error { return e.fab.Reboot(leaf) }},
		{"a spine reboots", func() error { return e.fab.Reboot(up.Peer) }},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(3 * time.Second)
		e.mustSettle(2 * time.Minute)
		t.Log(tt.name)
		w.judge(e)
	}
}

// TestAuditRepairsMulticast clears a table behind the core's back.
func TestAuditRepairsMulticast(t *testing.T) {
	e := multicastEnv(t, sim.Options{})
	w := make(wanted)
	leaf := e.list.Find("sm").Ports[1].Peer
	if e.list.Find("h1").Ports[1].Peer != leaf {
		t.Fatal("h1 is not on the leaf of the subnet manager")
	}
	w.join(e, ib.MinMulticastLID, "h1", mcast.FullMember)
	w.join(e, ib.MinMulticastLID, "h30", mcast.FullMember)
	e.mustSettle(10 * time.Second)
	w.judge(e)
	route, _ := mad.Route{}.Append(1)
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, TID: 77, Attr: mad.AttrMulticastForwardingTable}, &route, ib.MKey{})
	e.st.Send(p)
	e.st.Take(nil)
	if got := e.fab.MulticastPorts(leaf, ib.MinMulticastLID); len(got) != 0 {
		t.Fatalf("the table was not cleared: %v", got)
	}
	e.run(2 * time.Minute)
	e.mustSettle(time.Minute)
	w.judge(e)
}
