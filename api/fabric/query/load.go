package query

import (
	"context"
	"math"
	"strconv"
	"time"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/topo"
)

// Load lists the links of switches with what they carried lately, by the node GUID and port of the switch. A link between switches is
// listed at the end with the lower node GUID. An adapter is not asked what it counts: its host could answer anything.
func (o *Observer) Load(_ context.Context, q v1.LoadQuery) (*v1.Page[v1.FabricLoad], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	if o.counters == nil {
		return nil, uncounted()
	}
	only := topo.NodeID(topo.None)
	if q.Node != "" {
		if only, err = x.node(q.Node); err != nil {
			return nil, err
		}
	}
	wanted := func(p topo.PortID) bool { return x.loadWanted(&q, p, only) }
	page := portPage(x, from(x.Fabric, at), at, q.Limit, wanted, x.loadRow)
	measure(page.Items, o.counters)
	return page, nil
}

func uncounted() error {
	return &refusal.Error{
		Code: "counters_not_read", Status: refusal.Conflict,
		Detail: "the load of links is not known: this instance reads no counters of ports",
		Hint:   "set fabric.counters.every above 0; the simulated port sim:NETLIST has no counters that can be read",
	}
}

// loadWanted reports whether a link is asked for, at the end where it is listed.
func (x *index) loadWanted(q *v1.LoadQuery, id topo.PortID, only topo.NodeID) bool {
	f := x.Fabric
	p := f.Port(id)
	if p.Peer == topo.None || f.NodeOf(id).Type != ib.NodeSwitch {
		return false
	}
	trunk := f.NodeOf(p.Peer).Type == ib.NodeSwitch
	switch {
	case trunk && !x.lower(id), q.Trunks && !trunk:
		return false
	default:
		return only == topo.None || p.Node == only || f.Port(p.Peer).Node == only
	}
}

// loadRow is a link of which nothing was measured.
func (x *index) loadRow(id topo.PortID) v1.FabricLoad {
	p := x.Fabric.Port(id)
	peer := x.portName(p.Peer)
	return v1.FabricLoad{
		Node: x.Fabric.NodeOf(id).GUID, Num: p.Num, At: portText(x.name(p.Node), p.Num),
		Peer: peer.Node, PeerNum: peer.Num, To: portText(peer.Name, peer.Num), Host: peer.Host,
		Trunk: x.Fabric.NodeOf(p.Peer).Type == ib.NodeSwitch, Capacity: capacity(p),
	}
}

func portText(name string, num ib.PortNum) string { return name + "/" + strconv.Itoa(int(num)) }

// capacity returns what a link carries each way in bytes per second, 0 if it is not known.
func capacity(p *topo.Port) int64 {
	return int64(p.Width.Lanes()) * int64(p.Speed.DataRate()) * (1_000_000 / 8)
}

// measure fills in what links carried. Where the switch of a row has no rate, that at the other end of the link may have one.
func measure(rows []v1.FabricLoad, by Counters) {
	of := make([]ib.Place, 0, 2*len(rows))
	for i := range rows {
		r := &rows[i]
		of = append(of, ib.Place{Switch: r.Node, Port: r.Num}, ib.Place{Switch: r.Peer, Port: r.PeerNum})
	}
	rates := by.Rates(of, make([]perfmgr.Rate, 0, len(of)))
	for i := range rows {
		r := &rows[i]
		if r.State, r.Rate = judge(&rates[2*i], r.Capacity); r.Rate != nil || !r.Trunk {
			continue
		}
		if _, other := judge(&rates[2*i+1], r.Capacity); other != nil {
			other.Xmit, other.Rcv, other.Wait, other.ByPeer = other.Rcv, other.Xmit, nil, true
			r.State, r.Rate = v1.LoadKnown, other
		}
	}
}

// most is how much more than its capacity a link may seem to carry, as answers come late: what is beyond is no rate.
const most = 1.1

// judge returns a rate for a link of a capacity, and the state of it.
func judge(r *perfmgr.Rate, capacity int64) (string, *v1.LinkRate) {
	share := float64(max(r.Xmit, r.Rcv)) / float64(capacity)
	switch {
	case r.State != perfmgr.Rated:
		return r.State.String(), nil
	case capacity == 0:
		return "no-capacity", nil
	case share > most:
		return perfmgr.Implausible.String(), nil
	}
	out := &v1.LinkRate{
		Xmit: r.Xmit, Rcv: r.Rcv, Share: min(1, math.Round(share*10_000)/10_000), Span: tenths(r.Span), Age: tenths(r.Age),
	}
	if r.Waits {
		out.Wait = &r.Wait
	}
	return v1.LoadKnown, out
}

func tenths(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }
