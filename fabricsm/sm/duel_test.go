package sm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestDuel has two cores compete in every order of rank and start, then kills
// the master.
func TestDuel(t *testing.T) {
	for _, tt := range []struct {
		name           string
		first, second  string
		p1, p2         uint8 // priorities
		m1, m2         uint8 // and while master
		winner         string
		firstWasMaster bool
	}{
		{"higher first", "sm", "h2", 9, 5, 9, 5, "sm", true},
		{"lower first", "sm", "h2", 5, 9, 5, 9, "h2", true},
		{"lower GUID first", "sm", "h2", 7, 7, 7, 7, "sm", true},
		{"higher GUID first", "h2", "sm", 7, 7, 7, 7, "sm", true},
		{"higher GUID first, raised while master", "h2", "sm", 7, 7, 12, 12, "h2", true},
		{"lower priority first, raised while master", "h2", "sm", 5, 9, 12, 12, "h2", true},
		{"both at once, lower GUID wins", "h2", "sm", 7, 7, 7, 7, "sm", false},
		{"both at once, higher priority wins", "h2", "sm", 8, 7, 8, 7, "h2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDuel(t, tree(t, 4, 4))
			d.start(tt.first, tt.p1, tt.m1, tt.second)
			var before map[string]ib.LID
			if tt.firstWasMaster {
				d.rules(tt.first, 5*time.Second)
				before = d.lids(tt.first)
			}
			d.start(tt.second, tt.p2, tt.m2, tt.first)
			took := d.rules(tt.winner, 5*time.Second)
			t.Logf("elected after %v: %s %v, %s %v", took, tt.first, d.told[tt.first], tt.second, d.told[tt.second])
			same(t, before, d.lids(tt.winner))
			d.run(10 * time.Second)
			if n := d.masters(tt.first) + d.masters(tt.second); n > 2 {
				t.Errorf("mastership went to and fro: %v, %v", d.told[tt.first], d.told[tt.second])
			}
			loser := tt.first
			if loser == tt.winner {
				loser = tt.second
			}
			before = d.lids(tt.winner)
			d.kill(tt.winner)
			took = d.rules(loser, 5*time.Second)
			t.Logf("took over after %v: %v", took, d.told[loser])
			if took > 2*time.Second {
				t.Errorf("it took %v to take over", took)
			}
			same(t, before, d.lids(loser))
		})
	}
}

// TestSplit cuts the fabric between two cores, so that there are two masters,
// and heals it: one is left, and all are together again.
func TestSplit(t *testing.T) {
	l, err := netlist.Chain(netlist.Shape{Hosts: 4, Switches: 2})
	l = list(t, l, err)
	var other string
	for _, h := range hosts(l) {
		if h.peer != l.Find("sm").Ports[1].Peer {
			other = h.node.Name
		}
	}
	for _, priority := range []uint8{5, 9} {
		t.Run(fmt.Sprintf("far one has priority %d", priority), func(t *testing.T) {
			d := newDuel(t, l)
			d.start("sm", 7, 7, other)
			d.start(other, priority, priority, "sm")
			winner := "sm"
			if priority > 7 {
				winner = other
			}
			d.rules(winner, 5*time.Second)
			before := d.lids(winner)
			near := l.Find("sm").Ports[1].Peer
			trunk := slices.IndexFunc(l.Find(near).Ports, func(p netlist.Port) bool { return p.Peer != "" && l.Find(p.Peer).Type == ib.NodeSwitch })
			far := l.Find(near).Ports[trunk]
			for range 3 {
				if err := d.fab.Unlink(near, ib.PortNum(trunk)); err != nil {
					t.Fatal(err)
				}
				d.run(5 * time.Second)
				for node, e := range d.envs {
					if e.view.State != ib.SMMaster || !e.view.Settled {
						t.Errorf("%s is %v after the split, settled %v", node, e.view.State, e.view.Settled)
					}
				}
				d.told = make(map[string][]ib.SMState)
				if err := d.fab.Relink(near, ib.PortNum(trunk), far.Peer, far.PeerPort); err != nil {
					t.Fatal(err)
				}
				took := d.rules(winner, 10*time.Second)
				t.Logf("one master after %v: %v", took, d.told)
				same(t, before, d.lids(winner))
				d.run(2 * time.Second)
				if n := d.masters("sm") + d.masters(other); n > 2 {
					t.Errorf("mastership went to and fro: %v", d.told)
				}
			}
		})
	}
}

// TestHandoverWritesLittle: on a settled fabric a handover costs one Set for each
// end port, which learns the master's LID, and the P_Keys of the two SMs.
func TestHandoverWritesLittle(t *testing.T) {
	d := newDuel(t, tree(t, 16, 8))
	d.start("h2", 5, 5, "sm")
	d.rules("h2", 5*time.Second)
	e := d.start("sm", 9, 9, "h2")
	d.rules("sm", 5*time.Second)
	ends := 0
	for i := range d.list.Nodes {
		n := &d.list.Nodes[i]
		ends++
		if n.Type == ib.NodeCA {
			ends += len(n.Ports) - 2
		}
	}
	got := make(map[string]int)
	for k, n := range e.smps {
		if len(k) > 4 && k[:4] == "Set " && k != "Set SMInfo" {
			got[k[4:]] = n
		}
	}
	t.Logf("%d end ports, Sets %v", ends, got)
	if got[mad.AttrPortInfo.String()] > ends+4 || got[mad.AttrPKeyTable.String()] > 4 || got[mad.AttrLinearForwardingTable.String()] > 0 || got[mad.AttrSLtoVLMappingTable.String()] > 0 {
		t.Errorf("the new master wrote %v to a settled fabric", got)
	}
}

// TestTakeoverKeepsRoutes: routes that came about one by one, so that routing
// all at once would choose others, stay as they are when another SM takes over.
func TestTakeoverKeepsRoutes(t *testing.T) {
	l := tree(t, 24, 8)
	d := newDuel(t, l)
	all := hosts(l)
	late := []string{"h5", "h11", "h3", "h17", "h8", "h14"}
	for _, h := range all {
		if slices.Contains(late, h.node.Name) {
			if err := d.fab.Unlink(h.node.Name, h.num); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.start("h2", 5, 5, "sm")
	d.rules("h2", 5*time.Second)
	for _, name := range late {
		i := slices.IndexFunc(all, func(h endPort) bool { return h.node.Name == name })
		if err := d.fab.Relink(name, 1, all[i].peer, all[i].pnum); err != nil {
			t.Fatal(err)
		}
		d.run(300 * time.Millisecond)
	}
	d.rules("h2", 5*time.Second)
	e := d.start("sm", 4, 4, "h2")
	d.rules("h2", 5*time.Second)
	before := d.lids("h2")
	d.kill("h2")
	d.rules("sm", 5*time.Second)
	same(t, before, d.lids("sm"))
	if n := e.smps["Set LinearForwardingTable"]; n > 0 {
		t.Errorf("the takeover moved routes: %d blocks were written", n)
	}
}

// TestDuelInChaos loses, repeats, delays and garbles packets, kills and starts
// cores and pulls cables at random. When that ends the one of highest rank
// rules alone, and it stays so.
func TestDuelInChaos(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			l := tree(t, 4, 4)
			d := newDuel(t, l)
			d.audit = 5 * time.Second
			nodes := []string{"sm", "h2"}
			begin := func(node string) {
				other := nodes[0]
				if node == other {
					other = nodes[1]
				}
				d.start(node, 7, 7, other)
			}
			cables := []ib.PortNum{3, 4} // of leaf1, to the spine
			far := l.Find("leaf1").Ports
			down := make(map[ib.PortNum]bool)
			toggle := func(p ib.PortNum) {
				var err error
				if down[p] {
					err = d.fab.Relink("leaf1", p, far[p].Peer, far[p].PeerPort)
				} else {
					err = d.fab.Unlink("leaf1", p)
				}
				if err != nil {
					t.Fatal(err)
				}
				down[p] = !down[p]
			}
			for range 12 {
				switch node := nodes[rng.IntN(2)]; rng.IntN(4) {
				case 0:
					toggle(cables[rng.IntN(2)])
				case 1:
					if d.envs[node] != nil {
						d.kill(node)
					}
				default:
					if d.envs[node] == nil {
						begin(node)
					}
				}
				for _, e := range d.envs {
					e.bad = chaos{lose: 0.2 * rng.Float64(), twice: 0.1 * rng.Float64(), delay: 0.1 * rng.Float64(), garble: 0.02 * rng.Float64()}
				}
				d.run(time.Duration(rng.IntN(1500)) * time.Millisecond)
			}
			for p := range down {
				if down[p] {
					toggle(p)
				}
			}
			for _, node := range nodes {
				if d.envs[node] == nil {
					begin(node)
				}
				d.envs[node].bad = chaos{}
			}
			d.run(20 * time.Second)
			d.rules("sm", 60*time.Second)
			d.told = make(map[string][]ib.SMState)
			d.run(10 * time.Second)
			if len(d.told) > 0 {
				t.Errorf("it does not hold: %v", d.told)
			}
			d.lids("sm")
		})
	}
}

// TestThree: of three the highest rules, then the next, however they started.
func TestThree(t *testing.T) {
	ranks := map[string]uint8{"sm": 3, "h1": 9, "h3": 6}
	for _, order := range [][]string{{"sm", "h1", "h3"}, {"h1", "h3", "sm"}, {"h3", "sm", "h1"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			d := newDuel(t, tree(t, 4, 4))
			for _, node := range order {
				d.start(node, ranks[node], ranks[node], slices.DeleteFunc(slices.Clone(order), func(o string) bool { return o == node })...)
				d.run(700 * time.Millisecond)
			}
			d.rules("h1", 5*time.Second)
			before := d.lids("h1")
			d.kill("h1")
			d.rules("h3", 5*time.Second)
			same(t, before, d.lids("h3"))
			d.start("h1", 1, 1, "sm", "h3")
			d.rules("h3", 5*time.Second)
			d.kill("h3")
			d.rules("sm", 5*time.Second)
			same(t, before, d.lids("sm"))
			d.run(3 * time.Second)
			d.told = make(map[string][]ib.SMState)
			d.run(10 * time.Second)
			if len(d.told) > 0 {
				t.Errorf("it does not hold: %v", d.told)
			}
		})
	}
}

// TestResign checks that a master that resigns hands the fabric over to a standby, which need not detect its end.
func TestResign(t *testing.T) {
	d := newDuel(t, tree(t, 4, 4))
	e := d.start("sm", 9, 9, "h2")
	d.rules("sm", 5*time.Second)
	d.start("h2", 5, 5, "sm")
	d.rules("sm", 5*time.Second)
	before := d.lids("sm")
	d.run(3 * time.Second) // the master has seen its standby
	e.step(&sm.Resign{})
	began := d.now
	for !e.resigned && d.now.Sub(began) < time.Second {
		d.run(slice)
	}
	if !e.resigned {
		t.Fatal("not resigned within a second")
	}
	d.kill("sm")
	for len(d.told["h2"]) == 0 || d.told["h2"][len(d.told["h2"])-1] != ib.SMMaster {
		if d.run(slice); d.now.Sub(began) > time.Second {
			t.Fatalf("no master after a second: %v", d.told)
		}
	}
	took := d.now.Sub(began)
	t.Logf("master after %v: %v", took, d.told)
	if took > 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	d.rules("h2", time.Second)
	same(t, before, d.lids("h2"))

	// Alone, nothing holds up the end.
	lone := newDuel(t, tree(t, 4, 4)).start("sm", 9, 9, "h2")
	lone.step(&sm.Resign{})
	if !lone.resigned {
		t.Error("without a standby the end has to wait")
	}
}

// TestHungStandby has a standby take requests and answer none, as a process that is paused does, while the audit goes on. The
// master is settled nearly all of the time, as beside a standby that answers: nothing that is wanted depends on the answer.
func TestHungStandby(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		d := newDuel(t, tree(t, 4, 4))
		d.audit = 20 * time.Second
		d.start("sm", 5, 0, "h1")
		d.rules("sm", 5*time.Second)
		d.start("h1", 4, 0, "sm")
		d.rules("sm", 5*time.Second)
		d.run(2 * time.Second)
		if hangs {
			delete(d.envs, "h1") // its port takes what comes
		}
		var settled, audited int
		const looks = 3000
		for range looks {
			d.run(10 * time.Millisecond)
			if d.envs["sm"].view.Settled {
				settled++
			}
			audited = d.envs["sm"].smps["Get PortInfo"]
		}
		t.Logf("hangs %v: settled in %d of %d looks, %d requests for PortInfo", hangs, settled, looks, audited)
		if settled < looks*9/10 {
			t.Errorf("hangs %v: settled in %d of %d looks", hangs, settled, looks)
		}
	}
}
