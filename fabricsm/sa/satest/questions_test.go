package satest_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
)

// ask is a query with a name, and its host.
type ask struct {
	name string
	host string
	q    satest.Question
}

// Kinds of records: how many bytes each is and how many components it has.
var tables = []struct {
	attr       mad.AttrID
	size       int
	components int
}{
	{mad.AttrNodeRecord, 108, 15},
	{mad.AttrPortInfoRecord, 68, 58},
	{mad.AttrSLtoVLRecord, 16, 5},
	{mad.AttrSwitchInfoRecord, 24, 21},
	{mad.AttrLinearForwardingRecord, 72, 3},
	{mad.AttrMulticastForwardingRecord, 72, 5},
	{mad.AttrSMInfoRecord, 25, 7},
	{mad.AttrLinkRecord, 6, 4},
	{mad.AttrGUIDInfoRecord, 72, 12},
	{mad.AttrServiceRecord, 176, 37},
	{mad.AttrPKeyTableRecord, 72, 4},
	{mad.AttrPathRecord, 64, 22},
	{mad.AttrVLArbitrationRecord, 72, 4},
	{mad.AttrMCMemberRecord, 52, 18},
	{mad.AttrInformInfoRecord, 60, 16},
}

// nameOf returns the name of an attribute of subnet administration. String returns the name that other classes have for the
// same number.
func nameOf(a mad.AttrID) string {
	if l, ok := mad.LookupLayout(mad.ClassSubnAdm, a); ok {
		return l.Name()
	}
	return fmt.Sprintf("attribute %#04x", uint16(a))
}

// others have sizes, but no tables.
var others = map[mad.AttrID]int{mad.AttrClassPortInfo: 72, mad.AttrInformInfo: 36}

// record makes the bytes of a record, field by field.
type record []byte

func blank(size int) record { return make(record, size) }

func (r record) u8(at int, v uint8) record   { r[at] = v; return r }
func (r record) u16(at int, v uint16) record { binary.BigEndian.PutUint16(r[at:], v); return r }
func (r record) u32(at int, v uint32) record { binary.BigEndian.PutUint32(r[at:], v); return r }
func (r record) u64(at int, v uint64) record { binary.BigEndian.PutUint64(r[at:], v); return r }
func (r record) lid(at int, l ib.LID) record { return r.u16(at, uint16(l)) }
func (r record) gid(at int, prefix uint64, g ib.GUID) record {
	return r.u64(at, prefix).u64(at+8, uint64(g))
}

// bits makes a component mask.
func bits(n ...int) (m mad.ComponentMask) {
	for _, b := range n {
		m |= 1 << b
	}
	return m
}

// place is a fabric as questions need to know it.
type place struct {
	list *netlist.Netlist
	lids map[ib.GUID]ib.LID // by port GUID
}

const (
	linkLocal = 0xfe80000000000000
	foreign   = 0xfec0000000000001
	nowhere   = ib.GUID(0x00deadbeef000001)
	noLID     = ib.LID(0x0777)
)

func (p *place) guid(host string) ib.GUID { return p.list.Find(host).PortGUID(1) }
func (p *place) lid(host string) ib.LID   { return p.lids[p.guid(host)] }

// look learns the LIDs of a fabric from a client that may see all of it.
func look(t testing.TB, c *satest.Client, l *netlist.Netlist, key ib.SAKey) *place {
	t.Helper()
	a, err := c.Ask(satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{l, make(map[ib.GUID]ib.LID)}
	for _, r := range a.Records() {
		p.lids[ib.GUID(binary.BigEndian.Uint64(r[4+20:]))] = ib.LID(binary.BigEndian.Uint16(r))
	}
	if len(p.lids) != len(l.Nodes) {
		t.Fatalf("%d ports have LIDs, of %d nodes", len(p.lids), len(l.Nodes))
	}
	return p
}

// wholeTables asks for all records of every kind.
func wholeTables(host string, key ib.SAKey) (asks []ask) {
	for _, e := range tables {
		for _, m := range [...]mad.Method{mad.MethodGetTable, mad.MethodGet} {
			asks = append(asks, ask{
				fmt.Sprintf("%v %s", m, nameOf(e.attr)), host,
				satest.Question{Method: m, Attr: e.attr, Key: key},
			})
		}
	}
	return asks
}

// oneComponent asks for existing records, and then for those that match them in each single component.
func oneComponent(t testing.TB, c *satest.Client, host string, key ib.SAKey) (asks []ask) {
	t.Helper()
	for _, e := range tables {
		a, err := c.Ask(satest.Question{Method: mad.MethodGetTable, Attr: e.attr, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		all := a.Records()
		if len(all) == 0 {
			t.Logf("no %s to make questions of", nameOf(e.attr))
			continue
		}
		for _, k := range sample(len(all)) {
			for b := range e.components {
				if e.attr == mad.AttrPortInfoRecord && b == localPortNum || e.attr == mad.AttrNodeRecord && b == nodeLocalPortNum {
					continue // see fluid
				}
				asks = append(asks, ask{
					fmt.Sprintf("GetTable %s like record %d in component %d", nameOf(e.attr), k, b), host,
					satest.Question{Method: mad.MethodGetTable, Attr: e.attr, Mask: bits(b), Record: all[k], Key: key},
				})
			}
		}
	}
	return asks
}

// Components that contain the place of the query at a switch.
const (
	localPortNum     = 10 // of a PortInfoRecord
	nodeLocalPortNum = 12 // of a NodeRecord
)

// sample returns the first, one in the middle and the last.
func sample(n int) []int {
	switch n {
	case 1:
		return []int{0}
	case 2:
		return []int{0, 1}
	default:
		return []int{0, n * 2 / 3, n - 1}
	}
}

// methods asks with every method of every attribute, and with some that do not exist.
func methods(host string, key ib.SAKey) (asks []ask) {
	attrs := []mad.AttrID{
		mad.AttrClassPortInfo, mad.AttrInformInfo, mad.AttrRandomForwardingRecord,
		mad.AttrMultiPathRecord, mad.AttrTraceRecord, mad.AttrServiceAssociationRecord, 0x0000, 0x0019, 0x0040, 0x0099, 0xFFFF,
	}
	for _, e := range tables {
		attrs = append(attrs, e.attr)
	}
	for _, attr := range attrs {
		for _, m := range [...]mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetTable, methodGetTrace, mad.MethodGetMulti, methodDelete, 0x06, 0x7F} {
			asks = append(asks, ask{
				fmt.Sprintf("method %#x of %s, nothing given", uint8(m), nameOf(attr)), host,
				satest.Question{Method: m, Attr: attr, Key: key},
			})
		}
	}
	return asks
}

const (
	methodGetTrace mad.Method = 0x13
	methodDelete   mad.Method = 0x15
)

// Components of PathRecord and where they lie.
const (
	pathDGID, pathSGID, pathDLID, pathSLID              = 2, 3, 4, 5
	pathRaw, pathFlow, pathHop, pathTClass              = 6, 8, 9, 10
	pathReversible, pathNumb, pathPKey                  = 11, 12, 13
	pathQoS, pathSL, pathMTUSel, pathMTU                = 14, 15, 16, 17
	pathRateSel, pathRate, pathLifeSel, pathLife        = 18, 19, 20, 21
	atDGID, atSGID, atDLID, atSLID                      = 8, 24, 40, 42
	atReversible, atPathPKey, atQoSSL, atMTU, atRate    = 49, 50, 52, 54, 55
	atLife                                              = 56
	selectGreater, selectLess, selectExactly, selectBig = 0 << 6, 1 << 6, 2 << 6, 3 << 6
)

// paths asks for paths in every way.
func (p *place) paths(host string, key ib.SAKey) (asks []ask) {
	add := func(name string, mask mad.ComponentMask, r record) {
		for _, m := range [...]mad.Method{mad.MethodGet, mad.MethodGetTable} {
			asks = append(asks, ask{fmt.Sprintf("%v path %s", m, name), host, satest.Question{
				Method: m, Attr: mad.AttrPathRecord, Mask: mask, Record: r, Key: key,
			}})
		}
	}
	gids := func(from, to string) record {
		return blank(64).gid(atSGID, linkLocal, p.guid(from)).gid(atDGID, linkLocal, p.guid(to))
	}
	both := bits(pathSGID, pathDGID)
	hosts := []string{"sm", host, "h2", "h4", "h6", "h9", "h15"}
	for _, from := range hosts {
		for _, to := range hosts {
			add(fmt.Sprintf("by GID %s-%s", from, to), both, gids(from, to))
		}
		add(fmt.Sprintf("by LID %s-%s", host, from), bits(pathSLID, pathDLID), blank(64).lid(atSLID, p.lid(host)).lid(atDLID, p.lid(from)))
		add("by destination LID "+from, bits(pathDLID), blank(64).lid(atDLID, p.lid(from)))
		add("by source GID "+from, bits(pathSGID), gids(from, "sm"))
		add("by source LID and destination GID "+from, bits(pathSLID, pathDGID), gids("sm", from).lid(atSLID, p.lid(host)))
		add("to a foreign prefix "+from, both, gids(host, from).u64(atDGID, foreign))
	}
	far := "h15"
	add("nothing", 0, blank(64))
	add("to nobody's GID", both, blank(64).gid(atSGID, linkLocal, p.guid(host)).gid(atDGID, linkLocal, nowhere))
	add("from nobody's GID", both, blank(64).gid(atSGID, linkLocal, nowhere).gid(atDGID, linkLocal, p.guid(far)))
	add("from a foreign prefix", both, gids(host, far).u64(atSGID, foreign))
	add("to nobody's LID", bits(pathSLID, pathDLID), blank(64).lid(atSLID, p.lid(host)).lid(atDLID, noLID))
	add("from nobody's LID", bits(pathSLID, pathDLID), blank(64).lid(atSLID, noLID).lid(atDLID, p.lid(far)))
	add("to LID 0", bits(pathSLID, pathDLID), blank(64).lid(atSLID, p.lid(host)))
	add("to the permissive LID", bits(pathSLID, pathDLID), blank(64).lid(atSLID, p.lid(host)).lid(atDLID, ib.PermissiveLID))
	add("of a LID that is not the GID's", bits(pathSLID, pathSGID, pathDGID), gids(host, far).lid(atSLID, p.lid("h2")))
	add("of a destination LID that is not the GID's", bits(pathDLID, pathSGID, pathDGID), gids(host, far).lid(atDLID, p.lid("h2")))
	for i := range p.list.Nodes {
		n := &p.list.Nodes[i]
		if n.Type == ib.NodeSwitch {
			add("to switch "+n.Name, both, blank(64).gid(atSGID, linkLocal, p.guid(host)).gid(atDGID, linkLocal, n.GUID))
			add("from switch "+n.Name, both, blank(64).gid(atDGID, linkLocal, p.guid(host)).gid(atSGID, linkLocal, n.GUID))
		}
	}
	for _, v := range [...]uint8{0, 1, 2, 3, 127} {
		add(fmt.Sprintf("NumbPath %d", v), both|bits(pathNumb), gids(host, far).u8(atReversible, v))
		add(fmt.Sprintf("NumbPath %d, reversible", v), both|bits(pathNumb, pathReversible), gids(host, far).u8(atReversible, v|0x80))
		add(fmt.Sprintf("NumbPath %d, not reversible", v), both|bits(pathNumb, pathReversible), gids(host, far).u8(atReversible, v))
	}
	for _, k := range [...]uint16{0xFFFF, 0x7FFF, 0x8001, 0x0001, 0x8002, 0x0002, 0x8003, 0x0003, 0x8009, 0x8000, 0} {
		for _, to := range [...]string{"sm", "h2", "h4", far} {
			add(fmt.Sprintf("P_Key %#x to %s", k, to), both|bits(pathPKey), gids(host, to).u16(atPathPKey, k))
		}
	}
	for sl := range uint16(16) {
		add(fmt.Sprintf("SL %d", sl), both|bits(pathSL), gids(host, far).u16(atQoSSL, sl))
	}
	for _, class := range [...]uint16{0, 1, 0xFFF} {
		add(fmt.Sprintf("QoSClass %d", class), both|bits(pathQoS), gids(host, far).u16(atQoSSL, class<<4))
	}
	for _, sel := range [...]uint8{selectGreater, selectLess, selectExactly, selectBig} {
		for v := range uint8(8) {
			add(fmt.Sprintf("MTU selector %d of %d", sel>>6, v), both|bits(pathMTUSel, pathMTU), gids(host, far).u8(atMTU, sel|v))
		}
		for _, v := range [...]uint8{0, 1, 2, 3, 5, 7, 15, 16, 17, 18, 20, 21, 24, 25, 26, 27, 63} {
			add(fmt.Sprintf("rate selector %d of %d", sel>>6, v), both|bits(pathRateSel, pathRate), gids(host, far).u8(atRate, sel|v))
		}
		for _, v := range [...]uint8{0, 1, 15, 17, 18, 19, 20, 31, 63} {
			add(fmt.Sprintf("lifetime selector %d of %d", sel>>6, v), both|bits(pathLifeSel, pathLife), gids(host, far).u8(atLife, sel|v))
		}
	}
	add("MTU without its selector", both|bits(pathMTU), gids(host, far).u8(atMTU, selectExactly|1))
	add("MTU selector alone", both|bits(pathMTUSel), gids(host, far).u8(atMTU, selectExactly|1))
	add("rate without its selector", both|bits(pathRate), gids(host, far).u8(atRate, selectExactly|2))
	add("raw traffic", both|bits(pathRaw), gids(host, far).u8(44, 0x80))
	add("flow label", both|bits(pathFlow), gids(host, far).u32(44, 0x1234500))
	add("hop limit", both|bits(pathHop), gids(host, far).u8(47, 64))
	add("traffic class", both|bits(pathTClass), gids(host, far).u8(48, 8))
	add("half a ServiceID", both|bits(0), gids(host, far).u64(0, 1))
	add("the other half of a ServiceID", both|bits(1), gids(host, far).u64(0, 1))
	add("ServiceID", both|bits(0, 1), gids(host, far).u64(0, 0x1000000000000001))
	add("as IPoIB asks", both|bits(pathNumb, pathTClass, pathPKey), gids(host, "h2").u8(atReversible, 1).u16(atPathPKey, 0x8001))
	add("as rdma_cm asks", both|bits(pathNumb, pathTClass, pathPKey, pathReversible), gids(host, "h2").u8(atReversible, 0x81).u16(atPathPKey, 0x8001))
	for _, k := range [...]uint16{0xFFFF, 0x8001, 0x8077} {
		r := gids(host, far)
		copy(r[atDGID:], broadcast(k))
		add(fmt.Sprintf("to the broadcast group of %#x", k), both, r)
	}
	return asks
}

// broadcast is the MGID of the IPv4 broadcast group of a partition.
func broadcast(k uint16) record {
	return blank(16).u16(0, 0xFF12).u16(2, 0x401B).u16(4, k).u32(12, 0xFFFFFFFF)
}

// Components of MCMemberRecord and where they lie.
const (
	mcMGID, mcPortGID, mcQKey, mcMLID, mcMTUSel, mcMTU, mcTClass, mcPKey = 0, 1, 2, 3, 4, 5, 6, 7
	mcRateSel, mcRate, mcLifeSel, mcLife, mcSL, mcFlow, mcHop, mcScope   = 8, 9, 10, 11, 12, 13, 14, 15
	mcJoin, mcProxy                                                      = 16, 17
)

var (
	mcMember = bits(mcMGID, mcPortGID, mcJoin)
	mcCreate = mcMember | bits(mcQKey, mcTClass, mcPKey, mcSL, mcFlow)
)

// member makes an MCMemberRecord.
func (p *place) member(mgid record, host string, join uint8) record {
	r := blank(56)
	copy(r, mgid)
	return r.gid(16, linkLocal, p.guid(host)).u8(48, join)
}

// group makes one for a group in a partition.
func (p *place) group(mgid record, host string, join uint8, k uint16) record {
	return p.member(mgid, host, join).u32(32, 0x0B1B).u16(40, k)
}

// groups joins, creates, asks for and leaves groups, in this order.
func (p *place) groups(host string, k uint16, key ib.SAKey) (asks []ask) {
	at := func(who, name string, m mad.Method, mask mad.ComponentMask, r record) {
		asks = append(asks, ask{fmt.Sprintf("%v group, %s", m, name), who, satest.Question{
			Method: m, Attr: mad.AttrMCMemberRecord, Mask: mask, Record: r, Key: key,
		}})
	}
	add := func(name string, m mad.Method, mask mad.ComponentMask, r record) { at(host, name, m, mask, r) }
	set, get, table := mad.MethodSet, mad.MethodGet, mad.MethodGetTable
	all, own, unknown := broadcast(k), blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 1), blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 99)
	add("the broadcast group before anybody joins", table, bits(mcMGID), p.member(all, host, 0))
	add("join the broadcast group", set, mcMember, p.member(all, host, 1))
	add("join it again", set, mcMember, p.member(all, host, 1))
	add("join it as sender too", set, mcMember, p.member(all, host, 4))
	add("the broadcast group as Get", get, bits(mcMGID), p.member(all, host, 0))
	add("the broadcast group as GetTable", table, bits(mcMGID), p.member(all, host, 0))
	add("its member", get, bits(mcMGID, mcPortGID), p.member(all, host, 0))
	add("a group that is not there", get, bits(mcMGID), p.member(unknown, host, 0))
	add("a group that is not there, as table", table, bits(mcMGID), p.member(unknown, host, 0))
	add("join a group that is not there", set, mcMember, p.member(unknown, host, 1))
	add("join with too little", set, bits(mcMGID), p.member(all, host, 1))
	add("join with no state", set, mcMember, p.member(all, host, 0))
	add("join a GID that is no group", set, mcMember, p.member(blank(16).gid(0, linkLocal, p.guid(host)), host, 1))
	add("join for nobody", set, mcMember, p.member(all, host, 1).u64(24, uint64(nowhere)))
	add("join for a foreign GID", set, mcMember, p.member(all, host, 1).u64(16, foreign))
	add("create", set, mcCreate, p.group(own, host, 1, k))
	add("what was created", get, bits(mcMGID), p.member(own, host, 0))
	add("what was created, as table", table, bits(mcMGID), p.member(own, host, 0))
	at("h2", "join what was created", set, mcMember, p.member(own, "h2", 1))
	at("h2", "join it with its parameters", set, mcCreate, p.group(own, "h2", 1, k))
	at("h2", "join it with another Q_Key", set, mcCreate, p.group(own, "h2", 1, k).u32(32, 0x1234))
	at("h2", "join it with another P_Key", set, mcCreate, p.group(own, "h2", 1, 0x8055))
	at("h2", "join it with another SL", set, mcCreate, p.group(own, "h2", 1, k).u32(44, 0x10000000))
	at("h2", "join it with a larger MTU", set, mcMember|bits(mcMTUSel, mcMTU), p.member(own, "h2", 1).u8(38, selectGreater|5))
	at("h2", "join it with an exact MTU", set, mcMember|bits(mcMTUSel, mcMTU), p.member(own, "h2", 1).u8(38, selectExactly|4))
	at("h2", "join it with another rate", set, mcMember|bits(mcRateSel, mcRate), p.member(own, "h2", 1).u8(42, selectExactly|2))
	at("h4", "leave it without being a member", methodDelete, mcMember, p.member(own, "h4", 1))
	at("h2", "members of what was created", table, bits(mcMGID), p.member(own, "h2", 0))
	add("groups of a partition", table, bits(mcPKey), blank(56).u16(40, k))
	add("groups of SL 0", table, bits(mcSL), blank(56))
	add("groups of that MTU exactly", table, bits(mcMTUSel, mcMTU), blank(56).u8(38, selectExactly|4))
	add("groups of less than that MTU", table, bits(mcMTUSel, mcMTU), blank(56).u8(38, selectLess|4))
	add("groups of scope 2", table, bits(mcScope), blank(56).u8(48, 0x20))
	add("create in no partition", set, mcCreate, p.group(blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 2), host, 1, 0))
	add("create in a partition that is not ours", set, mcCreate, p.group(blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 3), host, 1, 0x8077))
	add("create as a sender only", set, mcCreate, p.group(blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 4), host, 4, k))
	add("create with an MTU that cannot be", set, mcCreate|bits(mcMTUSel, mcMTU), p.group(blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 5), host, 1, k).u8(38, selectGreater|5))
	add("create with a rate that cannot be", set, mcCreate|bits(mcRateSel, mcRate), p.group(blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 6), host, 1, k).u8(42, selectGreater|26))
	add("create with strange flags", set, mcCreate, p.group(blank(16).u16(0, 0xFFF2).u16(2, 0x1234).u32(12, 7), host, 1, k))
	add("create what only subnet administration may", set, mcCreate, p.group(blank(16).u16(0, 0xFF12).u16(2, 0xA01B).u32(12, 8), host, 1, k))
	add("create an IPoIB group", set, mcCreate, p.group(blank(16).u16(0, 0xFF12).u16(2, 0x401B).u16(4, k).u32(12, 0xE0000001), host, 1, k))
	at("h2", "leave", methodDelete, mcMember, p.member(own, "h2", 1))
	at("h2", "leave once more", methodDelete, mcMember, p.member(own, "h2", 1))
	add("leave with too little", methodDelete, bits(mcMGID), p.member(own, host, 1))
	add("leave a state that is not held", methodDelete, mcMember, p.member(own, host, 2))
	add("leave as the last", methodDelete, mcMember, p.member(own, host, 1))
	add("what is no more", get, bits(mcMGID), p.member(own, host, 0))
	add("leave the broadcast group", methodDelete, mcMember, p.member(all, host, 1))
	add("leave the broadcast group as sender", methodDelete, mcMember, p.member(all, host, 4))
	add("the broadcast group afterwards", get, bits(mcMGID), p.member(all, host, 0))
	add("create once more", set, mcCreate, p.group(own, host, 1, k))
	at("h2", "leave for another", methodDelete, mcMember, p.member(own, host, 1))
	return asks
}

// Components of ServiceRecord.
const (
	svcID, svcGID, svcPKey, svcLease, svcKey, svcName, svcData8 = 0, 1, 2, 4, 5, 6, 7
)

// services registers, asks for and deletes services, in this order.
func (p *place) services(host string, k uint16, key ib.SAKey) (asks []ask) {
	at := func(who, name string, m mad.Method, mask mad.ComponentMask, r record) {
		asks = append(asks, ask{fmt.Sprintf("%v service, %s", m, name), who, satest.Question{
			Method: m, Attr: mad.AttrServiceRecord, Mask: mask, Record: r, Key: key,
		}})
	}
	add := func(name string, m mad.Method, mask mad.ComponentMask, r record) { at(host, name, m, mask, r) }
	set, get, table := mad.MethodSet, mad.MethodGet, mad.MethodGetTable
	service := func(id uint64) record {
		r := blank(176).u64(0, id).gid(8, linkLocal, p.guid(host)).u16(24, k).u32(28, 0xFFFFFFFF)
		copy(r[48:], "a service")
		return r.u8(112, 7).u64(168, 0x0102030405060708)
	}
	own := bits(svcID, svcGID, svcPKey, svcLease, svcName, svcData8, 36)
	rid := bits(svcID, svcGID, svcPKey)
	add("register", set, own, service(1))
	add("register again", set, own, service(1).u8(112, 8))
	add("register without a P_Key", set, bits(svcID, svcGID, svcLease, svcName), service(2).u16(24, 0))
	add("register without a lease", set, bits(svcID, svcGID, svcPKey, svcName), service(3))
	add("register with nothing but the name", set, bits(svcName), service(4))
	add("register in a partition that is not ours", set, own, service(5).u16(24, 0x8077))
	add("register for nobody", set, own, service(6).u64(16, uint64(nowhere)))
	add("register with a key", set, own|bits(svcKey), service(7).u64(32, 1).u64(40, 2))
	add("by identifier", get, bits(svcID), service(1))
	add("by identifier, as table", table, bits(svcID), service(1))
	add("by name", table, bits(svcName), service(1))
	add("by name, one", get, bits(svcName), service(1))
	add("by data", table, bits(svcData8), service(1).u8(112, 8))
	add("by key", table, bits(svcKey), service(7).u64(32, 1).u64(40, 2))
	at("h2", "by name from another host", table, bits(svcName), service(1))
	at("h2", "with a P_Key from another host", table, rid, service(1))
	add("that is not there", get, bits(svcID), service(99))
	add("that is not there, as table", table, bits(svcID), service(99))
	add("delete one that is not there", methodDelete, rid, service(99))
	add("delete", methodDelete, rid, service(1))
	add("delete without a P_Key", methodDelete, bits(svcID, svcGID), service(2).u16(24, 0))
	add("delete by name", methodDelete, bits(svcName), service(3))
	add("delete again", methodDelete, rid, service(1))
	add("what is left", table, 0, nil)
	for _, id := range [...]uint64{3, 7} {
		add(fmt.Sprintf("delete %d", id), methodDelete, rid, service(id))
	}
	return asks
}

// subscriptions subscribes to notices, asks for subscriptions and ends them, in this
// order.
func (p *place) subscriptions(host string, key ib.SAKey) (asks []ask) {
	add := func(name string, m mad.Method, attr mad.AttrID, mask mad.ComponentMask, r record) {
		asks = append(asks, ask{fmt.Sprintf("%v %s, %s", m, nameOf(attr), name), host, satest.Question{
			Method: m, Attr: attr, Mask: mask, Record: r, Key: key,
		}})
	}
	inform := func(subscribe uint8, trap uint16) record {
		return blank(40).u16(16, 0xFFFF).u8(22, 1).u8(23, subscribe).u16(24, 0xFFFF).u16(26, trap).u32(28, 1<<8|0x12).u32(32, 0xFFFFFF)
	}
	set := func(name string, r record) { add(name, mad.MethodSet, mad.AttrInformInfo, 0, r) }
	set("subscribe to 64", inform(1, 64))
	set("subscribe to 64 again", inform(1, 64))
	set("subscribe to 65", inform(1, 65))
	set("subscribe to 66", inform(1, 66))
	set("subscribe to 257", inform(1, 257))
	set("subscribe to one port by GID", inform(1, 144).gid(0, linkLocal, p.guid("h2")))
	set("subscribe to nobody", inform(1, 144).gid(0, linkLocal, nowhere))
	set("subscribe with a strange value", inform(2, 64))
	set("unsubscribe from what is not subscribed", inform(0, 67))
	add("of the host", mad.MethodGetTable, mad.AttrInformInfoRecord, bits(0), blank(64).gid(0, linkLocal, p.guid(host)))
	add("all", mad.MethodGetTable, mad.AttrInformInfoRecord, 0, nil)
	add("the first", mad.MethodGet, mad.AttrInformInfoRecord, bits(0, 1), blank(64).gid(0, linkLocal, p.guid(host)))
	for _, trap := range [...]uint16{64, 66} {
		set(fmt.Sprintf("unsubscribe from %d", trap), inform(0, trap).u32(28, 1<<8|0x12))
	}
	return asks
}

// multipaths asks for paths between several ports at once.
func (p *place) multipaths(host string, key ib.SAKey) (asks []ask) {
	add := func(name string, mask mad.ComponentMask, head func(record) record, from, to []ib.GUID) {
		r := blank(24+16*(len(from)+len(to))).u8(15, uint8(len(from))).u8(16, uint8(len(to)))
		for i, g := range append(append([]ib.GUID(nil), from...), to...) {
			r.gid(24+16*i, linkLocal, g)
		}
		if head != nil {
			r = head(r)
		}
		asks = append(asks, ask{"GetMulti " + name, host, satest.Question{
			Method: mad.MethodGetMulti, Attr: mad.AttrMultiPathRecord, Mask: mask, Record: r, Key: key,
		}})
	}
	counts := bits(19, 20)
	own := []ib.GUID{p.guid(host)}
	add("one to one", counts, nil, own, []ib.GUID{p.guid("h2")})
	add("one to three", counts, nil, own, []ib.GUID{p.guid("h2"), p.guid("h9"), p.guid("sm")})
	add("three to one", counts, nil, []ib.GUID{p.guid("h2"), p.guid("h9"), p.guid("sm")}, own)
	add("one to itself", counts, nil, own, own)
	add("one to nobody", counts, nil, own, []ib.GUID{nowhere})
	add("one to none", counts, nil, own, nil)
	add("without counts", 0, nil, own, []ib.GUID{p.guid("h2")})
	add("NumbPath 1", counts|bits(6), func(r record) record { return r.u8(5, 1) }, own, []ib.GUID{p.guid("h2"), p.guid("h9")})
	add("reversible", counts|bits(5), func(r record) record { return r.u8(5, 0x80) }, own, []ib.GUID{p.guid("h2")})
	add("P_Key", counts|bits(7), func(r record) record { return r.u16(6, 0x8001) }, own, []ib.GUID{p.guid("h2"), p.guid("h4")})
	add("a foreign prefix", counts, func(r record) record { return r.u64(40, foreign) }, own, []ib.GUID{p.guid("h2")})
	many := make([]ib.GUID, 0, 15)
	for i := range p.list.Nodes {
		if n := &p.list.Nodes[i]; n.Type == ib.NodeCA {
			many = append(many, n.PortGUID(1))
		}
	}
	add("one to all, in two segments", counts, nil, own, many)
	return asks
}

// portInfos asks for ports by capability, as clients do to find Subnet Managers.
func (p *place) portInfos(host string, key ib.SAKey) (asks []ask) {
	add := func(name string, mod uint32, mask mad.ComponentMask, r record) {
		asks = append(asks, ask{"GetTable ports " + name, host, satest.Question{
			Method: mad.MethodGetTable, Attr: mad.AttrPortInfoRecord, Mod: mod, Mask: mask, Record: r, Key: key,
		}})
	}
	add("with IsSM", 1<<31, bits(7), blank(72).u32(4+20, 2))
	add("with no capability", 1<<31, bits(7), blank(72))
	add("of equal capabilities", 0, bits(7), blank(72).u32(4+20, 2))
	lid := p.lid("h9")
	add("of a LID", 0, bits(0), blank(72).lid(0, lid))
	add("of a LID, unmodified", 0, bits(0, 2), blank(72).lid(0, lid).u8(3, 0x80))
	add("of a LID, legacy", 0, bits(0, 2), blank(72).lid(0, lid))
	add("of a LID and port", 0, bits(0, 1), blank(72).lid(0, lid).u8(2, 1))
	add("of a LID and a port that is not there", 0, bits(0, 1), blank(72).lid(0, lid).u8(2, 9))
	add("of nobody", 0, bits(0), blank(72).lid(0, noLID))
	return asks
}

// nobody asks for every record by a LID that no port has.
func nobody(host string, key ib.SAKey) (asks []ask) {
	for _, e := range tables {
		switch e.attr {
		case mad.AttrServiceRecord, mad.AttrMCMemberRecord, mad.AttrInformInfoRecord, mad.AttrPathRecord:
			continue // do not begin with a LID
		}
		for _, lid := range [...]ib.LID{0, noLID, 0xC000, ib.PermissiveLID} {
			for _, m := range [...]mad.Method{mad.MethodGet, mad.MethodGetTable} {
				asks = append(asks, ask{fmt.Sprintf("%v %s of LID %#x", m, nameOf(e.attr), uint16(lid)), host, satest.Question{
					Method: m, Attr: e.attr, Mask: bits(0), Record: blank(8).lid(0, lid), Key: key,
				}})
			}
		}
	}
	return asks
}
