package threats

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Fuzz targets that send MADs, byte by byte as in the input, from h1 of tenant A over the wire to the manager, its subnet
// administration and the devices on the way. The result is judged by conditions that must hold for any input: see judge.
//
// h1 does not write to its own adapter, which obeys its host without an M_Key: the consequences are T22, T37 and T38.

// fuzzPartners are the hosts whose paths others ask for.
var fuzzPartners = map[string]string{"h2": "h6", "h5": "h1"}

// fuzzSteps is how many MADs an input may have.
const fuzzSteps = 32

// fuzzStep is the head of a MAD in the input: where it goes and with which P_Key, how long
// nothing happens after it, and how many bytes of the MAD follow, less one. The rest is zero.
type fuzzStep struct {
	to   byte // low three bits: see fuzzSite.lids; next two: see fuzzKeys; next: with a GRH
	wait byte // times 20 ms
	size byte
}

var fuzzKeys = [4]ib.PKey{ib.DefaultPKeyLimited, drill.KeyA, drill.KeyB, ib.DefaultPKeyFull}

const (
	toRoute  = 0 // directed routes
	toSM     = 1
	toLeaf   = 2
	grhBit   = 1 << 5
	keyShift = 3
)

func (s fuzzStep) bytes(m *mad.MAD) []byte {
	n := len(m)
	for n > 1 && m[n-1] == 0 {
		n--
	}
	return append([]byte{s.to, s.wait, byte(n - 1)}, m[:n]...)
}

// fuzzSite is the fabric under attack.
type fuzzSite struct {
	*drill.Site
	from   *drill.Attacker
	others []*drill.Client
	lids   [8]ib.LID
	state0 map[string]string
	writes map[string]int // Sets of the manager, by attribute
	sent   int
	facts  int
	events int
	heap   uint64
}

func newFuzzSite(s *drill.Scene, change func(*drill.SiteOptions)) *fuzzSite {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 7, Radix: 8, Leaves: 2, Spines: 1})
	s.Must(err)
	o := drill.Administered()
	o.Netlist, o.ClassKeys = l, true
	o.SM = sm.Config{SMKey: ourSMKey(), Priority: 8, AuditPeriod: 10 * time.Second}
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	change(&o)
	f := &fuzzSite{Site: s.Site(o)}
	f.Run(21 * time.Second) // names of nodes are read after all else, and the audit puts right what no operator waits for
	s.Must(f.Settle(drill.SettleTime))
	leaf, far := f.SwitchPort("h1", 1).Node, f.SwitchPort("h6", 1).Node
	f.lids = [8]ib.LID{
		ib.PermissiveLID, f.LID("sm"), f.Fabric.PortInfo(leaf, 0).LID, f.LID("h2"), f.LID("h1"), f.Fabric.PortInfo(far, 0).LID, 0xC000, 0xBEE,
	}
	f.from = f.Attacker("h1")
	f.others = []*drill.Client{f.Client("h2"), f.Client("h5")}
	f.state0 = f.tables()
	f.OnSend = func(r *sm.Request) bool {
		f.sent++
		// SwitchInfo clears the bit that a port changed, and KeyInfo of a class the count of wrong keys.
		if r.MAD.IsSMP() && r.MAD.Method() == mad.MethodSet && r.MAD.Attr() != mad.AttrSwitchInfo {
			f.writes[r.MAD.Attr().String()]++
		}
		return false
	}
	return f
}

// begin counts from now on, for a scene.
func (f *fuzzSite) begin(s *drill.Scene) {
	f.Scene = s
	f.writes, f.sent = make(map[string]int), 0
	f.facts, f.events, f.heap = len(f.Facts()), len(f.Events()), heapInUse()
	f.Attack()
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// tables is what devices were set to, but for multicast forwarding, which joins change.
func (f *fuzzSite) tables() map[string]string {
	out := f.State()
	for _, n := range f.List.Nodes {
		for _, class := range []mad.Class{mad.ClassCongestionControl, mad.ClassVendorVS, mad.ClassVendorN2N} {
			if k, ok := f.Fabric.ClassKey(n.Name, f.EndPortOf(n.Name), class); ok {
				out[fmt.Sprintf("key of class %v of %s", class, n.Name)] = fmt.Sprint(k.Key.Reveal(), k.Previous.Reveal(), k.Protect, k.LeasePeriod)
			}
		}
		if n.Type == ib.NodeSwitch {
			var ways []ib.PortNum
			for lid := range ib.LID(mad.LIDsPerBlock) {
				ways = append(ways, f.Fabric.Egress(n.Name, lid))
			}
			out["routes of "+n.Name] = fmt.Sprintf("%d", ways)
		}
	}
	return out
}

// multicast lists the ports that packets of h1 to each of the first multicast LIDs reach.
func (f *fuzzSite) multicast() (out []sim.Endpoint) {
	for lid := ib.MinMulticastLID; lid < ib.MinMulticastLID+32; lid++ {
		to, err := f.Fabric.Multicast(drill.Port("h1"), lid)
		f.Scene.Must(err)
		out = append(out, to...)
	}
	return out
}

// play sends what the input says; it returns how many MADs that were.
func (f *fuzzSite) play(in []byte) (steps int) {
	for ; len(in) > 3 && steps < fuzzSteps; steps++ {
		s := fuzzStep{in[0], in[1], in[2]}
		in = in[3:]
		p := transport.Packet{LID: f.lids[s.to&7]}
		in = in[copy(p.MAD[:], in[:min(len(in), int(s.size)+1)]):]
		if !p.MAD.IsSMP() {
			p.QP = drill.GMPQP
		}
		if s.to&grhBit != 0 {
			p.GRH = transport.GRH{Present: true, GID: f.GIDOf("sm")}
		}
		if f.ownAdapter(&p) {
			continue
		}
		f.from.At.UsePKey(fuzzKeys[s.to>>keyShift&3])
		f.from.At.Send(p)
		f.Collect()
		f.Run(time.Duration(s.wait) * 20 * time.Millisecond)
		f.from.At.Take(nil)
	}
	return steps
}

// ownAdapter reports whether a packet is a Set of an SMP to the adapter of h1 itself.
func (f *fuzzSite) ownAdapter(p *transport.Packet) bool {
	own := p.LID == ib.PermissiveLID || p.LID == f.LID("h1")
	return p.MAD.IsSMP() && p.MAD.Method() == mad.MethodSet && own && (!p.MAD.IsDR() || p.MAD.HopCount() == 0)
}

// judge demands what must hold after any MADs of a host: devices are as they were, the
// manager wrote nothing, is in office and has bounded memory, no tenant's multicast reaches
// another, and other hosts are answered.
func (f *fuzzSite) judge(steps int) {
	s := f.Scene
	f.Run(30 * time.Second)
	s.Must(f.Err())
	s.Must(f.Settle(drill.SettleTime))
	inOffice(f.Site)
	now := f.tables()
	for _, what := range drill.Changed(f.state0, now) {
		s.Check(false, "%s was %s and is %s", what, f.state0[what], now[what])
	}
	for _, attr := range slices.Sorted(maps.Keys(f.writes)) {
		s.Check(attr == "MulticastForwardingTable", "the manager wrote %s %d times", attr, f.writes[attr])
	}
	for _, to := range f.multicast() {
		s.Check(to.Node != "h2" && to.Node != "h6", "multicast of h1 reaches %s", to.Node)
	}
	s.Check(f.sent <= 1000+100*steps, "%d requests for %d MADs", f.sent, steps)
	s.Check(len(f.Facts())-f.facts <= 16*steps, "%d facts for %d MADs", len(f.Facts())-f.facts, steps)
	s.Check(len(f.Events())-f.events <= 64+16*steps, "%d events for %d MADs", len(f.Events())-f.events, steps)
	heap := heapInUse()
	s.Check(heap < f.heap+8<<20, "the heap grew from %d to %d bytes", f.heap, heap)
	for _, c := range f.others {
		c.Answered(f.PathTo(c.Host, f.GIDOf(fuzzPartners[c.Host])), "the path to "+fuzzPartners[c.Host])
	}
	r := f.Send("h1", "h2", drill.KeyB)
	s.Check(r.Fate != sim.Delivered, "h1 reaches h2 of tenant B")
}

// fuzzReuse is how many inputs are played on one fabric, which must be as before after
// each: to bring one up takes longer.
const fuzzReuse = 64

// fuzzer plays inputs, one after the other.
type fuzzer struct {
	site   *fuzzSite
	played [][]byte // on it
	weaken func(*drill.SiteOptions)
}

func newFuzzer() *fuzzer { return &fuzzer{weaken: func(*drill.SiteOptions) {}} }

// play plays an input, on a new fabric if fresh. It returns what does not hold.
func (z *fuzzer) play(in []byte, fresh bool) (failures []string) {
	if fresh || len(z.played) >= fuzzReuse {
		z.site, z.played = nil, nil
	}
	s := &drill.Scene{Options: drill.Options{Seed: 1}}
	defer func() {
		if r := recover(); r != nil && r != any(drill.ErrEnded) {
			panic(r)
		}
		failures = s.Result.Failures
	}()
	if z.site == nil {
		z.site = newFuzzSite(s, z.weaken)
	}
	z.site.begin(s)
	z.played = append(z.played, slices.Clone(in))
	z.site.judge(z.site.play(in))
	return nil // see above
}

// fuzz plays an input. One that fails only after others is printed with them.
func (z *fuzzer) fuzz(t *testing.T, in []byte) {
	failures := z.play(in, false)
	if len(failures) == 0 {
		return
	}
	before := z.played
	if again := z.play(in, true); len(again) > 0 {
		z.site = nil
		t.Fatalf("failed: %s", strings.Join(again, "; "))
	}
	t.Fatalf("failed after these inputs, and not by itself: %s\n%x", strings.Join(failures, "; "), before)
}

// TestFuzzJudges: where devices have no M_Keys, a Set of a forwarding table is found, which
// does not hurt where they have.
func TestFuzzJudges(t *testing.T) {
	way := mad.MakeRoute(1)
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable, TID: 1}, &way, ib.MKey{})
	in := fuzzStep{to: toRoute}.bytes(&m)
	if failures := newFuzzer().play(in, true); len(failures) > 0 {
		t.Errorf("with M_Keys: %q", failures)
	}
	z := &fuzzer{weaken: func(o *drill.SiteOptions) { o.NoKeys = true }}
	if failures := z.play(in, true); len(failures) == 0 || !strings.Contains(strings.Join(failures, " "), "routes of leaf1") {
		t.Errorf("without M_Keys: %q, want that routes changed", failures)
	}
}

// methods are those of a MAD in the corpus.
var methods = []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrap, mad.MethodTrapRepress, mad.MethodGetResp, mad.MethodSend, mad.MethodReport}

// FuzzManager hands SMPs and general management MADs, but for subnet administration, to
// the manager and to devices.
func FuzzManager(f *testing.F) {
	attrs := []mad.AttrID{
		mad.AttrNotice, mad.AttrNodeDescription, mad.AttrNodeInfo, mad.AttrSwitchInfo, mad.AttrGUIDInfo, mad.AttrPortInfo, mad.AttrPKeyTable,
		mad.AttrSLtoVLMappingTable, mad.AttrVLArbitration, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSMInfo,
	}
	toSMRoute, toLeafRoute := mad.MakeRoute(1, 1), mad.MakeRoute(1)
	for _, attr := range attrs {
		var in []byte
		for i, method := range methods[:5] {
			var m mad.MAD
			h := mad.Header{Method: method, Attr: attr, TID: ib.TID(i + 1)}
			for _, route := range []*mad.Route{&toSMRoute, &toLeafRoute} {
				mad.NewSMP(&m, h, route, ib.MKey{})
				in = append(in, fuzzStep{to: toRoute}.bytes(&m)...)
			}
			mad.NewSMP(&m, h, nil, ib.MKey{})
			in = append(in, fuzzStep{to: toSM}.bytes(&m)...)
			in = append(in, fuzzStep{to: toLeaf, wait: 1}.bytes(&m)...)
		}
		f.Add(in)
	}
	for n := mad.TrapLinkStateChange; n <= mad.TrapBadPKeySwitch; n++ { // in the name of the leaf and of h1
		if n > mad.TrapSystemImageGUID && n < mad.TrapBadMKey {
			continue
		}
		var m mad.MAD
		mad.NewSMP(&m, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: 9}, nil, ib.MKey{})
		head := mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: uint32(ib.NodeSwitch), TrapNumber: n, IssuerLID: 2}
		if err := mad.Encode(m.Data(), &head); err != nil {
			f.Fatal(err)
		}
		f.Add(fuzzStep{to: toSM, wait: 5}.bytes(&m))
	}
	for _, class := range []mad.Class{mad.ClassPerf, mad.ClassCongestionControl, mad.ClassVendorVS, mad.ClassVendorN2N, 0x05, 0x06, 0x07} {
		var in []byte
		for i, method := range methods {
			for _, attr := range []mad.AttrID{mad.AttrClassPortInfo, mad.AttrNotice, 0x12, 0x50} {
				var m mad.MAD
				m.SetHeader(mad.Header{Class: class, ClassVersion: 1, Method: method, Attr: attr, TID: ib.TID(i + 1)})
				in = append(in, fuzzStep{to: toSM}.bytes(&m)...)
			}
		}
		f.Add(in)
	}
	f.Fuzz(newFuzzer().fuzz)
}

// FuzzAdministration hands MADs of class 0x03, and whatever else the input makes of them, to subnet
// administration.
func FuzzAdministration(f *testing.F) {
	attrs := []mad.AttrID{
		mad.AttrClassPortInfo, mad.AttrNotice, mad.AttrInformInfo, mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSLtoVLRecord, mad.AttrSwitchInfoRecord,
		mad.AttrLinearForwardingRecord, mad.AttrMulticastForwardingRecord, mad.AttrSMInfoRecord, mad.AttrInformInfoRecord, mad.AttrLinkRecord,
		mad.AttrGUIDInfoRecord, mad.AttrServiceRecord, mad.AttrPKeyTableRecord, mad.AttrPathRecord, mad.AttrVLArbitrationRecord,
		mad.AttrMCMemberRecord, mad.AttrTraceRecord, mad.AttrMultiPathRecord,
	}
	requests := []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodDelete, mad.MethodGetMulti, mad.MethodReport, mad.MethodReportResp}
	for _, attr := range attrs {
		var in []byte
		for i, method := range requests {
			for _, mask := range []mad.ComponentMask{0, 0xFFFF_FFFF} {
				var m mad.MAD
				m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, Attr: attr, TID: ib.TID(i + 1)})
				m.SetComponentMask(mask)
				in = append(in, fuzzStep{to: toSM}.bytes(&m)...)
			}
		}
		f.Add(in)
	}
	for _, kind := range []mad.RMPPType{mad.RMPPData, mad.RMPPAck, mad.RMPPStop, mad.RMPPAbort} {
		var m mad.MAD
		m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGetMulti, Attr: mad.AttrMultiPathRecord, TID: 3})
		m.SetRMPPHeader(mad.RMPPHeader{Version: mad.RMPPVersion, Type: kind, Flags: mad.RMPPActive | mad.RMPPFirst, Data1: 1, Data2: 64})
		f.Add(fuzzStep{to: toSM, wait: 10}.bytes(&m))
	}
	f.Add(joinOfFuzz(f))
	f.Fuzz(newFuzzer().fuzz)
}

// joinOfFuzz has h1 make a group of tenant A and leave it, and register a service.
func joinOfFuzz(f *testing.F) (in []byte) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 7, Radix: 8, Leaves: 2, Spines: 1})
	if err != nil {
		f.Fatal(err)
	}
	gid := ib.MakeGID(ib.DefaultPrefix, l.Find("h1").PortGUID(1))
	for i, method := range []mad.Method{mad.MethodSet, mad.MethodDelete} {
		var m mad.MAD
		m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, Attr: mad.AttrMCMemberRecord, TID: ib.TID(i + 1)})
		m.SetComponentMask(mad.MCMemberCreate)
		rec := mad.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, PortGID: gid, JoinState: ib.FullMember, PKey: drill.KeyA, QKey: 1}
		if err := mad.Encode(m.SAData(), &rec); err != nil {
			f.Fatal(err)
		}
		in = append(in, fuzzStep{to: toSM | 1<<keyShift, wait: 50}.bytes(&m)...)
	}
	var m mad.MAD
	m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodSet, Attr: mad.AttrServiceRecord, TID: 5})
	m.SetComponentMask(0x1F)
	rec := mad.ServiceRecord{ServiceID: 7, ServiceGID: gid, ServicePKey: drill.KeyA, ServiceLease: 3}
	if err := mad.Encode(m.SAData(), &rec); err != nil {
		f.Fatal(err)
	}
	return append(in, fuzzStep{to: toSM, wait: 50}.bytes(&m)...)
}
