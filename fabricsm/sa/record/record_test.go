package record_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/record"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/testbed"
)

// bed is a simulated fabric that is settled, and the book of it.
type bed struct {
	*testbed.Stage
	book *portindex.Book
}

// The hosts of a bed: h1 and h2 are full members of one partition, h3 is a limited
// one, as is h4; h5 is alone in another.
var members = map[string]ib.PKey{"h1": 0x8001, "h2": 0x8001, "h3": 0x0001, "h4": 0x0001, "h5": 0x8002}

const groups = 3

// keyRoom returns the size of P_Key tables of end ports of a simulated node.
func keyRoom(n *netlist.Node) uint16 {
	if n.Type == ib.NodeSwitch {
		return 8
	}
	return 64
}

// fabric is a tree with a host on two leaves, whose third port has no cable.
func fabric(t testing.TB) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 16})
	if err != nil {
		t.Fatal(err)
	}
	dual := *l.Find("h7")
	dual.Name, dual.Description, dual.GUID, dual.SystemImageGUID = "dual", "dual", 0x5000, 0x5000
	link := dual.Ports[1]
	dual.Ports = make([]netlist.Port, 4)
	for i, leaf := range []string{"leaf1", "leaf2"} {
		sw := l.Find(leaf)
		free := slices.IndexFunc(sw.Ports[1:], func(p netlist.Port) bool { return p.Peer == "" }) + 1
		sw.Ports[free] = netlist.Port{Peer: "dual", PeerPort: ib.PortNum(i + 1), Link: link.Link}
		dual.Ports[i+1] = netlist.Port{Peer: leaf, PeerPort: ib.PortNum(free), Link: link.Link}
	}
	l.Nodes = append(l.Nodes, dual)
	return l
}

func newBed(t testing.TB, cfg sm.Config, hooks ...func(*testbed.Stage)) *bed {
	t.Helper()
	l := fabric(t)
	cfg.AuditPeriod = -1
	s, err := testbed.New(testbed.Options{Netlist: l, SM: cfg})
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		hook(s)
	}
	s.Start()
	in := sm.Intent{Revision: 1}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if k, ok := members[n.Name]; ok {
			p := n.Ports[1]
			in.Grants = append(in.Grants, sm.Grant{GUID: n.PortGUID(1), Place: ib.Place{Switch: l.Find(p.Peer).GUID, Port: p.PeerPort}, PKey: k})
		}
	}
	s.Want(in)
	b := &bed{Stage: s}
	b.settle(t)
	join := &sm.GroupsSet{}
	for g := range groups {
		mlid := ib.MinMulticastLID + ib.LID(g*40)
		join.MLIDs = append(join.MLIDs, mlid)
		for _, h := range []string{"h1", "h2", "h5"} {
			join.Joins = append(join.Joins, multicast.Join{MLID: mlid, GUID: l.Find(h).PortGUID(1), State: ib.FullMember})
		}
	}
	s.Step(join)
	h1 := l.Find("h1")
	s.Step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{{
		GUID: h1.PortGUID(1), Place: in.Grants[0].Place, Aliases: []ib.GUID{0x777, 0, 0x778},
	}}})
	b.settle(t)
	return b
}

// settle lets the manager come to rest and has the book follow.
func (b *bed) settle(t testing.TB) {
	t.Helper()
	if err := b.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.Run(30 * time.Second) // for names
	if err := b.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.book = portindex.New(b.book, b.View())
}

// oddQoS are options that differ from the power-on state of devices.
var oddQoS = []string{"qos TRUE", "qos_sl2vl 1,0,3,2,5,4,7,6,0,0,0,0,0,0,0,15", "qos_vlarb_low 0:8"}

func odd(t testing.TB) (o qos.Options) {
	t.Helper()
	for _, line := range oddQoS {
		name, value, _ := strings.Cut(line, " ")
		if known, err := o.Set(name, value); !known || err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return o
}

// configs are the fabrics on which records are compared.
func configs(t testing.TB) map[string]sm.Config {
	return map[string]sm.Config{"plain": {}, "with quality of service and LMC 1": {QoS: odd(t), LMC: 1}}
}

var attrs = []mad.AttrID{
	mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSLtoVLRecord, mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingRecord,
	mad.AttrMulticastForwardingRecord, mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrGUIDInfoRecord, mad.AttrPKeyTableRecord,
	mad.AttrVLArbitrationRecord,
}

func (b *bed) asker(node string, trusted bool) *portindex.Asker {
	e := b.book.ByGUID(b.List.Find(node).PortGUID(1))
	return &portindex.Asker{Port: e.Port, As: e.GUID, LID: e.LID, Trusted: trusted}
}

// ask returns the records of a GetTable, and its status.
func (b *bed) ask(a *portindex.Asker, q record.Query) (out [][]byte, status mad.Status) {
	if q.Method == 0 {
		q.Method = mad.MethodGetTable
	}
	c, status := record.Find(b.book, a, &q)
	for {
		r := make([]byte, mad.RecordSize(q.Attr))
		n, ok := c.Next(r)
		if !ok {
			return out, status
		}
		out = append(out, r[:n])
	}
}

// TestRecordsAreTrue compares all records, as a trusted asker gets them, with the
// state of the simulated devices.
func TestRecordsAreTrue(t *testing.T) {
	for name, cfg := range configs(t) {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			judge := func() {
				t.Helper()
				for _, attr := range attrs {
					got, status := b.ask(b.asker("sm", true), record.Query{Attr: attr})
					if status != mad.StatusOK {
						t.Errorf("%v: %v", attr, status)
					}
					compare(t, attr, got, texts(b.truth(t, attr)))
				}
			}
			judge()
			if err := b.Fabric.Unlink("h5", 1); err != nil {
				t.Fatal(err)
			}
			b.Run(2 * time.Second)
			b.settle(t)
			judge()
		})
	}
}

// compare compares records in any order. It ignores the field in which a port reports where it was asked, because that is
// no state.
func compare(t *testing.T, attr mad.AttrID, got [][]byte, want []string) {
	t.Helper()
	var have []string
	for _, r := range got {
		r = slices.Clone(r)
		if attr == mad.AttrPortInfoRecord {
			r[4+28] = 0
		}
		have = append(have, fmt.Sprintf("%x", r))
	}
	if attr != mad.AttrSMInfoRecord && !slices.IsSortedFunc(got, func(a, b []byte) int { return bytes.Compare(a[:2], b[:2]) }) {
		t.Errorf("%v: not by LID", attr)
	}
	slices.Sort(have)
	slices.Sort(want)
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			t.Fatalf("%v: %d records, want %d; the first that differs:\n got %s\nwant %s", attr, len(have), len(want), at(have, i), at(want, i))
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

func texts(list []truth) (out []string) {
	for _, r := range list {
		out = append(out, fmt.Sprintf("%x", r.bytes))
	}
	return out
}

// truth is a record as the simulated devices would have it, and whose end ports one
// must know to see it: names of nodes.
type truth struct {
	bytes []byte
	of    []string
}

func pad(p []byte, size int) []byte { return append(p, make([]byte, size-len(p))...) }

func be16(v ...uint16) (p []byte) {
	for _, v := range v {
		p = binary.BigEndian.AppendUint16(p, v)
	}
	return p
}

func encode[T any](t testing.TB, v T) []byte {
	t.Helper()
	p := make([]byte, mad.LayoutOf[T]().Size())
	if err := mad.Encode(p, &v); err != nil {
		t.Fatal(err)
	}
	return p
}

// endsOf returns the ports of a node that have a LID.
func endsOf(n *netlist.Node) (ends []ib.PortNum) {
	if n.Type == ib.NodeSwitch {
		return []ib.PortNum{0}
	}
	for num := 1; num < len(n.Ports); num++ {
		if n.Ports[num].Peer != "" {
			ends = append(ends, ib.PortNum(num))
		}
	}
	return ends
}

func (b *bed) truth(t testing.TB, attr mad.AttrID) (all []truth) {
	t.Helper()
	for i := range b.List.Nodes {
		n := &b.List.Nodes[i]
		for _, end := range endsOf(n) {
			info := b.Fabric.PortInfo(n.Name, end)
			if end > 0 && info.PortState != ib.PortActive {
				continue
			}
			lid := be16(uint16(info.LID))
			for _, r := range b.truthOf(t, attr, n, end, &info) {
				all = append(all, truth{pad(append(slices.Clone(lid), r.bytes...), mad.RecordSize(attr)), append(r.of, n.Name)})
			}
		}
	}
	return all
}

// truthOf returns the records of an end port, without their leading LID.
func (b *bed) truthOf(t testing.TB, attr mad.AttrID, n *netlist.Node, end ib.PortNum, info *mad.PortInfo) (all []truth) {
	t.Helper()
	f := b.Fabric
	add := func(parts ...[]byte) { all = append(all, truth{bytes: slices.Concat(parts...)}) }
	isSwitch := n.Type == ib.NodeSwitch
	ports := []ib.PortNum{end}
	if isSwitch {
		ports = nil
		for num := range n.Ports {
			ports = append(ports, ib.PortNum(num))
		}
	}
	linked := func(num ib.PortNum) bool { return num > 0 && f.PortInfo(n.Name, num).PortState == ib.PortActive }
	qosOn := b.SM.QoS.Enabled
	switch attr {
	case mad.AttrNodeRecord:
		ni := mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: n.Type, NumPorts: uint8(n.NumPorts()), SystemImageGUID: n.SystemImageGUID,
			NodeGUID: n.GUID, PortGUID: n.PortGUID(end), LocalPortNum: end,
			PartitionCap: keyRoom(n), DeviceID: n.DeviceID, Revision: 0xA1, VendorID: n.VendorID,
		}
		add(be16(0), encode(t, ni), encode(t, mad.MakeNodeDescription(n.Name)))
	case mad.AttrPortInfoRecord:
		for _, num := range ports {
			pi := f.PortInfo(n.Name, num)
			pi.MKey, pi.LocalPortNum = ib.MKey{}, 0
			if pi.LinkSpeedExtActive != 0 {
				pi.LinkSpeedSupported |= ib.SpeedQDR
				pi.LinkSpeedActive |= ib.SpeedQDR
				pi.LinkSpeedEnabled |= ib.SpeedQDR
			}
			add([]byte{byte(num), 0}, encode(t, pi))
		}
	case mad.AttrSLtoVLRecord:
		for _, out := range ports {
			// Tables that the manager leaves alone have records of zeros.
			left := !qosOn || !linked(out)
			table := func(in ib.PortNum) []byte {
				if left {
					return make([]byte, 8)
				}
				return encode(t, f.SLtoVL(n.Name, in, out))
			}
			if !isSwitch {
				add(make([]byte, 6), table(0))
				continue
			}
			for _, in := range ports {
				add([]byte{byte(in), byte(out)}, make([]byte, 4), table(in))
			}
		}
	case mad.AttrSwitchInfoRecord:
		if isSwitch {
			add(be16(0), encode(t, f.SwitchInfo(n.Name)))
		}
	case mad.AttrLinearForwardingRecord:
		if isSwitch {
			var lft mad.LinearForwardingTable
			for i := range lft.Port {
				lft.Port[i] = f.Egress(n.Name, ib.LID(i))
			}
			add(be16(0, 0, 0), encode(t, lft))
		}
	case mad.AttrMulticastForwardingRecord:
		for block := range uint16((groups-1)*40/32 + 1) {
			for position := range uint16(n.NumPorts()/16 + 1) {
				var mft mad.MulticastForwardingTable
				for i := range mft.PortMask {
					for _, num := range f.MulticastPorts(n.Name, ib.MinMulticastLID+ib.LID(int(block)*32+i)) {
						if uint16(num)/16 == position {
							mft.PortMask[i] |= 1 << (num % 16)
						}
					}
				}
				if isSwitch {
					add(be16(position<<12|block, 0, 0), encode(t, mft))
				}
			}
		}
	case mad.AttrSMInfoRecord:
		if n.Name == "sm" {
			v := b.View()
			add(be16(0), encode(t, mad.SMInfo{GUID: n.PortGUID(1), ActCount: v.ActCount, Priority: v.Priority, SMState: ib.SMMaster}))
		}
	case mad.AttrLinkRecord:
		for _, num := range ports {
			if p := n.Ports[num]; p.Peer != "" && linked(num) {
				far := b.List.Find(p.Peer)
				farEnd := ib.PortNum(0)
				if far.Type != ib.NodeSwitch {
					farEnd = p.PeerPort
				}
				lid := f.PortInfo(far.Name, farEnd).LID
				all = append(all, truth{slices.Concat([]byte{byte(num), byte(p.PeerPort)}, be16(uint16(lid))), []string{far.Name}})
			}
		}
	case mad.AttrGUIDInfoRecord:
		guids := make([]ib.GUID, (int(info.GUIDCap)+7)/8*8)
		copy(guids, f.GUIDs(n.Name, end))
		for block := range len(guids) / 8 {
			add([]byte{byte(block), 0, 0, 0, 0, 0}, encode(t, mad.GUIDInfo{GUID: [8]ib.GUID(guids[block*8:])}))
		}
	case mad.AttrPKeyTableRecord:
		for _, num := range ports {
			for block := range b.keyBlocks(n, num) {
				var table mad.PKeyTable
				for i := range table.PKey {
					table.PKey[i] = f.PKeyAt(n.Name, num, block*32+i)
				}
				add([]byte{byte(block), 0, byte(num), 0, 0, 0}, encode(t, table))
			}
		}
	case mad.AttrVLArbitrationRecord:
		for _, num := range ports {
			for half := mad.VLArbLow0; half <= mad.VLArbHigh32; half++ {
				table := make([]byte, 64)
				if qosOn && linked(num) && (half == mad.VLArbLow0 || half == mad.VLArbHigh0) {
					table = encode(t, f.VLArbitration(n.Name, num, half))
				}
				add([]byte{byte(num), byte(half)}, make([]byte, 4), table)
			}
		}
	}
	return all
}

// keyBlocks returns how many blocks of the P_Key table of a port are managed: all, but for switch ports only those with a
// host behind them.
func (b *bed) keyBlocks(n *netlist.Node, num ib.PortNum) int {
	size := keyRoom(n)
	if n.Type == ib.NodeSwitch && num > 0 {
		size = b.Fabric.SwitchInfo(n.Name).PartitionEnforcementCap
		if p := n.Ports[num]; p.Peer == "" || b.List.Find(p.Peer).Type == ib.NodeSwitch {
			return 0
		}
	}
	return (int(size) + 31) / 32
}
