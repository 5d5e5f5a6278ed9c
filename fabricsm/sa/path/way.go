package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// way is the capacity of a route. The zero way is no route.
type way struct {
	mtu  ib.MTU
	rate ib.Rate
}

// and returns the capacity that both ways have.
func (w way) and(o way) way {
	w.mtu = min(w.mtu, o.mtu)
	if o.rate.Compare(w.rate) < 0 {
		w.rate = o.rate
	}
	return w
}

// ways returns the route from one end port to another by LID, and the route back, which may be none. ok is false if there
// is no route to the destination.
func (q *query) ways(x, y *portindex.EndPort, slid, dlid ib.LID) (there, back way, ok bool) {
	if x == y {
		w := way{x.MTU, x.Rate}
		return w, w, true
	}
	if w, ok := q.known(x, y, slid, dlid); ok {
		return w, w, w.mtu != 0
	}
	there = q.walk(x, y, dlid)
	return there, q.walk(y, x, slid), there.mtu != 0
}

// known returns the route between two end ports in both directions, if it is known without following it. A known result
// without a route is the zero way.
func (q *query) known(x, y *portindex.EndPort, slid, dlid ib.LID) (way, bool) {
	r := &q.b.Routes
	if !r.Sound || x.Home == topo.None || !r.Reaches(dlid) || !r.Reaches(slid) {
		return way{}, false
	}
	w := way{x.LinkMTU, x.LinkRate}.and(way{y.LinkMTU, y.LinkRate})
	if x.Home == y.Home {
		return w, true
	}
	if !r.Joined(x.Home, y.Home) {
		return way{}, true
	}
	// The capacity of the route is between that of the worst and that of the best link.
	low, high := w.and(way{r.MinMTU, r.MinRate}), w.and(way{r.MaxMTU, r.MaxRate})
	return low, low == high || r.Early
}

// walk follows the forwarding tables from an end port to a LID of another. It stops when it has followed more links than
// there are switches. By early tables, whose routes may not be those of packets, it has the capacity of the worst link.
func (q *query) walk(x, y *portindex.EndPort, dlid ib.LID) way {
	w := q.follow(x, y, dlid)
	if r := &q.b.Routes; r.Early && x.Home != y.Home && w.mtu != 0 && r.MinMTU != 0 {
		w = w.and(way{r.MinMTU, r.MinRate})
	}
	return w
}

func (q *query) follow(x, y *portindex.EndPort, dlid ib.LID) way {
	f, t := q.b.View.Fabric, q.b.Routes.Tables()
	w := way{x.LinkMTU, x.LinkRate}
	if x.Home == topo.None {
		q.steps++
		if f.LinkUp(x.Port) != y.Port {
			return way{}
		}
		return w.and(way{y.LinkMTU, y.LinkRate})
	}
	at := x.Home
	for range len(f.Switches()) {
		q.steps++
		lft := t.LFT(at)
		if int(dlid) >= len(lft) || !t.Has(at, f.Node(at).GUID) {
			return way{}
		}
		out := lft[dlid]
		if out == 0 {
			if y.Port != f.PortOf(at, 0) {
				return way{}
			}
			return w.and(way{y.LinkMTU, y.LinkRate})
		}
		p := f.PortOf(at, out)
		if p == topo.None {
			return way{}
		}
		peer := f.LinkUp(p)
		if peer == topo.None {
			return way{}
		}
		mtu, rate := portindex.LinkOf(f, p)
		w = w.and(way{mtu, rate})
		if peer == y.Port {
			return w
		}
		if at = f.Port(peer).Node; f.Node(at).Type != ib.NodeSwitch {
			return way{}
		}
	}
	return way{}
}
