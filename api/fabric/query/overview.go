package query

import (
	"context"
	"fmt"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// Overview counts what is seen.
func (o *Observer) Overview(context.Context) (*v1.Overview, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	x.ready()
	out := &v1.Overview{
		Observed: x.Time.UTC(), State: x.State.String(), Settled: x.Settled, Phase: x.Progress.Phase.String(),
		GUID: x.GUID, LID: x.LID, Priority: x.Priority, Routing: x.routing(), PKeys: x.partitions(),
		Faults: x.faultRows(len(x.Faults)),
	}
	out.Nodes, out.Ports = x.counts()
	out.Links, _, out.Degraded = x.kinds()
	return out, nil
}

// counts counts nodes by type and cabled ports by state.
func (x *index) counts() (n v1.NodeCounts, p v1.PortCounts) {
	f := x.Fabric
	for _, id := range f.ByGUID() {
		switch f.Node(id).Type {
		case ib.NodeSwitch:
			n.Switches++
		case ib.NodeRouter:
			n.Routers++
		case ib.NodeCA:
			n.CAs++
		}
	}
	for i := range f.Ports() {
		port := f.Port(i)
		if port.Peer == topo.None {
			continue
		}
		p.Cabled++
		switch port.State {
		case ib.PortActive, ib.PortActiveDefer:
			p.Active++
		case ib.PortArmed:
			p.Armed++
		case ib.PortInit:
			p.Init++
		case ib.PortDown:
			p.Down++
		default:
			p.Unread++
		}
	}
	return n, p
}

func (x *index) routing() v1.RoutingInfo {
	r := v1.RoutingInfo{Seconds: x.Progress.RouteTook.Seconds()}
	if x.Tables == nil {
		return r
	}
	r.Engine, r.MaxLID, r.Lanes = x.Tables.Engine, x.Tables.MaxLID, x.Tables.Layers()
	for lid := ib.LID(1); lid <= r.MaxLID; lid++ {
		if x.Tables.Home(lid) != topo.None {
			r.LIDs++
		}
	}
	return r
}

// partitions counts P_Keys that end ports hold, except for the default one.
func (x *index) partitions() int {
	seen := map[ib.PKey]bool{}
	for _, id := range x.Fabric.EndPorts() {
		keys, _ := x.PKeys(id)
		for _, k := range keys {
			if k.Base() != ib.DefaultPKeyLimited {
				seen[k.Base()] = true
			}
		}
	}
	return len(seen)
}

// faultRows returns the first faults with the names of where they are.
func (x *index) faultRows(most int) []v1.Fault {
	faults := x.Faults[:min(len(x.Faults), most)]
	out := make([]v1.Fault, 0, len(faults))
	for _, f := range faults {
		out = append(out, v1.Fault{Kind: f.Kind.String(), GUID: f.GUID, PKey: f.PKey, Place: f.Place, At: x.at(&f), Text: f.Text})
	}
	return out
}

// at names the place of a fault, or the node that it is about.
func (x *index) at(f *fault.Fault) string {
	x.ready()
	if id := x.Fabric.NodeByGUID(f.Place.Switch); id != topo.None {
		return fmt.Sprintf("%s/%d", x.name(id), f.Place.Port)
	}
	if id := x.Fabric.NodeByGUID(f.GUID); id != topo.None {
		return x.name(id)
	}
	if id := x.Fabric.PortByGUID(f.GUID); id != topo.None {
		return fmt.Sprintf("%s/%d", x.name(x.Fabric.Port(id).Node), x.Fabric.Port(id).Num)
	}
	return ""
}
