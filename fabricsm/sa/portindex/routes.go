package portindex

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Routes has the properties that hold for all routes at once, so that few have to be walked. It is immutable.
type Routes struct {
	// Sound reports that the checker accepted the tables, and that each link between switches that they know is up. Then
	// each LID that [Routes.Reaches] is delivered from every switch that is [Routes.Joined] with its home.
	Sound bool
	// MinRate to MaxMTU bound the links between switches that the tables know; 0
	// without any.
	MinRate, MaxRate ib.Rate
	MinMTU, MaxMTU   ib.MTU

	// Early reports that the tables are not those of the switches: routes may take other links between switches than these.
	Early bool

	tables *route.Tables
	lane   laneRule
	peers  []topo.PortID // of the tables
	rates  [32]int32     // how many links, counted from both ends, by rate
	mtus   [8]int32      // the same by MTU
	dead   int32         // the same that are not up
	island []topo.NodeID // by NodeID: some switch of its island
	lids   []uint64      // by LID, a bit each: see Reaches
}

// tablesOf returns the tables of a view, or its early ones.
func tablesOf(v *sm.View) *route.Tables {
	if v.Tables == nil {
		return v.Early
	}
	return v.Tables
}

// Tables returns the tables of the routes.
func (r *Routes) Tables() *route.Tables { return r.tables }

// Reaches reports whether the switch in front of the end port with a LID, and the tables, agree on its location.
func (r *Routes) Reaches(lid ib.LID) bool {
	return int(lid)/64 < len(r.lids) && r.lids[lid/64]&(1<<(lid%64)) != 0
}

// Joined reports whether two switches were in one island when the tables were made.
func (r *Routes) Joined(a, b topo.NodeID) bool {
	return a == b || int(a) < len(r.island) && int(b) < len(r.island) && r.island[a] == r.island[b]
}

// laneRule is the rule that determines service levels.
type laneRule uint8

const (
	anyLane    laneRule = iota // no rule: all are equal, except for quality of service
	levelZero                  // multicast has a lane of its own, and all else is on 0
	levelByWay                 // the routing engine
)

func laneRuleOf(v *sm.View) laneRule {
	switch {
	case tablesOf(v).Layers() > 1:
		return levelByWay
	case v.Multicast != nil && v.Multicast.SL != 0:
		return levelZero
	default:
		return anyLane
	}
}

// SL returns the service level that packets from one LID to another must have. free is true if the routes leave it open.
func (r *Routes) SL(from, to ib.LID) (sl ib.SL, free bool) {
	if r.lane == levelByWay {
		return r.tables.SL(from, to), false
	}
	return 0, r.lane == anyLane
}

// after returns the routes of book b. links are the ports that may have changed, ends the end ports that did.
func (r *Routes) after(b *Book, was *sm.View, links []topo.PortID, ends []*EndPort) Routes {
	next := *r
	f := b.View.Fabric
	next.lane = laneRuleOf(b.View)
	next.tables, next.Early = tablesOf(b.View), b.View.Tables == nil
	next.peers = next.tables.Peers()
	if was == nil || next.tables != r.tables && !slices.Equal(next.peers, r.peers) {
		next.count(f)
	} else {
		next.recount(was.Fabric, f, links)
	}
	next.Sound = next.tables.Checked() && next.dead == 0
	next.bound()
	if next.tables != r.tables {
		next.lids = make([]uint64, (b.lids.Len()+63)/64)
		for e := range b.All() {
			next.reach(b, e)
		}
	} else if len(ends) > 0 {
		next.lids = make([]uint64, (b.lids.Len()+63)/64)
		copy(next.lids, r.lids)
		for _, e := range ends {
			next.reach(b, e)
		}
	}
	return next
}

// reach looks at the LIDs of an end port again.
func (r *Routes) reach(b *Book, e *EndPort) {
	for lid := range e.eachLID() {
		if int(lid)/64 >= len(r.lids) {
			return
		}
		if has := b.ByLID(lid); has != nil && r.agrees(has, lid) {
			r.lids[lid/64] |= 1 << (lid % 64)
		} else {
			r.lids[lid/64] &^= 1 << (lid % 64)
		}
	}
}

func (r *Routes) agrees(e *EndPort, lid ib.LID) bool {
	if e.Home == topo.None || r.tables.Home(lid) != e.Home {
		return false
	}
	lft := r.tables.LFT(e.Home)
	return int(lid) < len(lft) && lft[lid] == e.HomePort
}

// count looks at all links.
func (r *Routes) count(f *topo.Fabric) {
	r.rates, r.mtus, r.dead = [32]int32{}, [8]int32{}, 0
	parent := make([]topo.NodeID, f.NumNodes())
	for i := range parent {
		parent[i] = topo.NodeID(i)
	}
	root := func(n topo.NodeID) topo.NodeID {
		for parent[n] != n {
			parent[n] = parent[parent[n]]
			n = parent[n]
		}
		return n
	}
	for p, peer := range r.peers {
		if peer == topo.None {
			continue
		}
		r.tally(f, topo.PortID(p), 1)
		if a, b := root(f.Port(topo.PortID(p)).Node), root(f.Port(peer).Node); a != b {
			parent[max(a, b)] = min(a, b)
		}
	}
	for i := range parent {
		parent[i] = root(topo.NodeID(i))
	}
	r.island = parent
}

// recount looks at links that may have changed.
func (r *Routes) recount(was, f *topo.Fabric, links []topo.PortID) {
	links = slices.Clone(links)
	for _, p := range links {
		if int(p) < len(r.peers) && r.peers[p] != topo.None {
			links = append(links, r.peers[p]) // a link counts from both ends
		}
	}
	slices.Sort(links)
	for _, p := range slices.Compact(links) {
		r.tally(was, p, -1)
		r.tally(f, p, 1)
	}
}

// tally adds n for the link that leaves by a port.
func (r *Routes) tally(f *topo.Fabric, p topo.PortID, n int32) {
	if int(p) >= len(r.peers) || r.peers[p] == topo.None {
		return
	}
	if f.LinkUp(p) != r.peers[p] {
		r.dead += n
		return
	}
	mtu, rate := linkOf(f, p, r.peers[p])
	r.rates[rate] += n
	r.mtus[mtu] += n
}

// bound computes the minimum and maximum of the counted values.
func (r *Routes) bound() {
	r.MinRate, r.MaxRate, r.MinMTU, r.MaxMTU = 0, 0, 0, 0
	for i, n := range r.rates {
		switch rate := ib.Rate(i); {
		case n == 0:
		case r.MinRate == 0:
			r.MinRate, r.MaxRate = rate, rate
		case rate.Compare(r.MinRate) < 0:
			r.MinRate = rate
		case rate.Compare(r.MaxRate) > 0:
			r.MaxRate = rate
		}
	}
	for i, n := range r.mtus {
		if n != 0 {
			if r.MaxMTU = ib.MTU(i); r.MinMTU == 0 {
				r.MinMTU = r.MaxMTU
			}
		}
	}
}

// linkOf returns MTU and rate of the link between two ports.
func linkOf(f *topo.Fabric, x, y topo.PortID) (ib.MTU, ib.Rate) {
	a, b := f.Port(x), f.Port(y)
	mtu := min(mtuOf(a.MTUCap), mtuOf(b.MTUCap))
	for _, p := range [2]*topo.Port{a, b} {
		if p.NeighborMTU >= ib.MTU256 && p.NeighborMTU <= ib.MTU4096 {
			mtu = min(mtu, p.NeighborMTU)
		}
	}
	rate := rateOf(a)
	if o := rateOf(b); o.Compare(rate) < 0 {
		rate = o
	}
	return mtu, rate
}

// LinkOf returns MTU and rate of the link of a port, or those of the port itself if it has no link.
func LinkOf(f *topo.Fabric, p topo.PortID) (ib.MTU, ib.Rate) {
	if peer := f.LinkUp(p); peer != topo.None {
		return linkOf(f, p, peer)
	}
	pt := f.Port(p)
	return mtuOf(pt.MTUCap), rateOf(pt)
}

// mtuOf returns an MTU, or the lowest one if the value is invalid.
func mtuOf(m ib.MTU) ib.MTU {
	if m < ib.MTU256 || m > ib.MTU4096 {
		return ib.MTU256
	}
	return m
}

// rateOf returns the rate of a port, or the lowest one if the port has none.
func rateOf(p *topo.Port) ib.Rate {
	if r := ib.RateOf(p.Width, p.Speed); r != 0 {
		return r
	}
	return ib.Rate2_5
}
