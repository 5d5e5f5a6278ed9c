package proof_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// site is a simulated fabric that the Subnet Manager set, and that an attacker changes afterwards.
type site struct {
	t       *testing.T
	fabric  *sim.Fabric
	list    *netlist.Netlist
	station *sim.Station
	owners  map[string]proof.Owner
	inbound proof.InboundRule // of its switches
}

// groups are the multicast LIDs of the test, of which the last one is never forwarded.
var groups = []ib.LID{0xC000, 0xC001, 0xC002}

// newSite brings a fabric up: t0 has h1 h3 h5, t1 has h2 h4 h6, h7 is storage of both.
func newSite(t *testing.T, seed uint64) *site {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	baseOnly := seed%3 == 1
	stage, err := testbed.New(testbed.Options{
		Netlist: l, Manager: "sm", Seed: seed, Fabric: sim.Options{Device: sim.Device{InboundBaseOnly: baseOnly}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, fabric: stage.Fabric, list: l}
	s.owners = map[string]proof.Owner{"sm": {Kind: proof.Infrastructure}, "h7": {Kind: proof.Shared, Name: "storage"}}
	s.inbound = proof.InboundMembership
	if baseOnly {
		s.inbound = proof.InboundBaseOnly
	}
	grants := []sm.Grant{stage.GrantOf("h7", 1, storage.Full())}
	for i, host := range []string{"h1", "h2", "h3", "h4", "h5", "h6"} {
		s.owners[host] = tenant(i % 2)
		grants = append(grants, stage.GrantOf(host, 1, keyOf(i%2).Full()), stage.GrantOf(host, 1, storage))
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1, Grants: grants})
	if err := stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	stage.Crash()
	if s.station, err = s.fabric.Station("sm", false); err != nil {
		t.Fatal(err)
	}
	return s
}

// route is the directed route from the station to a node.
func (s *site) route(to string) []ib.PortNum {
	routes := map[string][]ib.PortNum{"sm": {}}
	for queue := []string{"sm"}; len(queue) > 0; queue = queue[1:] {
		for num, p := range s.list.Find(queue[0]).Ports {
			if _, seen := routes[p.Peer]; p.Peer != "" && !seen {
				routes[p.Peer] = append(slices.Clone(routes[queue[0]]), ib.PortNum(num))
				queue = append(queue, p.Peer)
			}
		}
	}
	return routes[to]
}

// write reads an attribute of a node, changes it, and writes it back.
func write[T any](s *site, node string, attr mad.AttrID, mod uint32, change func(*T)) {
	s.t.Helper()
	var v T
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		p := transport.Packet{LID: ib.PermissiveLID}
		r := mad.MakeRoute(s.route(node)...)
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, Mod: mod, TID: 1}, &r, ib.MKey{})
		if method == mad.MethodSet {
			change(&v)
			if err := mad.Encode(p.MAD.Data(), &v); err != nil {
				s.t.Fatal(err)
			}
		}
		in := s.station.Exchange([]transport.Packet{p}, nil)
		if len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
			s.t.Fatalf("%v of %v at %s: %+v", method, attr, node, in)
		}
		if err := mad.Decode(in[0].MAD.Data(), &v); err != nil {
			s.t.Fatal(err)
		}
	}
}

// read reads the whole fabric, as a prover gets it.
func (s *site) read() *proof.Fabric {
	f, index := &proof.Fabric{}, map[string]int{}
	for i := range s.list.Nodes {
		index[s.list.Nodes[i].Name] = i
	}
	for i := range s.list.Nodes {
		n := &s.list.Nodes[i]
		d := proof.Device{Name: n.Name, GUID: n.GUID, Type: n.Type, Ports: make([]proof.Port, len(n.Ports))}
		for num := range n.Ports {
			info := s.fabric.PortInfo(n.Name, ib.PortNum(num))
			p := proof.Port{
				Owner: s.owners[n.Name], State: proof.Known(info.PortState), PKeys: proof.Known(s.fabric.PKeyTable(n.Name, ib.PortNum(num))),
				Check: proof.Known(proof.Checks{
					Inbound: info.PartitionEnforcementInbound, Outbound: info.PartitionEnforcementOutbound,
					RawInbound: info.FilterRawInbound, RawOutbound: info.FilterRawOutbound,
				}),
			}
			if far, ok := s.fabric.Cable(n.Name, ib.PortNum(num)); ok {
				p.Cable = at(index[far.Node], int(far.Port))
			}
			d.Ports[num] = p
		}
		if n.Type == ib.NodeSwitch {
			s.readSwitch(&d)
		}
		f.Devices = append(f.Devices, d)
	}
	return f
}

// readSwitch reads forwarding tables. Simulated switches have no default multicast ports.
func (s *site) readSwitch(d *proof.Device) {
	d.Owner, d.Inbound = proof.Owner{Kind: proof.Infrastructure}, s.inbound
	row := []ib.PortNum{ib.NoPort}
	for lid := ib.LID(1); lid <= s.fabric.SwitchInfo(d.Name).LinearFDBTop; lid++ {
		row = append(row, s.fabric.Egress(d.Name, lid))
	}
	d.LFT, d.MFT = proof.Known(row), proof.Known(map[ib.LID]proof.Ports{})
	for _, lid := range groups {
		d.MFT.Value[lid] = proof.PortSet(s.fabric.MulticastPorts(d.Name, lid)...)
	}
	d.MulticastDefaults = proof.Known(proof.Defaults{Primary: ib.NoPort, NotPrimary: ib.NoPort})
}

// openAdapters makes the adapters of hosts receive every P_Key of a list, as manipulated ones do.
func (s *site) openAdapters(list []ib.PKey) {
	for host, o := range s.owners {
		if o.Kind == proof.Tenant {
			write(s, host, mad.AttrPKeyTable, 0, func(t *mad.PKeyTable) { *t = mad.PKeyTable{}; copy(t.PKey[:], list) })
		}
	}
}

// inject sends every packet from every host of a tenant. It returns the ordered pairs of tenants between which one arrived.
// An honest sender uses the P_Keys of its table only.
func (s *site) inject(bases []ib.PKey, honest bool) map[[2]proof.Owner]bool {
	leaks := map[[2]proof.Owner]bool{}
	lids := slices.Clone(groups)
	for lid := ib.LID(1); lid < 20; lid++ {
		lids = append(lids, lid)
	}
	for host, o := range s.owners {
		if o.Kind != proof.Tenant {
			continue
		}
		table := s.fabric.PKeys(host, 1)
		for _, lid := range lids {
			for _, base := range bases {
				for _, key := range []ib.PKey{base, base.Full()} {
					if !honest || slices.Contains(table, key) {
						s.one(leaks, host, sim.Data{SLID: 1, DLID: lid, PKey: key, DestQP: 2, Payload: 64})
					}
				}
			}
			s.one(leaks, host, sim.Data{SLID: 1, DLID: lid, Raw: true, Payload: 64})
		}
	}
	return leaks
}

func (s *site) one(leaks map[[2]proof.Owner]bool, host string, d sim.Data) {
	r, err := s.fabric.Inject(sim.Endpoint{Node: host, Port: 1}, d)
	if err != nil {
		s.t.Fatal(err)
	}
	to := r.To
	// The LID of an adapter is not counted on, its table is.
	if r.Fate == sim.WrongPort && (d.Raw || slices.ContainsFunc(s.fabric.PKeys(r.At.Node, r.At.Port), d.PKey.Matches)) {
		to = append(to, r.At)
	}
	for _, end := range to {
		if a, b := s.owners[host], s.owners[end.Node]; a != b && b.Kind == proof.Tenant {
			leaks[[2]proof.Owner{a, b}] = true
		}
	}
}

// tamper changes one setting of a device of the fabric.
func (s *site) tamper(r *rand.Rand) {
	hosts := []string{"h1", "h2", "h3", "h4", "h5", "h6"}
	host := hosts[r.IntN(len(hosts))]
	front := s.list.Find(host).Ports[1]
	key := []ib.PKey{keyOf(0), keyOf(1), storage, ib.DefaultPKeyLimited}[r.IntN(4)]
	if r.IntN(2) == 0 {
		key = key.Full()
	}
	leaf := []string{"leaf1", "leaf2"}[r.IntN(2)]
	egress := ib.PortNum(1 + r.IntN(8))
	stray := func(t *mad.PKeyTable) { t.PKey[r.IntN(4)] = key }
	switch r.IntN(7) {
	case 0:
		write(s, host, mad.AttrPKeyTable, 0, stray)
	case 1:
		write(s, front.Peer, mad.AttrPKeyTable, mad.PKeyTableMod(front.PeerPort, 0), stray)
	case 2:
		write(s, host, mad.AttrPKeyTable, 0, func(t *mad.PKeyTable) { t.PKey[5] = key })
		write(s, front.Peer, mad.AttrPKeyTable, mad.PKeyTableMod(front.PeerPort, 0), func(t *mad.PKeyTable) { t.PKey[5] = key })
	case 3, 4:
		in, out, raw := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
		write(s, front.Peer, mad.AttrPortInfo, uint32(front.PeerPort), func(p *mad.PortInfo) {
			p.PortState, p.PortPhysicalState = ib.PortNop, ib.PhysNop
			p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = in, out
			p.FilterRawInbound, p.FilterRawOutbound = raw, raw
		})
	case 5:
		own := s.fabric.PortInfo(leaf, 0).LID
		write(s, leaf, mad.AttrLinearForwardingTable, 0, func(t *mad.LinearForwardingTable) {
			if lid := 1 + r.IntN(14); ib.LID(lid) != own {
				t.Port[lid] = egress
			}
		})
	default:
		write(s, leaf, mad.AttrMulticastForwardingTable, 0, func(t *mad.MulticastForwardingTable) { t.PortMask[r.IntN(2)] |= 1 << egress })
	}
}

// TestProverAndSimulatorAgree: on a fabric that the Subnet Manager set, no packet passes. After changes by others, packets
// pass in simulated devices exactly where the prover says so.
func TestProverAndSimulatorAgree(t *testing.T) {
	seen := map[bool]int{}
	for seed := range uint64(60) {
		s, r := newSite(t, seed), rand.New(rand.NewPCG(seed, 1))
		for range int(seed) % 5 {
			s.tamper(r)
		}
		result := prove(t, s.read())
		if seed == 0 && (!result.Holds(proof.Both) || result.Pair(t0, t1) != held) {
			t.Errorf("what the Subnet Manager set does not isolate tenants: %v", result.Pair(t0, t1))
		}
		bases := []ib.PKey{ib.DefaultPKeyLimited, storage, keyOf(0), keyOf(1), 0x0666}
		for _, assume := range []proof.Assumption{proof.Both, proof.Switches} {
			if assume == proof.Switches {
				full := slices.Clone(bases)
				for i := range full {
					full[i] = full[i].Full()
				}
				s.openAdapters(full)
			}
			leaks := s.inject(bases, assume == proof.Both)
			for _, pair := range [][2]proof.Owner{{t0, t1}, {t1, t0}} {
				got := slices.Contains(result.Open(assume), proof.Pair{From: pair[0], To: pair[1]})
				seen[got]++
				if got != leaks[pair] {
					t.Errorf("seed %d, %v to %v under %v: prover %v, simulated devices %v", seed, pair[0], pair[1], assume, got, leaks[pair])
				}
			}
		}
	}
	if seen[true] < 20 || seen[false] < 20 {
		t.Errorf("%d open and %d isolated pairs, want 20 of each", seen[true], seen[false])
	}
}
