package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// TestPlan: every cable has two ends, and every host is on both rails.
func TestPlan(t *testing.T) {
	t.Parallel()
	p := newPlan(maxHosts, maxManagers)
	for _, n := range p.list.Nodes {
		for i, port := range n.Ports {
			if port.Peer == "" {
				continue
			}
			back := p.find(port.Peer).Ports[port.PeerPort]
			if back.Peer != n.Name || int(back.PeerPort) != i {
				t.Errorf("%s[%d] leads to %s[%d], which leads to %s[%d]", n.Name, i, port.Peer, port.PeerPort, back.Peer, back.PeerPort)
			}
		}
	}
	if len(p.hosts) != maxHosts || len(p.leaves) != rails*maxHosts/hostsPerLeaf {
		t.Fatalf("%d hosts on %d leaves", len(p.hosts), len(p.leaves))
	}
	for _, h := range p.hosts {
		if h.hcas[0].leaf == h.hcas[1].leaf {
			t.Errorf("both adapters of %s are on %s", h.id, h.hcas[0].leaf)
		}
	}
}

// TestConnected: a way past what is cut is found, and none where there is none.
func TestConnected(t *testing.T) {
	t.Parallel()
	p := newPlan(2*hostsPerLeaf, 1)
	near, far := p.hosts[0].hcas[0].node, p.hosts[hostsPerLeaf].hcas[0].node
	split := cut{}
	for i := range spines {
		split[sim.Endpoint{Node: p.leaves[0], Port: firstUplink + ib.PortNum(i)}] = true
	}
	for _, c := range []struct {
		name     string
		cut      cut
		from, to string
		want     bool
	}{
		{"nothing", nil, near, far, true},
		{"one spine", cut{{Node: p.spines[0]}: true}, near, far, true},
		{"leaf", cut{{Node: p.leaves[0]}: true}, near, far, false},
		{"other rail's leaf", cut{{Node: p.leaves[2]}: true}, near, far, true},
		{"end", cut{{Node: far}: true}, near, far, false},
		{"all uplinks", split, near, far, false},
		{"all uplinks, same leaf", split, near, p.hosts[1].hcas[0].node, true},
	} {
		if got := p.connected(c.cut, c.from, c.to); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSeed: a seed draws the same faults again.
func TestSeed(t *testing.T) {
	t.Parallel()
	s := &site{plan: newPlan(2*hostsPerLeaf, maxManagers), nodes: []*instance{{number: 0}, {number: 1}, {number: 2}}}
	s.leader.Store(s.nodes[1])
	for _, p := range s.plan.hosts {
		s.hosts = append(s.hosts, &machine{planned: p})
	}
	for _, f := range faults() {
		for i := range uint64(20) {
			a, b := f.draw(s, rand.New(rand.NewPCG(7, i))), f.draw(s, rand.New(rand.NewPCG(7, i)))
			if a.what != b.what || a.hold != b.hold {
				t.Errorf("%s: %q for %v, and %q for %v", f.name, a.what, a.hold, b.what, b.hold)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--hosts", "35"}, "multiple of 18"},
		{[]string{"--instances", "2"}, "want 1, or 3"},
		{[]string{"--instances", "1", "--only", "step-down"}, "fault step-down needs 3 instances"},
		{[]string{"--faults", "0"}, "at least 1"},
		{[]string{"--faults", "20", "--from", "21"}, "from 1 to that of --faults, 20"},
		{[]string{"--from", "0"}, "from 1 to that of --faults, 200"},
		{[]string{"--only", "kill,earthquake"}, `no fault "earthquake"`},
		{[]string{"now"}, `unexpected argument "now"`},
		{[]string{"--programs", "/nowhere"}, "run \"make\" first"},
	} {
		var out, said bytes.Buffer
		if got := run(t.Context(), c.args, &out, &said); got != exitUsage || !strings.Contains(said.String(), c.want) {
			t.Errorf("%v: status %d, %q; want %d and %q", c.args, got, said.String(), exitUsage, c.want)
		}
	}
}

// TestJudges: the judges find what is wrong.
func TestJudges(t *testing.T) {
	t.Parallel()
	p := newPlan(2*hostsPerLeaf, 1)
	s := &site{plan: p, fabric: sim.New(p.list), keys: map[string]ib.PKey{"one": ib.DefaultPKeyFull}}
	for _, h := range p.hosts {
		s.hosts = append(s.hosts, &machine{planned: h, allowed: map[string]bool{"one": true}})
	}
	if err := s.watchTables(); err != nil {
		t.Errorf("every host may hold the P_Key: %v", err)
	}
	s.hosts[20].forbid()
	if err := s.watchTables(); err == nil || !strings.Contains(err.Error(), s.hosts[20].hcas[0].node) {
		t.Errorf("%s holds a P_Key that it may not: %v", s.hosts[20].id, err)
	}

	from, to := s.hosts[0], s.hosts[1]
	for i, m := range []*machine{from, to} {
		if err := s.fabric.SetLID(m.hcas[0].node, 1, ib.LID(i+1), 0); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.startStream(from, to, 0, "one", false)
	if err != nil {
		t.Fatal(err)
	}
	w.flow.Send(1) // no switch has a route
	if err := lost([]*stream{w}); err == nil || !strings.Contains(err.Error(), "lost 1 of 1") {
		t.Errorf("a packet is lost: %v", err)
	}
	if ok, _ := restored([]*stream{w}, counts([]*stream{w})); ok {
		t.Error("a stream that delivers nothing counts as restored")
	}
	w.excused = true
	if err := lost([]*stream{w}); err != nil {
		t.Errorf("the path was cut: %v", err)
	}
}
