package sm_test

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// watcher judges the devices after every step, whatever the state of the core.
type watcher struct {
	e     *env
	hosts []endPort
	at    []int       // by host: whose place it is at now
	moved []bool      // by host: it changed places, and packets for another host may still reach it
	ends  []lidOwner  // end ports
	hca   [][]ib.PKey // by host, as last seen
	gate  [][]ib.PKey // of the switch port in front of it
	lost  []bool      // the switch of the place lost its table unseen, by a reboot

	rebooted map[ib.GUID]time.Time // by host: it, or its switch
	placed   map[ib.GUID]time.Time // when PortPlaced was reported

	shaken   time.Time // when a device last lost its tables behind the core's back
	started  time.Time // when the core last began to discover
	mastered time.Time // and when it last became master
	seen     int       // events judged
}

func watch(e *env) *watcher {
	w := &watcher{e: e, hosts: hosts(e.list), rebooted: make(map[ib.GUID]time.Time), placed: make(map[ib.GUID]time.Time)}
	w.hca, w.gate = make([][]ib.PKey, len(w.hosts)), make([][]ib.PKey, len(w.hosts))
	w.lost = make([]bool, len(w.hosts))
	for i := range w.hosts {
		w.at, w.moved = append(w.at, i), append(w.moved, false)
	}
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		for num := range n.Ports {
			if (num == 0) == (n.Type == ib.NodeSwitch) {
				host := slices.IndexFunc(w.hosts, func(h endPort) bool { return h.node == n && int(h.num) == num })
				w.ends = append(w.ends, lidOwner{n.Name, ib.PortNum(num), host})
			}
		}
	}
	e.onStep = w.check
	return w
}

// lidOwner is a port that can have a LID.
type lidOwner struct {
	node string
	num  ib.PortNum
	host int // its index, -1: it is none
}

// check judges what changed in a step: devices change by Sets, and by what the
// schedule does to them, which marks them as changed.
func (w *watcher) check() {
	changed := w.e.changed
	w.e.changed = change{}
	if changed.lids {
		w.checkLIDs()
	}
	w.checkTold()
	if changed.keys {
		w.checkKeys()
	}
	if slices.Contains(w.moved, true) {
		w.arrived()
	}
}

// arrived finds out which of the hosts that moved are known to be where they are: the subnet manager says so, and brought
// up the link that came up with the move. The first is not enough for a host that moved there and back while packets were
// lost: it was never seen to go, and still has the state written to it elsewhere.
func (w *watcher) arrived() {
	if w.e.view == nil || !w.e.view.Settled || w.e.view.Time != w.e.now {
		return
	}
	f := w.e.view.Fabric
	for i, h := range w.hosts {
		p := f.PortByGUID(h.node.PortGUID(h.num))
		known := p != topo.None && f.PlaceOf(p) == w.hosts[w.at[i]].place &&
			w.e.fab.PortInfo(h.node.Name, h.num).PortState == ib.PortActive
		w.moved[i] = w.moved[i] && !known
	}
}

func (w *watcher) checkKeys() {
	for i, h := range w.hosts {
		hca, gate := w.e.fab.PKeys(h.node.Name, h.num), w.e.fab.PKeys(h.peer, h.pnum)
		for _, k := range tenants(gate) {
			if !slices.Contains(w.gate[i], k) && !w.granted(func(g sm.Grant) bool { return g.PKey == k && g.Place == h.place }) {
				w.e.t.Fatalf("switch port %v was given %v, which nobody is granted there", h.place, k)
			}
		}
		w.lost[i] = w.lost[i] && len(tenants(gate)) == 0
		w.gate[i] = gate
		for _, k := range tenants(hca) {
			if slices.Contains(w.hca[i], k) || w.moved[i] {
				continue
			}
			if !w.granted(func(g sm.Grant) bool { return g.PKey == k && g.GUID == h.node.PortGUID(h.num) }) {
				w.e.t.Fatalf("HCA of %s was given %v, which it is not granted", h.node.Name, k)
			}
			if at := w.at[i]; w.linked(&h) {
				front := &w.hosts[at]
				if !slices.Contains(w.e.fab.PKeys(front.peer, front.pnum), k) && !w.lost[at] {
					w.e.t.Fatalf("HCA of %s was given %v before its switch port %v", h.node.Name, k, front.place)
				}
			}
		}
		w.hca[i] = hca
	}
}

// checkTold judges memberships at the moment when they are reported as applied or removed.
func (w *watcher) checkTold() {
	for _, ev := range w.e.events[max(0, w.seen-w.e.taken):] {
		switch ev := ev.(type) {
		case *sm.StateChanged:
			switch ev.State {
			case ib.SMDiscovering:
				w.started = w.e.now
			case ib.SMMaster:
				w.mastered = w.e.now
			}
		case *sm.PortPlaced:
			w.placed[ev.GUID] = w.e.now
		case *sm.MembershipApplied:
			// An answer may have been on its way when a device rebooted or was moved, and while all its packets are lost
			// this cannot be known.
			down := w.rebooted[ev.GUID]
			if w.moved[w.index(ev.GUID)] || !down.IsZero() && (w.e.now.Sub(w.shaken) <= 3*timeout || !w.placed[ev.GUID].After(down)) {
				continue
			}
			// Ports are placed once the core is master, by what it read before.
			if down.After(w.started) && down.Before(w.mastered) && w.e.now.Sub(w.mastered) <= 3*timeout {
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
			if ev.HCAProven && !w.moved[w.index(ev.GUID)] && slices.Contains(w.hcaOf(h), ev.PKey) && !w.granted(elsewhere) {
				w.e.t.Fatalf("told: %v; HCA holds %v", ev, w.hcaOf(h))
			}
		}
	}
	w.seen = w.e.taken + len(w.e.events)
}

func (w *watcher) index(g ib.GUID) int {
	return slices.IndexFunc(w.hosts, func(h endPort) bool { return h.node.PortGUID(h.num) == g })
}

func (w *watcher) host(g ib.GUID) *endPort { return &w.hosts[w.index(g)] }

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
	owner := make(map[ib.LID]lidOwner, len(w.ends))
	for _, p := range w.ends {
		l := w.e.fab.PortInfo(p.node, p.num).LID
		if l == 0 {
			continue
		}
		if p.host >= 0 && w.moved[p.host] {
			continue
		}
		if other, ok := owner[l]; ok {
			w.e.t.Fatalf("LID %v is on %v and on %v", l, other, p)
		}
		owner[l] = p
	}
}

// checkEnd judges a fabric that has come to rest.
func (w *watcher) checkEnd() {
	w.e.t.Helper()
	for i := range w.moved {
		w.moved[i] = false
	}
	w.checkLIDs()
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
