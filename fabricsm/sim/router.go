package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// A router has a port in each of several subnets, which differ by their prefix. A data packet with a global route header
// for another subnet leaves by the port there, under the P_Key tables of both ports (IBTA volume 1, 8.2 and 19.2.4). How
// the router learns the LID of the destination is not public; here it has what the subnet managers of both sides would have
// set: [sim].

// isRouter reports whether a node forwards packets between subnets.
func (n *node) isRouter() bool { return n.typ == ib.NodeRouter }

// routesOn reports whether a packet at a port of a router goes on to another subnet. Packets with link-local addresses and
// raw packets never do.
func (p *port) routesOn(d *Data) bool {
	if !p.node.isRouter() || d.GRH == nil || d.Raw || d.DLID.IsMulticast() || d.GRH.DGID.IsMulticast() {
		return false
	}
	prefix := d.GRH.DGID.Prefix()
	return prefix != p.info.GIDPrefix && prefix != ib.DefaultPrefix
}

// routeOn returns the packet that leaves a router for one that entered it at a port, and the port by which it leaves. A
// fate other than Delivered is a drop at that port.
func (p *port) routeOn(d *Data) (next Data, out *port, fate Fate) {
	out = p.node.portTo(d.GRH.DGID.Prefix())
	switch {
	case d.GRH.HopLimit <= 1:
		p.counters.Discard()
		return next, p, HopLimitReached
	case out == nil:
		p.node.fabric.stats.NoRoute++
		p.counters.Discard()
		return next, p, NoRoute
	}
	if why := out.admits(packetIBA, d.PKey, inbound); why != admitted {
		out.counters.Discard()
		return next, out, PKeyOutbound
	}
	far := p.node.fabric.byGID(d.GRH.DGID)
	if far == nil {
		p.node.fabric.stats.NoRoute++
		out.counters.Discard()
		return next, out, NoRoute
	}
	next = *d
	on := *d.GRH
	on.HopLimit--
	next.GRH = &on
	next.SLID, next.DLID = out.info.LID, far.info.LID
	return next, out, Delivered
}

// portTo is the port of a router that is in a subnet and Active; nil: none.
func (n *node) portTo(prefix ib.Prefix) *port {
	for _, p := range n.ports[1:] {
		if p.info.GIDPrefix == prefix && p.info.PortState == ib.PortActive {
			return p
		}
	}
	return nil
}

// byGID is the end port with a GID and a LID; nil: none.
func (f *network) byGID(gid ib.GID) *port {
	for _, n := range f.nodes {
		for _, p := range n.ports {
			if p != nil && p.isEnd() && p.guid == gid.GUID() && p.info.GIDPrefix == gid.Prefix() && p.info.LID != 0 {
				return p
			}
		}
	}
	return nil
}

// routerInfo answers NVIDIA's RouterInfo. Its routers here have no table of next
// hops: they know the subnets of their own ports.
func (p *port) routerInfo(m *mad.MAD, set bool) mad.Status {
	if !p.node.isRouter() || !p.node.model().isVendor() || set {
		return mad.StatusUnsupportedMethodAttr
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), &mad.RouterInfo{
		AdjacentSiteLocalSubnetsTableCap: uint8(len(p.node.ports) - 2),
		AdjacentSiteLocalSubnetsTableTop: uint8(len(p.adjacent())),
	}))
	return mad.StatusOK
}

// adjacentSubnets answers NVIDIA's AdjacentSiteLocalSubnetsTable.
func (p *port) adjacentSubnets(m *mad.MAD, set bool) mad.Status {
	if !p.node.isRouter() || !p.node.model().isVendor() || set {
		return mad.StatusUnsupportedMethodAttr
	}
	from := uint64(m.Mod()) * mad.AdjacentSubnetsPerBlock
	if from >= uint64(len(p.node.ports)) {
		return mad.StatusInvalidField
	}
	var table mad.AdjacentSubnetsTable
	all := p.adjacent()
	copy(table.Subnet[:], all[min(from, uint64(len(all))):])
	clear(m.Data())
	must(mad.Encode(m.Data(), &table))
	return mad.StatusOK
}

// adjacent lists the subnets that the other ports of a router are in.
func (p *port) adjacent() (all []mad.AdjacentSubnet) {
	for _, q := range p.node.ports[1:] {
		if q == p || q.info.PortState != ib.PortActive {
			continue
		}
		all = append(all, mad.AdjacentSubnet{
			PKey:         q.pkeys.first(),
			SubnetPrefix: uint16(q.info.GIDPrefix),
			MasterSMLID:  q.info.MasterSMLID,
		})
	}
	return all
}
