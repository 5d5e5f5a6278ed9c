package sm_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

var (
	seeds = flag.Int("sm.seeds", 150, "random schedules to run")
	from  = flag.Uint64("sm.from", 1, "first seed of the random schedules")
)

// watcher judges the devices after every step, whatever the core believes.
type watcher struct {
	e     *env
	hosts []endPort
	hca   [][]ib.PKey // by host, as last seen
	gate  [][]ib.PKey // of the switch port in front of it
	lost  []bool      // the switch lost its table unseen, by a reboot

	rebooted map[ib.GUID]time.Time // by host: it, or its switch
	placed   map[ib.GUID]time.Time // when PortPlaced was told

	shaken time.Time // when a device last lost its tables behind the core's back
	seen   int       // events judged
}

func watch(e *env) *watcher {
	w := &watcher{e: e, hosts: hosts(e.list), rebooted: make(map[ib.GUID]time.Time), placed: make(map[ib.GUID]time.Time)}
	w.hca, w.gate = make([][]ib.PKey, len(w.hosts)), make([][]ib.PKey, len(w.hosts))
	w.lost = make([]bool, len(w.hosts))
	e.onStep = w.check
	return w
}

func (w *watcher) check() {
	w.e.t.Helper()
	w.checkLIDs()
	w.checkTold()
	for i, h := range w.hosts {
		hca, gate := w.e.fab.PKeys(h.node.Name, h.num), w.e.fab.PKeys(h.peer, h.pnum)
		for _, k := range tenants(gate) {
			if !slices.Contains(w.gate[i], k) && !w.granted(func(g sm.Grant) bool { return g.PKey == k && g.Place == h.place }) {
				w.e.t.Fatalf("switch port %v was given %v, which nobody is granted there", h.place, k)
			}
		}
		w.lost[i] = w.lost[i] && len(tenants(gate)) == 0
		for _, k := range tenants(hca) {
			if slices.Contains(w.hca[i], k) {
				continue
			}
			if !w.granted(func(g sm.Grant) bool { return g.PKey == k && g.GUID == h.node.PortGUID(h.num) }) {
				w.e.t.Fatalf("HCA of %s was given %v, which it is not granted", h.node.Name, k)
			}
			if !slices.Contains(gate, k) && !w.lost[i] && w.linked(&h) {
				w.e.t.Fatalf("HCA of %s was given %v before its switch port %v", h.node.Name, k, h.place)
			}
		}
		w.hca[i], w.gate[i] = hca, gate
	}
}

// checkTold judges at the moment they are told what memberships are said to
// have become true.
func (w *watcher) checkTold() {
	w.e.t.Helper()
	for _, ev := range w.e.events[max(0, w.seen-w.e.taken):] {
		switch ev := ev.(type) {
		case *sm.PortPlaced:
			w.placed[ev.GUID] = w.e.now
		case *sm.MembershipApplied:
			// An answer may have been on its way when a device rebooted, and
			// while all its packets are lost nobody can know that it did.
			down := w.rebooted[ev.GUID]
			if !down.IsZero() && (w.e.now.Sub(w.shaken) <= 3*timeout || !w.placed[ev.GUID].After(down)) {
				continue
			}
			if h := w.host(ev.GUID); !slices.Contains(w.gateOf(ev.Place), ev.PKey) || !slices.Contains(w.hcaOf(h), ev.PKey) {
				w.e.t.Fatalf("told: %v; switch port holds %v, HCA %v", ev, w.gateOf(ev.Place), w.hcaOf(h))
			}
		case *sm.MembershipRemoved:
			h, at := w.host(ev.GUID), sm.Grant{GUID: ev.GUID, PKey: ev.PKey, Place: ev.Place}
			granted := func(g sm.Grant) bool { return g.PKey == at.PKey && g.Place == at.Place }
			elsewhere := func(g sm.Grant) bool { return g.PKey == at.PKey && g.GUID == at.GUID }
			if slices.Contains(w.gateOf(ev.Place), ev.PKey) && !w.granted(granted) {
				w.e.t.Fatalf("told: %v; switch port holds %v", ev, w.gateOf(ev.Place))
			}
			if ev.HCAProven && slices.Contains(w.hcaOf(h), ev.PKey) && !w.granted(elsewhere) {
				w.e.t.Fatalf("told: %v; HCA holds %v", ev, w.hcaOf(h))
			}
		}
	}
	w.seen = w.e.taken + len(w.e.events)
}

func (w *watcher) host(g ib.GUID) *endPort {
	i := slices.IndexFunc(w.hosts, func(h endPort) bool { return h.node.PortGUID(h.num) == g })
	return &w.hosts[i]
}

func (w *watcher) hcaOf(h *endPort) []ib.PKey { return w.e.fab.PKeys(h.node.Name, h.num) }

func (w *watcher) gateOf(pl ib.Place) []ib.PKey {
	i := slices.IndexFunc(w.hosts, func(h endPort) bool { return h.place == pl })
	return w.e.fab.PKeys(w.hosts[i].peer, w.hosts[i].pnum)
}

func (w *watcher) linked(h *endPort) bool {
	return w.e.fab.PortInfo(h.node.Name, h.num).PortState != ib.PortDown
}

func tenants(keys []ib.PKey) []ib.PKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyLimited })
}

func (w *watcher) granted(ok func(sm.Grant) bool) bool {
	return slices.ContainsFunc(w.e.intent.Grants, ok)
}

func (w *watcher) checkLIDs() {
	w.e.t.Helper()
	owner := make(map[ib.LID]string)
	for i := range w.e.list.Nodes {
		n := &w.e.list.Nodes[i]
		for num := range n.Ports {
			if (num == 0) != (n.Type == ib.NodeSwitch) {
				continue
			}
			l := w.e.fab.PortInfo(n.Name, ib.PortNum(num)).LID
			if l == 0 {
				continue
			}
			name := fmt.Sprintf("%s/%d", n.Name, num)
			if other, ok := owner[l]; ok {
				w.e.t.Fatalf("LID %v is on %s and on %s", l, other, name)
			}
			owner[l] = name
		}
	}
}

// checkEnd judges a fabric that has come to rest.
func (w *watcher) checkEnd() {
	w.e.t.Helper()
	if bad := inactive(w.e.view); len(bad) > 0 {
		w.e.t.Fatalf("settled with ports not Active: %v; problems %q", bad, w.e.problems())
	}
	for _, h := range w.hosts {
		if !w.linked(&h) {
			continue
		}
		var want []ib.PKey
		for _, g := range w.e.intent.Grants {
			if g.GUID == h.node.PortGUID(h.num) && g.Place == h.place {
				want = append(want, g.PKey)
			}
		}
		slices.Sort(want)
		for what, have := range map[string][]ib.PKey{"HCA": w.e.fab.PKeys(h.node.Name, h.num), "switch port": w.e.fab.PKeys(h.peer, h.pnum)} {
			t := tenants(have)
			slices.Sort(t)
			if !slices.Equal(t, want) || !slices.Contains(have, ib.DefaultPKeyLimited) {
				w.e.t.Fatalf("%s of %s at %v holds %v, granted are %v", what, h.node.Name, h.place, have, want)
			}
		}
		if s := w.e.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
			w.e.t.Fatalf("host %s is %v", h.node.Name, s)
		}
	}
	before := w.e.sets()
	w.e.run(5 * time.Second)
	if n := w.e.sets() - before; n != 0 {
		w.e.t.Fatalf("%d writes on a settled fabric", n)
	}
}

// cable is one cable of a netlist.
type cable struct {
	node string
	num  ib.PortNum
	peer string
	pnum ib.PortNum
}

func cables(l *netlist.Netlist) (out []cable) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			p := n.Ports[num]
			if p.Peer == "" || p.Peer == "sm" || n.Name == "sm" || n.Type != ib.NodeSwitch {
				continue
			}
			if peer := l.Find(p.Peer); peer.Type == ib.NodeSwitch && peer.Name < n.Name {
				continue
			}
			out = append(out, cable{n.Name, ib.PortNum(num), p.Peer, p.PeerPort})
		}
	}
	return out
}

// TestRandomSchedules pulls cables, reboots nodes, changes the intent and
// crashes the subnet manager at random moments, while packets are lost, doubled
// and late, and judges the devices after every step. In the end all is put back
// and must settle.
func TestRandomSchedules(t *testing.T) {
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			schedule(t, seed)
		})
	}
}

func schedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	var l *netlist.Netlist
	var err error
	switch seed % 3 {
	case 0:
		l, err = netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
	case 1:
		l, err = netlist.Chain(netlist.Shape{Hosts: 6, Switches: 4, Radix: 8})
	default:
		l, err = netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
	}
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{Seed: seed, LoseSilently: seed%2 == 0, MulticastTop: seed%5 == 0}, sm.Config{IntentWait: time.Duration(seed%2) * time.Second}, seed)
	w := watch(e)
	e.bad = chaos{lose: rng.Float64() * 0.3, twice: 0.1, delay: rng.Float64() * 0.2}
	e.start()
	groups := spread(e, 5, 5, seed)
	e.step(groups.set(e))
	pulled := make(map[int]bool)
	all := cables(l)
	for op := range 12 {
		e.run(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		for range rng.IntN(40) {
			e.next(e.now.Add(time.Millisecond))
		}
		switch i := rng.IntN(len(all)); rng.IntN(5) {
		case 0, 1:
			toggle(t, e, all[i], pulled, i)
		case 2:
			name := l.Nodes[rng.IntN(len(l.Nodes))].Name
			if err := e.fab.Reboot(name); err != nil {
				t.Fatal(err)
			}
			for i, h := range w.hosts {
				w.lost[i] = w.lost[i] || h.peer == name
				if h.peer == name || h.node.Name == name {
					w.rebooted[h.node.PortGUID(h.num)] = e.now
				}
			}
			w.shaken = e.now
			e.st.SetIsSM(true)
			e.arrive(e.st.Take(nil))
		case 3:
			in := sm.Intent{Revision: int64(op + 1)}
			for _, h := range w.hosts {
				if rng.IntN(2) == 0 {
					g := h.grant(ib.PKey(0x8001 + rng.IntN(3)))
					if rng.IntN(6) == 0 {
						g.Place = w.hosts[rng.IntN(len(w.hosts))].place
					}
					in.Grants = append(in.Grants, g)
				}
			}
			e.want(in)
			groups.join(e, ib.MinMulticastLID+ib.LID(rng.IntN(40)), w.hosts[rng.IntN(len(w.hosts))].node.Name, mcast.JoinState(rng.IntN(3)))
		case 4:
			e.start()
			e.want(e.intent)
			e.step(groups.set(e))
		}
	}
	e.bad = chaos{}
	for i := range all {
		if pulled[i] {
			toggle(t, e, all[i], pulled, i)
		}
	}
	e.run(3 * time.Minute)
	e.mustSettle(2 * time.Minute)
	w.checkEnd()
	groups.judge(e)
}

func toggle(t *testing.T, e *env, c cable, pulled map[int]bool, i int) {
	t.Helper()
	var err error
	if pulled[i] {
		err = e.fab.Relink(c.node, c.num, c.peer, c.pnum)
	} else {
		err = e.fab.Unlink(c.node, c.num)
	}
	if err != nil {
		t.Fatal(err)
	}
	pulled[i] = !pulled[i]
	e.arrive(e.st.Take(nil))
}
