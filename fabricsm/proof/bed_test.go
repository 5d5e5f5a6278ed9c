package proof_test

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim/netlist"
)

// Partitions of a bed.
const (
	storage     ib.PKey = 0x0010 // shared: services are full members, tenants are limited
	firstTenant ib.PKey = 0x0100
)

// bed is a fabric as a manager without mistakes sets it: enforcement at each port of a host, one partition and multicast
// group for each tenant. Host 0 is the manager, host 1 is storage.
type bed struct {
	*proof.Fabric
	hosts    []int // devices
	switches []int
	byName   map[string]int
}

func tenant(i int) proof.Owner    { return proof.Owner{Kind: proof.Tenant, Name: fmt.Sprintf("t%d", i)} }
func keyOf(i int) ib.PKey         { return firstTenant + ib.PKey(i) }
func group(i int) ib.LID          { return ib.MinMulticastLID + ib.LID(i) }
func at(dev, num int) proof.Place { return proof.Place{Device: dev, Port: ib.PortNum(num)} }

// grow creates a bed of a shape. owner returns the number of a host's tenant; host counts from 2.
func grow(tb testing.TB, l *netlist.Netlist, err error, owner func(host int) int) *bed {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	b := &bed{Fabric: &proof.Fabric{Devices: make([]proof.Device, len(l.Nodes))}, byName: map[string]int{}}
	for i := range l.Nodes {
		b.byName[l.Nodes[i].Name] = i
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		d := &b.Devices[i]
		*d = proof.Device{Name: n.Name, GUID: n.GUID, Type: n.Type, Ports: make([]proof.Port, len(n.Ports))}
		for num := range n.Ports {
			p := &d.Ports[num]
			p.State = proof.Known(ib.PortDown)
			p.PKeys = proof.Known([]ib.PKey(nil))
			p.Check = proof.Known(proof.Checks{})
			if peer := n.Ports[num].Peer; peer != "" {
				p.State = proof.Known(ib.PortActive)
				p.Cable = at(b.byName[peer], int(n.Ports[num].PeerPort))
			}
		}
		if n.Type == ib.NodeSwitch {
			b.switches = append(b.switches, i)
			d.Owner, d.Inbound = proof.Owner{Kind: proof.Infrastructure}, proof.InboundMembership
			d.MFT = proof.Known(map[ib.LID]proof.Ports{})
			d.MulticastDefaults = proof.Known(proof.Defaults{Primary: ib.NoPort, NotPrimary: ib.NoPort})
			continue
		}
		b.hosts = append(b.hosts, i)
	}
	for h, dev := range b.hosts {
		b.admit(h, dev, owner)
	}
	b.route()
	return b
}

// admit sets what a host's port and the switch port in front of it hold.
func (b *bed) admit(h, dev int, owner func(int) int) {
	o, keys := proof.Owner{Kind: proof.Infrastructure}, []ib.PKey{ib.DefaultPKeyFull}
	switch {
	case h == 1:
		o, keys = proof.Owner{Kind: proof.Shared, Name: "storage"}, []ib.PKey{ib.DefaultPKeyLimited, storage.Full()}
	case h > 1:
		t := owner(h)
		o, keys = tenant(t), []ib.PKey{ib.DefaultPKeyLimited, storage, keyOf(t).Full()}
	}
	p := &b.Devices[dev].Ports[1]
	p.Owner, p.PKeys.Value = o, keys
	s := b.front(dev)
	s.PKeys.Value = append([]ib.PKey(nil), keys...)
	s.Check = proof.Known(proof.Checks{Inbound: true, Outbound: true, RawInbound: true, RawOutbound: true})
}

func (b *bed) port(p proof.Place) *proof.Port { return &b.Devices[p.Device].Ports[p.Port] }

// front is the switch port in front of a host.
func (b *bed) front(dev int) *proof.Port { return b.port(b.Devices[dev].Ports[1].Cable) }

func (b *bed) lid(dev int) ib.LID { return ib.LID(dev + 1) }

// route fills tables with shortest ways, spread over equal ones, and a tree for the group of each tenant.
func (b *bed) route() {
	for _, sw := range b.switches {
		lft := make([]ib.PortNum, len(b.Devices)+1)
		for i := range lft {
			lft[i] = ib.NoPort
		}
		lft[b.lid(sw)] = 0
		b.Devices[sw].LFT = proof.Known(lft)
	}
	for _, root := range b.switches {
		dist := b.distances(root)
		behind := []int{root}
		for num := range b.Devices[root].Ports {
			if c := b.Devices[root].Ports[num].Cable; c.Port != 0 && b.Devices[c.Device].Type != ib.NodeSwitch {
				behind = append(behind, c.Device)
				b.Devices[root].LFT.Value[b.lid(c.Device)] = ib.PortNum(num)
			}
		}
		for _, sw := range b.switches {
			if sw == root || dist[sw] < 0 {
				continue
			}
			next := b.closer(sw, dist)
			for _, dev := range behind {
				b.Devices[sw].LFT.Value[b.lid(dev)] = next[dev%len(next)]
			}
		}
	}
	root := b.switches[len(b.switches)-1]
	dist := b.distances(root)
	for _, dev := range b.hosts {
		if o := b.Devices[dev].Ports[1].Owner; o.Kind == proof.Tenant {
			b.join(group(int(b.Devices[dev].Ports[1].PKeys.Value[2].Base()-firstTenant)), b.Devices[dev].Ports[1].Cable, dist)
		}
	}
}

// join adds a switch port to a group, and the way from there to the root of its tree.
func (b *bed) join(mlid ib.LID, from proof.Place, dist []int) {
	for {
		ports := b.Devices[from.Device].MFT.Value[mlid]
		if ports.Has(from.Port) {
			return
		}
		ports = add(ports, from.Port)
		if dist[from.Device] == 0 {
			b.Devices[from.Device].MFT.Value[mlid] = ports
			return
		}
		up := b.closer(from.Device, dist)[0]
		b.Devices[from.Device].MFT.Value[mlid] = add(ports, up)
		from = b.Devices[from.Device].Ports[up].Cable
	}
}

func add(s proof.Ports, n ib.PortNum) proof.Ports {
	one := proof.PortSet(n)
	for i := range s {
		s[i] |= one[i]
	}
	return s
}

func (b *bed) distances(root int) []int {
	dist := make([]int, len(b.Devices))
	for i := range dist {
		dist[i] = -1
	}
	dist[root] = 0
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		d := &b.Devices[queue[0]]
		for num := range d.Ports {
			c := d.Ports[num].Cable
			if c.Port != 0 && b.Devices[c.Device].Type == ib.NodeSwitch && dist[c.Device] < 0 {
				dist[c.Device] = dist[queue[0]] + 1
				queue = append(queue, c.Device)
			}
		}
	}
	return dist
}

// closer returns the ports of a switch towards switches that are nearer to the root.
func (b *bed) closer(sw int, dist []int) (out []ib.PortNum) {
	for num := range b.Devices[sw].Ports {
		c := b.Devices[sw].Ports[num].Cable
		if c.Port != 0 && b.Devices[c.Device].Type == ib.NodeSwitch && dist[c.Device] == dist[sw]-1 {
			out = append(out, ib.PortNum(num))
		}
	}
	return out
}

// small is two leaves and two spines with hosts of two tenants on both leaves: manager, storage, t0 at h2 h4 h6, t1 at h3 h5 h7.
func small(tb testing.TB) *bed {
	tb.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 10, Leaves: 2, Spines: 2})
	return grow(tb, l, err, func(h int) int { return h % 2 })
}
