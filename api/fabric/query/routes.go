package query

import (
	"context"
	"fmt"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route/trace"
	"portcullis/fabricsm/topo"
)

// Routes returns how packets get from one end port to another and back, and what keeps them from it. Ports are named by
// GUID, LID, NODE or NODE/PORT.
func (o *Observer) Routes(_ context.Context, a, b string) (*v1.FabricRoutes, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	x.ready()
	src, err := x.end(a)
	if err != nil {
		return nil, err
	}
	dst, err := x.end(b)
	if err != nil {
		return nil, err
	}
	loads := trace.NewLoads(x.Fabric, x.Tables)
	out := &v1.FabricRoutes{
		Observed: x.Time.UTC(), Settled: x.Settled, From: x.portRow(src), To: x.portRow(dst),
		Shared: x.shared(src, dst), There: x.route(loads, src, dst), Back: x.route(loads, dst, src),
	}
	out.Problems = x.obstacles(src, dst, out)
	return out, nil
}

func (x *index) route(loads *trace.Loads, src, dst topo.PortID) v1.FabricRoute {
	p := trace.Follow(x.Fabric, x.Tables, src, dst)
	out := v1.FabricRoute{SL: p.SL, Hops: make([]v1.FabricHop, 0, len(p.Hops))}
	if p.Err != nil {
		out.Error = p.Err.Error()
	}
	for _, h := range p.Hops {
		hop := x.hop(h)
		if h.Out != 0 {
			out.Links++
			id := x.Fabric.PortOf(h.Node, h.Out)
			port := x.Fabric.Port(id)
			rate := port.Rate()
			if out.Rate == 0 || rate < out.Rate {
				out.Rate = rate
			}
			hop.Width, hop.Speed = widthName(port.Width), speedName(port.Speed)
			hop.Load = int(loads.Of(h.Node, h.Out))
		}
		out.Hops = append(out.Hops, hop)
	}
	return out
}

func (x *index) hop(h trace.Hop) v1.FabricHop {
	f := x.Fabric
	n := f.Node(h.Node)
	hop := v1.FabricHop{Node: n.GUID, Name: x.name(h.Node), Type: n.Type.String(), In: h.In, Out: h.Out, VL: h.VL}
	own := n.FirstPort
	if n.Type != ib.NodeSwitch {
		own += topo.PortID(max(h.In, h.Out))
	}
	hop.LID = f.Port(own).LID
	return hop
}

// shared returns the partitions in which two ports can communicate: both hold the P_Key, and not both as limited members.
func (x *index) shared(a, b topo.PortID) []ib.PKey {
	ours, _ := x.PKeys(a)
	theirs, _ := x.PKeys(b)
	out := []ib.PKey{}
	for _, k := range ours {
		if slices.ContainsFunc(theirs, k.Matches) && !slices.Contains(out, k.Base()) {
			out = append(out, k.Base())
		}
	}
	slices.Sort(out)
	return out
}

// obstacles says what keeps two ports from talking.
func (x *index) obstacles(src, dst topo.PortID, r *v1.FabricRoutes) []string {
	out := []string{}
	for _, id := range []topo.PortID{src, dst} {
		p := x.Fabric.Port(id)
		where := fmt.Sprintf("%s/%d", x.name(p.Node), p.Num)
		if p.State != ib.PortActive && p.Num != 0 {
			out = append(out, fmt.Sprintf("%s is not active, but %v", where, p.State))
		}
		if problem := x.problem(id); problem != "" {
			out = append(out, where+": "+problem)
		}
		if best := x.degraded(id); best != "" {
			out = append(out, fmt.Sprintf("%s: the link runs at %v %v, both ends offer %s", where, p.Width, p.Speed, best))
		}
	}
	if len(r.Shared) == 0 {
		out = append(out, fmt.Sprintf("no shared partition: %s and %s", held(x.PKeys(src)), held(x.PKeys(dst))))
	}
	if r.There.Error != "" {
		out = append(out, "there: "+r.There.Error)
	}
	if r.Back.Error != "" && r.Back.Error != r.There.Error {
		out = append(out, "back: "+r.Back.Error)
	}
	if !x.Settled {
		out = append(out, "the fabric is not settled: switches may not have these tables yet")
	}
	return append(out, x.nowhere...)
}

func held(keys []ib.PKey, _ bool) string {
	if len(keys) == 0 {
		return "no P_Keys"
	}
	text := ""
	for i, k := range keys {
		if i == maxNamed {
			return fmt.Sprintf("%s and %d more", text, len(keys)-i)
		}
		if i > 0 {
			text += " "
		}
		text += k.String()
	}
	return text
}
