package seentest

import (
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// Ports of h1 and h2 of Tree, an alias GUID that Registered assigns to h2, the group that it makes, and keys that must not
// be shown: the SA_Key, and how a ServiceKey begins.
const (
	Port1, Port2 = ib.GUID(0x0020000000000101), ib.GUID(0x0020000000000201)
	Alias2       = ib.GUID(0x0020000000abcd01)
	SAKey        = 0x5ec2e7a1b1c1d1e1
	ServiceKey   = 0xbeef
)

// Group is the multicast group that h1 makes and h2 joins.
var Group = ib.GID{0xFF, 0x12, 0xA0, 0x1C, 15: 9}

// Owners has h1 be host compute-1 of acme, and h2 compute-2 of blue, by their places.
func Owners() query.Options {
	at := func(leaf ib.GUID, port ib.PortNum) ib.Place { return ib.Place{Switch: leaf, Port: port} }
	return query.Options{
		Cables: func() map[ib.Place]string {
			return map[ib.Place]string{at(0x0010000100000001, 2): "compute-1", at(0x0010000100000002, 1): "compute-2"}
		},
		Tenants: func() map[string]string { return map[string]string{"compute-1": "acme", "compute-2": "blue"} },
	}
}

// Registered returns a view of Tree once h1 and h2 have registered something of each kind with subnet administration.
func Registered(t *testing.T) (*sm.View, *sa.Status) {
	t.Helper()
	l, err := netlist.Parse(t.Name(), []byte(Tree))
	if err != nil {
		t.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	cfg.Key = ib.NewSAKey(SAKey)
	cfg.Fixed = []group.Fixed{group.IPoIB(0x8001, 0)}
	cfg.Aliases.Inventory = anyAlias{}
	s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", SM: sm.DefaultConfig(), Fabric: sim.Options{Device: sim.Modern()}, SA: &cfg, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Want(Grants())
	settle := func() {
		if err := s.Settle(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	set := func(host string, key ib.SAKey, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte) error) {
		t.Helper()
		p := transport.Packet{LID: s.View().LID, QP: 1}
		p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodSet, TID: 7, Attr: attr})
		p.MAD.SetSAKey(key)
		p.MAD.SetComponentMask(mask)
		if err := fill(p.MAD.SAData()); err != nil {
			t.Fatal(err)
		}
		h, err := s.Fabric.Station(host, true)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		h.Send(p)
		var got []transport.Packet
		for range 100 {
			s.Run(time.Millisecond)
			got = h.Take(got)
		}
		got = slices.DeleteFunc(got, func(p transport.Packet) bool { return p.MAD.Method() == mad.MethodReport })
		if len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
			t.Fatalf("%s sets %v: %v", host, attr, got)
		}
	}
	gid := func(g ib.GUID) ib.GID { return ib.MakeGID(ib.DefaultPrefix, g) }
	join := func(host string, mgid ib.GID, port ib.GUID, state ib.JoinState, mask mad.ComponentMask) {
		t.Helper()
		set(host, ib.SAKey{}, mad.AttrMCMemberRecord, mask,
			record(mad.MCMemberRecord{MGID: mgid, PortGID: gid(port), JoinState: state, PKey: 0x8001, QKey: 0x1234}))
	}
	join("h1", Group, Port1, ib.FullMember, mad.MCMemberCreate)
	join("h2", Group, Port2, ib.SendOnlyNonMember, mad.MCMemberJoin)
	join("h2", group.Broadcast(0x8001, 2), Port2, ib.FullMember, mad.MCMemberJoin)
	const service = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName
	mail := mad.ServiceRecord{ServiceID: 5, ServiceGID: gid(Port1), ServicePKey: 0x8001, ServiceLease: mad.LeaseForever, ServiceKey: ib.NewServiceKey([16]byte{ServiceKey >> 8, ServiceKey & 0xFF, 15: 1})}
	copy(mail.ServiceName[:], "mail\x1b")
	set("h1", ib.SAKey{}, mad.AttrServiceRecord, service|mad.ServiceComponentServicePKey|mad.ServiceComponentServiceKey, record(mail))
	clock := mad.ServiceRecord{ServiceID: 6, ServiceGID: gid(Port2), ServiceLease: 60}
	copy(clock.ServiceName[:], "clock")
	set("h2", ib.SAKey{}, mad.AttrServiceRecord, service, record(clock))
	hear := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: 64, ProducerType: mad.AllProducers}
	set("h1", ib.SAKey{}, mad.AttrInformInfo, 0, record(hear))
	hear.TrapNumber = mad.AllTraps
	set("h2", ib.NewSAKey(SAKey), mad.AttrInformInfo, 0, record(hear))
	set("h2", ib.NewSAKey(SAKey), mad.AttrGUIDInfoRecord, mad.GUIDInfoComponentLID|mad.GUIDInfoComponentBlockNum|mad.GUIDInfoComponentGUID(2),
		record(mad.GUIDInfoRecord{LID: s.Fabric.PortInfo("h2", 1).LID, GUIDInfo: mad.GUIDInfo{GUID: [mad.GUIDsPerBlock]ib.GUID{2: Alias2}}}))
	settle()
	return s.View(), s.Administration().Status()
}

func record[T any](rec T) func([]byte) error {
	return func(b []byte) error { return mad.Encode(b, &rec) }
}

type anyAlias struct{}

func (anyAlias) Allows(_, g ib.GUID) bool                   { return g == Alias2 }
func (anyAlias) Choose(ib.GUID, func(ib.GUID) bool) ib.GUID { return 0 }
