package sim_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

// tree is a fabric of sm, h1 on leaf1 and h2, h3 on leaf2, below spine1; hosts
// are on ports 1 and 2 of a leaf, ports 3 and 4 go up.
func tree(t testing.TB, o sim.Options) *sim.Fabric {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	return sim.NewWith(l, o)
}

func station(t testing.TB, f *sim.Fabric, node string, asSM bool) *sim.Station {
	t.Helper()
	s, err := f.Station(node, asSM)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func directed(h mad.Header, route ...ib.PortNum) transport.Packet {
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(route...)
	mad.NewSMP(&p.MAD, h, &r, ib.MKey{})
	return p
}

func toLID(lid ib.LID, h mad.Header) transport.Packet {
	p := transport.Packet{LID: lid}
	mad.NewSMP(&p.MAD, h, nil, ib.MKey{})
	return p
}

// only sends one packet and returns the one that comes back.
func only(t testing.TB, s *sim.Station, p transport.Packet) transport.Packet {
	t.Helper()
	got := s.Exchange([]transport.Packet{p}, nil)
	if len(got) != 1 {
		t.Fatalf("%d packets came back, want 1", len(got))
	}
	return got[0]
}

// get asks for an attribute and decodes it.
func get[T any](t testing.TB, s *sim.Station, attr mad.AttrID, mod uint32, route ...ib.PortNum) (v T) {
	t.Helper()
	in := only(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: attr, Mod: mod}, route...))
	if in.Undelivered || in.MAD.Method() != mad.MethodGetResp || in.MAD.Status() != mad.StatusOK {
		t.Fatalf("Get %v %v: undelivered %v, %v %v", attr, route, in.Undelivered, in.MAD.Method(), in.MAD.Status())
	}
	if err := mad.Decode(in.MAD.Data(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// set writes an attribute and returns the status and the value in the answer.
func set[T any](t testing.TB, s *sim.Station, attr mad.AttrID, mod uint32, v T, route ...ib.PortNum) (mad.Status, T) {
	t.Helper()
	p := directed(mad.Header{Method: mad.MethodSet, Attr: attr, Mod: mod}, route...)
	if err := mad.Encode(p.MAD.Data(), &v); err != nil {
		t.Fatal(err)
	}
	in := only(t, s, p)
	if in.Undelivered {
		t.Fatalf("Set %v %v is undelivered", attr, route)
	}
	if err := mad.Decode(in.MAD.Data(), &v); err != nil {
		t.Fatal(err)
	}
	return in.MAD.Status(), v
}

// portSet changes a port: it reads the current value, applies change, and sets the result.
func portSet(t testing.TB, s *sim.Station, num ib.PortNum, change func(*mad.PortInfo), route ...ib.PortNum) mad.Status {
	t.Helper()
	pi := get[mad.PortInfo](t, s, mad.AttrPortInfo, uint32(num), route...)
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	change(&pi)
	status, _ := set(t, s, mad.AttrPortInfo, uint32(num), pi, route...)
	return status
}

func TestPacketsThatReachNobody(t *testing.T) {
	nodeInfo := mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 9}
	for _, tt := range []struct {
		name string
		p    transport.Packet
	}{
		{"wrong port of an HCA", directed(nodeInfo, 2)},
		{"port that is not there", directed(nodeInfo, 1, 99)},
		{"port 0 of a switch", directed(nodeInfo, 1, 0)},
		{"through an HCA", directed(nodeInfo, 1, 2, 1)},
		{"LID that nobody has", toLID(17, nodeInfo)},
		{"SMInfo where no SM is", directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: 9}, 1, 2)},
		{"trap where no SM is", directed(mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: 9}, 1, 2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			loud := tree(t, sim.Options{})
			in := only(t, station(t, loud, "sm", false), tt.p)
			if !in.Undelivered || in.MAD.Method() != tt.p.MAD.Method() || uint32(in.MAD.TID()) != 9 || in.MAD.Returning() {
				t.Errorf("came back as %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
			}
			silent := tree(t, sim.Options{LoseSilently: true})
			if got := station(t, silent, "sm", false).Exchange([]transport.Packet{tt.p}, nil); len(got) != 0 {
				t.Errorf("with LoseSilently %d packets came back", len(got))
			}
			if got := silent.Stats().Undelivered; got != 1 {
				t.Errorf("%d packets counted as undelivered, want 1", got)
			}
		})
	}
}

func TestMalformedPacketsAreDropped(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*mad.MAD)
	}{
		{"base version", func(m *mad.MAD) { m[0] = 2 }},
		{"class version of an SMP", func(m *mad.MAD) { m[2] = 2 }},
		{"hop pointer not 0", func(m *mad.MAD) { m.SetHopPointer(1) }},
		{"too many hops", func(m *mad.MAD) { m[7] = 64 }},
		{"LID part behind a path that ends at an HCA", func(m *mad.MAD) { m[7] = 0; m.SetDrDLID(1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{LoseSilently: true})
			p := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)
			tt.spoil(&p.MAD)
			if got := station(t, f, "sm", false).Exchange([]transport.Packet{p}, nil); len(got) != 0 {
				t.Errorf("%d packets came back", len(got))
			}
			if got := f.Stats().Malformed; got != 1 {
				t.Errorf("%d malformed packets counted, want 1", got)
			}
		})
	}
}

// forward programs LIDs and forwarding so that sm has LID 1 and h1 LID 2 on
// leaf1, which has LID 3.
func forward(t testing.TB, s *sim.Station) {
	t.Helper()
	lid := func(v ib.LID) func(*mad.PortInfo) {
		return func(pi *mad.PortInfo) { pi.LID, pi.MasterSMLID = v, 1 }
	}
	for _, step := range []mad.Status{
		portSet(t, s, 1, lid(1)),
		portSet(t, s, 1, lid(2), 1, 2),
		portSet(t, s, 0, lid(3), 1),
	} {
		if step != mad.StatusOK {
			t.Fatalf("Set of a LID: %v", step)
		}
	}
	si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, 1)
	si.LinearFDBTop = 3
	if status, _ := set(t, s, mad.AttrSwitchInfo, 0, si, 1); status != mad.StatusOK {
		t.Fatalf("Set of SwitchInfo: %v", status)
	}
	lft := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, 1)
	lft.Port[1], lft.Port[2], lft.Port[3] = 1, 2, 0
	if status, _ := set(t, s, mad.AttrLinearForwardingTable, 0, lft, 1); status != mad.StatusOK {
		t.Fatalf("Set of forwarding: %v", status)
	}
}

func TestForwardingTablesCarrySMPs(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	forward(t, s)
	for lid, want := range map[ib.LID]ib.GUID{1: 0x0020000000000000, 2: 0x0020000000000100, 3: 0x0010000100000001} {
		in := only(t, s, toLID(lid, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}))
		var ni mad.NodeInfo
		if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
			t.Fatal(err)
		}
		if in.Undelivered || ni.NodeGUID != want || in.LID != lid {
			t.Errorf("LID %v: %v from LID %v, undelivered %v; want %v", lid, ni.NodeGUID, in.LID, in.Undelivered, want)
		}
	}
	if got := f.Egress("leaf1", 2); got != 2 {
		t.Errorf("leaf1 sends LID 2 to port %d, want 2", got)
	}
}

func TestWrongForwardingTablesAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lft   map[string]ib.PortNum // egress of LID 9 by switch
		count func(sim.Stats) uint64
	}{
		{"no route", map[string]ib.PortNum{"leaf1": ib.NoPort}, func(s sim.Stats) uint64 { return s.NoRoute }},
		{"port that is not there", map[string]ib.PortNum{"leaf1": 200}, func(s sim.Stats) uint64 { return s.NoRoute }},
		{"wrong host", map[string]ib.PortNum{"leaf1": 2}, func(s sim.Stats) uint64 { return s.NoRoute }},
		{"loop", map[string]ib.PortNum{"leaf1": 3, "spine1": 1}, func(s sim.Stats) uint64 { return s.Looped }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			s := station(t, f, "sm", false)
			forward(t, s)
			routes := map[string][]ib.PortNum{"leaf1": {1}, "spine1": {1, 3}}
			for name, out := range tt.lft {
				si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, routes[name]...)
				si.LinearFDBTop = 9
				set(t, s, mad.AttrSwitchInfo, 0, si, routes[name]...)
				lft := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, routes[name]...)
				lft.Port[9] = out
				set(t, s, mad.AttrLinearForwardingTable, 0, lft, routes[name]...)
			}
			if in := only(t, s, toLID(9, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo})); !in.Undelivered {
				t.Error("the packet arrived somewhere")
			}
			if got := tt.count(f.Stats()); got != 1 {
				t.Errorf("counted %d times, want once: %+v", got, f.Stats())
			}
		})
	}
}

func TestSMInfoAndGMPsReachTheSM(t *testing.T) {
	f := tree(t, sim.Options{})
	sm := station(t, f, "sm", true)
	host := station(t, f, "h1", false)
	forward(t, sm)
	ask := toLID(1, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: 3})
	host.Send(ask)
	got := sm.Take(nil)
	if len(got) != 1 || got[0].MAD.Attr() != mad.AttrSMInfo || got[0].LID != 2 {
		t.Fatalf("the SM received %d packets", len(got))
	}
	got[0].MAD.Respond(mad.StatusOK)
	sm.Send(got[0])
	if back := host.Take(nil); len(back) != 1 || uint32(back[0].MAD.TID()) != 3 || back[0].Undelivered {
		t.Fatalf("the host received %+v", back)
	}

	gmp := transport.Packet{LID: 1, QP: 1}
	gmp.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo, TID: 4})
	if in := only(t, host, gmp); !in.Undelivered {
		t.Error("a GMP crossed ports that are not Active")
	}
	activate(t, sm)
	host.Send(gmp)
	if got := sm.Take(nil); len(got) != 1 || got[0].QP != 1 || got[0].LID != 2 {
		t.Fatalf("the SM received %d packets", len(got))
	}
}

// Reports of a subnet manager to subscribers: traps 64 to 67, forwarded as Reports to programs at other ports, and their
// answers.
func TestReportsReachSubscribers(t *testing.T) {
	const noticeAt, numberAt = 56, 56 + 4
	f := tree(t, sim.Options{})
	sm, host := station(t, f, "sm", true), station(t, f, "h1", true)
	forward(t, sm)
	activate(t, sm)
	for _, number := range []mad.TrapNum{mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted} {
		report := transport.Packet{LID: 2, QP: 1}
		report.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodReport, Attr: mad.AttrNotice, TID: ib.TID(number)})
		notice := mad.Trap64{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSubnetManagement, ProducerType: mad.ProducerClassManager, TrapNumber: number, IssuerLID: 1},
			GID:          ib.MakeGID(ib.DefaultPrefix, 0x77),
		}
		if err := mad.Encode(report.MAD[noticeAt:], &notice); err != nil {
			t.Fatal(err)
		}
		sm.Send(report)
		got := host.Take(nil)
		if len(got) != 1 || got[0].LID != 1 || got[0].QP != 1 || mad.TrapNum(binary.BigEndian.Uint16(got[0].MAD[numberAt:])) != number {
			t.Fatalf("%v: the subscriber received %d packets", number, len(got))
		}
		got[0].MAD.Respond(mad.StatusOK)
		host.Send(got[0])
		if back := sm.Take(nil); len(back) != 1 || back[0].MAD.Method() != mad.MethodReportResp || uint32(back[0].MAD.TID()) != uint32(number) {
			t.Errorf("%v: the subnet manager received %d answers", number, len(back))
		}
	}
}

// activate takes both links of leaf1 to its hosts to Active.
func activate(t testing.TB, s *sim.Station) {
	t.Helper()
	for _, state := range []ib.PortState{ib.PortArmed, ib.PortActive} {
		to := func(pi *mad.PortInfo) { pi.PortState = state }
		for _, status := range []mad.Status{
			portSet(t, s, 1, to), portSet(t, s, 1, to, 1), portSet(t, s, 2, to, 1), portSet(t, s, 1, to, 1, 2),
		} {
			if status != mad.StatusOK {
				t.Fatalf("Set to %v: %v", state, status)
			}
		}
	}
}

func TestStations(t *testing.T) {
	f := tree(t, sim.Options{})
	first := station(t, f, "", true)
	if first.Node() != "sm" || first.GUID() != 0x0020000000000001 {
		t.Errorf("the default station is at %q %v", first.Node(), first.GUID())
	}
	if _, err := f.Station("sm", true); err == nil {
		t.Error("a second SM was let onto the port")
	}
	if _, err := f.Station("nowhere", false); !errors.Is(err, sim.ErrUnknownNode) {
		t.Errorf("station at an unknown node: %v", err)
	}
	slot := first.Slot()
	first.Close()
	first.Close()
	if again := station(t, f, "sm", true); again.Slot() != slot {
		t.Errorf("slot %d after %d was given back", again.Slot(), slot)
	}
	if got := first.Exchange([]transport.Packet{directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo})}, nil); len(got) != 0 {
		t.Error("a closed station received an answer")
	}
}

func TestIdenticalRuns(t *testing.T) {
	run := func() (got []transport.Packet, stats sim.Stats) {
		f := tree(t, sim.Options{Seed: 7})
		if err := f.SetFault("", sim.Fault{Loss: 0.3, Duplicate: 0.3, Delay: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		s := station(t, f, "sm", false)
		for i := range 100 {
			s.Send(directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: ib.TID(i)}, 1))
			f.Advance(time.Millisecond / 2)
		}
		f.Advance(time.Second)
		return s.Take(nil), f.Stats()
	}
	one, oneStats := run()
	two, twoStats := run()
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("packets differ:\n%s", diff)
	}
	if diff := cmp.Diff(oneStats, twoStats); diff != "" || oneStats.Lost == 0 {
		t.Errorf("counters differ, or nothing was lost:\n%s", diff)
	}
}
