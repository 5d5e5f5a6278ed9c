package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

// The prefixes of the subnets of twoSubnets.
const (
	prefixA ib.Prefix = 0xFEC0_0000_0000_000A
	prefixB ib.Prefix = 0xFEC0_0000_0000_000B
)

// twoSubnets is host a on switch swa and host b on swb, with router rt between
// them: LIDs 1 to 3 in each subnet are of the host, the switch and the router.
func twoSubnets(t testing.TB, d Device) *Fabric {
	t.Helper()
	l, err := netlist.Parse("subnets", []byte(`caguid=0x100
Ca 1 "a"
[1] "swa"[1]

caguid=0x200
Ca 1 "b"
[1] "swb"[1]

rtguid=0x300
Rt 2 "rt"
[1] "swa"[2]
[2] "swb"[2]

switchguid=0x400
Switch 4 "swa"
[1] "a"[1]
[2] "rt"[1]

switchguid=0x500
Switch 4 "swb"
[1] "b"[1]
[2] "rt"[2]
`))
	if err != nil {
		t.Fatal(err)
	}
	f := NewWith(l, Options{Device: d})
	for _, subnet := range []struct {
		prefix       ib.Prefix
		host, sw     string
		routerPort   ib.PortNum
		masterSM     ib.LID
		switchRoutes []byte
	}{
		{prefixA, "a", "swa", 1, 1, []byte{255, 1, 0, 2}},
		{prefixB, "b", "swb", 2, 1, []byte{255, 1, 0, 2}},
	} {
		f.port(t, subnet.sw, 0).node.sw.linear = subnet.switchRoutes
		f.port(t, subnet.sw, 0).node.sw.info.LinearFDBTop = 3
		for lid, p := range []*port{f.port(t, subnet.host, 1), f.port(t, subnet.sw, 0), f.port(t, "rt", subnet.routerPort)} {
			p.info.LID, p.info.GIDPrefix, p.info.MasterSMLID = ib.LID(lid+1), subnet.prefix, subnet.masterSM
		}
		for _, p := range []*port{f.port(t, subnet.host, 1), f.port(t, subnet.sw, 1), f.port(t, subnet.sw, 2), f.port(t, "rt", subnet.routerPort)} {
			p.info.PortState, p.info.NeighborMTU = ib.PortActive, ib.MTU4096
			p.commit()
		}
	}
	return f
}

func TestRoutersCarryDataBetweenSubnets(t *testing.T) {
	const tenant ib.PKey = 0x8001
	toB := GRH{SGID: ib.MakeGID(prefixA, 0x101), DGID: ib.MakeGID(prefixB, 0x201), HopLimit: 8}
	end := func(prefix ib.Prefix, guid ib.GUID, hops uint8) *GRH {
		return &GRH{SGID: toB.SGID, DGID: ib.MakeGID(prefix, guid), HopLimit: hops}
	}
	for _, tt := range []struct {
		name   string
		grh    *GRH
		change func(f *Fabric)
		want   Report
	}{
		{"to the other subnet", &toB, nil, Report{Fate: Delivered, At: Endpoint{"b", 1}, To: []Endpoint{{"b", 1}}}},
		{"without a global route header", nil, nil, Report{Fate: Delivered, At: Endpoint{"rt", 1}, To: []Endpoint{{"rt", 1}}}},
		{"to the subnet it is in", end(prefixA, 0x301, 8), nil, Report{Fate: Delivered, At: Endpoint{"rt", 1}, To: []Endpoint{{"rt", 1}}}},
		{"link-local", end(ib.DefaultPrefix, 0x201, 8), nil, Report{Fate: Delivered, At: Endpoint{"rt", 1}, To: []Endpoint{{"rt", 1}}}},
		{"at the end of its hops", end(prefixB, 0x201, 1), nil, Report{Fate: HopLimitReached, At: Endpoint{"rt", 1}}},
		{"to a subnet that is not there", end(0xFEC0_0000_0000_000C, 0x201, 8), nil, Report{Fate: NoRoute, At: Endpoint{"rt", 1}}},
		{"to a GUID that is not there", end(prefixB, 0x999, 8), nil, Report{Fate: NoRoute, At: Endpoint{"rt", 2}}},
		{"P_Key not on the router's first port", &toB, func(f *Fabric) { f.port(t, "rt", 1).withKeys(ib.DefaultPKeyLimited) }, Report{Fate: PKeyDestination, At: Endpoint{"rt", 1}}},
		{"P_Key not on the router's second port", &toB, func(f *Fabric) { f.port(t, "rt", 2).withKeys(ib.DefaultPKeyLimited) }, Report{Fate: PKeyOutbound, At: Endpoint{"rt", 2}}},
		{"P_Key not at the destination", &toB, func(f *Fabric) { f.port(t, "b", 1).withKeys(ib.DefaultPKeyLimited) }, Report{Fate: PKeyDestination, At: Endpoint{"b", 1}}},
		{"the other subnet is down", &toB, func(f *Fabric) { f.port(t, "rt", 2).drop() }, Report{Fate: NoRoute, At: Endpoint{"rt", 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := twoSubnets(t, Device{})
			for _, at := range []Endpoint{{"a", 1}, {"b", 1}, {"rt", 1}, {"rt", 2}} {
				f.port(t, at.Node, at.Port).withKeys(tenant)
			}
			if tt.change != nil {
				tt.change(f)
			}
			got, err := f.Inject(Endpoint{"a", 1}, Data{SLID: 1, DLID: 3, PKey: tenant, GRH: tt.grh, DestQP: 2, Payload: 64})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got-, want+\n%s", diff)
			}
		})
	}
}

func TestRouterAttributes(t *testing.T) {
	f := twoSubnets(t, Modern())
	f.port(t, "rt", 2).withKeys(0x7FFF)
	s, err := f.Station("a", false)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(attr mad.AttrID, mod uint32, route ...ib.PortNum) *transport.Packet {
		t.Helper()
		p, way := transport.Packet{LID: ib.PermissiveLID}, mad.MakeRoute(route...)
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: attr, Mod: mod}, &way, ib.MKey{})
		got := s.Exchange([]transport.Packet{p}, nil)
		if len(got) != 1 {
			t.Fatalf("%d answers to Get %v", len(got), attr)
		}
		return &got[0]
	}
	var ni mad.NodeInfo
	must(mad.Decode(ask(mad.AttrNodeInfo, 0, 1, 2).MAD.Data(), &ni))
	if ni.NodeType != ib.NodeRouter || ni.NumPorts != 2 || ni.LocalPortNum != 1 || ni.PortGUID != 0x301 || ni.PartitionCap != partitionCap {
		t.Errorf("NodeInfo of a router: %+v", ni)
	}
	var pi mad.PortInfo
	must(mad.Decode(ask(mad.AttrPortInfo, 2, 1, 2).MAD.Data(), &pi))
	if pi.LID != 3 || pi.GIDPrefix != prefixB {
		t.Errorf("PortInfo of the other port: LID %v, prefix %v", pi.LID, pi.GIDPrefix)
	}
	var info mad.RouterInfo
	must(mad.Decode(ask(mad.AttrRouterInfo, 0, 1, 2).MAD.Data(), &info))
	if diff := cmp.Diff(info, mad.RouterInfo{AdjacentSiteLocalSubnetsTableCap: 1, AdjacentSiteLocalSubnetsTableTop: 1}); diff != "" {
		t.Errorf("RouterInfo: got-, want+\n%s", diff)
	}
	var table, want mad.AdjacentSubnetsTable
	must(mad.Decode(ask(mad.AttrAdjacentSubnetsTable, 0, 1, 2).MAD.Data(), &table))
	want.Subnet[0] = mad.AdjacentSubnet{PKey: 0x7FFF, SubnetPrefix: 0xB, MasterSMLID: 1}
	if diff := cmp.Diff(table, want); diff != "" {
		t.Errorf("adjacent subnets: got-, want+\n%s", diff)
	}
	for _, tt := range []struct {
		name  string
		attr  mad.AttrID
		mod   uint32
		route []ib.PortNum
		want  mad.Status
	}{
		{"SwitchInfo of a router", mad.AttrSwitchInfo, 0, []ib.PortNum{1, 2}, mad.StatusUnsupportedMethodAttr},
		{"forwarding of a router", mad.AttrLinearForwardingTable, 0, []ib.PortNum{1, 2}, mad.StatusUnsupportedMethodAttr},
		{"block that is not there", mad.AttrAdjacentSubnetsTable, 1, []ib.PortNum{1, 2}, mad.StatusInvalidField},
		{"RouterInfo of a switch", mad.AttrRouterInfo, 0, []ib.PortNum{1}, mad.StatusUnsupportedMethodAttr},
		{"adjacent subnets of a host", mad.AttrAdjacentSubnetsTable, 0, nil, mad.StatusUnsupportedMethodAttr},
	} {
		if got := ask(tt.attr, tt.mod, tt.route...).MAD.Status(); got != tt.want {
			t.Errorf("%s: status %v, want %v", tt.name, got, tt.want)
		}
	}
	if p := ask(mad.AttrNodeInfo, 0, 1, 2, 2); !p.Undelivered {
		t.Error("a directed route went through a router")
	}
	f.nodes[2].own = &Device{}
	if got := ask(mad.AttrRouterInfo, 0, 1, 2).MAD.Status(); got != mad.StatusUnsupportedMethodAttr {
		t.Errorf("RouterInfo of a plain router: status %v", got)
	}
}
