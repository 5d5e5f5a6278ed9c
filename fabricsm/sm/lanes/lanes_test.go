package lanes

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with an adapter at its port 1. Both have eight lanes, and came without configuration.
type fabric struct {
	topo    topo.Builder
	queue   work.Queue
	options qos.Options
	lanes   *Lanes
	info    mad.PortInfo
	node    mad.SwitchInfo
	fresh   bool
	held    map[uint32][]byte // tables that the device holds, by modifier
	saved   []string
	refused []string
	later   []topo.PortID
}

var (
	_         Fabric = (*fabric)(nil)
	fourLanes        = [16]ib.VL{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}
)

func newFabric(t *testing.T, lines ...[2]string) *fabric {
	t.Helper()
	f := &fabric{fresh: true, held: make(map[uint32][]byte)}
	for _, l := range lines {
		if known, err := f.options.Set(l[0], l[1]); !known || err != nil {
			t.Fatalf("%v: %v", l, err)
		}
	}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 4})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.topo.Connect(f.topo.PortOf(host, 1), f.topo.PortOf(sw, 1))
	f.info = mad.PortInfo{VLCap: 4, OperationalVLs: 3, VLArbitrationLowCap: 8, VLArbitrationHighCap: 8, CapabilityMask: mad.IsSLMappingSupported}
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.lanes = New(f, &f.topo, &f.queue, Options{QoS: &f.options})
	f.lanes.Extend(f.topo.NumPorts())
	return f
}

func (f *fabric) Port(p topo.PortID) Port {
	tp := f.topo.Port(p)
	return Port{Info: &f.info, Node: tp.Node, Num: tp.Num, IsRead: true, IsFresh: f.fresh}
}

func (f *fabric) Node(topo.NodeID) Node {
	return Node{Info: &f.node, IsRead: true, IsAlive: true, IsReset: f.fresh}
}
func (f *fabric) VLs(topo.PortID) ib.VLCap             { return f.info.OperationalVLs }
func (f *fabric) MayWrite() bool                       { return true }
func (f *fabric) IsPaused(work.Ref) bool               { return false }
func (f *fabric) Refuse(_ work.Request, reason string) { f.refused = append(f.refused, reason) }
func (f *fabric) Show(topo.PortID)                     {}
func (f *fabric) AuditLater(p topo.PortID)             { f.later = append(f.later, p) }
func (f *fabric) Save(written string)                  { f.saved = append(f.saved, written) }
func (f *fabric) host() topo.PortID                    { return f.topo.PortOf(1, 1) }
func (f *fabric) at(in ib.PortNum) topo.PortID         { return f.topo.PortOf(0, in) }
func (f *fabric) maps(p topo.PortID) work.Ref          { return work.OnPort(work.SLtoVL, p) }
func (f *fabric) shares(p topo.PortID) work.Ref        { return work.OnPort(work.VLArb, p) }

// take has the device do the next step of a piece of work, and returns the step.
func (f *fabric) take(t *testing.T, x work.Ref) Step {
	t.Helper()
	s := f.lanes.Next(x)
	if s.Method == 0 {
		return s
	}
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGetResp, Attr: s.Attr, Mod: s.Mod}, &mad.Route{}, ib.MKey{})
	if s.Method == mad.MethodSet {
		s.Encode(m.Data())
		f.held[s.Mod] = slices.Clone(m.Data())
	}
	copy(m.Data(), f.held[s.Mod])
	f.lanes.Answer(&work.Request{Ref: x, Method: s.Method, Attr: s.Attr, Mod: s.Mod}, &m, mad.StatusOK)
	return s
}

func TestNothingIsProgrammedWithoutNeed(t *testing.T) {
	f := newFabric(t)
	for _, p := range []topo.PortID{f.host(), f.at(1)} {
		for _, x := range []work.Ref{f.maps(p), f.shares(p)} {
			if s := f.take(t, x); s.Method != 0 {
				t.Errorf("port %d, %v: %v", p, x, s)
			}
		}
		if !f.lanes.IsDone(p) {
			t.Errorf("port %d waits for lanes", p)
		}
	}
	if len(f.saved) != 0 {
		t.Errorf("saved %q", f.saved)
	}
}

// TestTablesOfAnAdapter writes the tables of an adapter that came without configuration. That they were written is saved
// before.
func TestTablesOfAnAdapter(t *testing.T) {
	f := newFabric(t, [2]string{"qos", "TRUE"}, [2]string{"qos_sl2vl", "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7"}, [2]string{"qos_high_limit", "9"})
	p := f.host()
	if s := f.take(t, f.maps(p)); s.Method != mad.MethodSet || s.Attr != mad.AttrSLtoVLMappingTable || s.Mod != 0 || s.lanes.VL != fourLanes {
		t.Errorf("first step %+v, want a Set of %v", s, fourLanes)
	}
	if f.lanes.IsDone(p) {
		t.Error("the port waits for no arbitration table")
	}
	var mods []uint32
	for range 10 {
		s := f.take(t, f.shares(p))
		if s.Method == 0 {
			break
		}
		if s.Attr != mad.AttrVLArbitration {
			t.Fatalf("%+v", s)
		}
		mods = append(mods, s.Mod>>16)
	}
	if d := cmp.Diff([]uint32{uint32(mad.VLArbLow0), uint32(mad.VLArbHigh0), uint32(mad.VLArbLow0)}, mods); d != "" {
		t.Errorf("halves (-want +got):\n%s", d)
	}
	if !f.lanes.IsDone(p) {
		t.Error("the port is not done")
	}
	if limit, ok := f.lanes.HighLimit(p); limit != 9 || !ok {
		t.Errorf("VLHighLimit %d, %v", limit, ok)
	}
	if d := cmp.Diff([]string{"maps", "maps shares"}, f.saved); d != "" {
		t.Errorf("saved (-want +got):\n%s", d)
	}
	v, shown := f.lanes.View(), f.lanes.Show(p)
	if vl, known := v.Map(shown, f.topo.Freeze(), nil, p, 0); vl != fourLanes || !known {
		t.Errorf("shown %v, %v", vl, known)
	}
	if v.LeavesMap(shown, true) || v.LeavesHalf(shown, true, &f.info, mad.VLArbLow0) || !v.LeavesHalf(shown, true, &f.info, mad.VLArbLow32) {
		t.Error("programmed tables are shown as left alone")
	}
}

// TestLostTablesAreWrittenAgain has the audit find a table that is not as wanted, and a device that does not keep what is
// written.
func TestLostTablesAreWrittenAgain(t *testing.T) {
	f := newFabric(t, [2]string{"qos", "TRUE"})
	p := f.host()
	f.take(t, f.maps(p))
	audit := f.lanes.AuditMaps(p)
	if audit.Method != mad.MethodGet || !audit.Audit {
		t.Fatalf("audit %+v", audit)
	}
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGetResp, Attr: audit.Attr}, &mad.Route{}, ib.MKey{})
	r := work.Request{Ref: f.maps(p), Method: mad.MethodGet, Attr: audit.Attr, Audit: true}
	f.lanes.Answer(&r, &m, mad.StatusOK)
	if f.lanes.maps[p].done() {
		t.Error("a table of zeroes is taken for the wanted one")
	}
	set := f.lanes.Next(f.maps(p))
	if set.Method != mad.MethodSet {
		t.Fatalf("after that %+v", set)
	}
	r = work.Request{Ref: f.maps(p), Method: mad.MethodSet, Attr: audit.Attr}
	f.lanes.Answer(&r, &m, mad.StatusOK)
	if d := cmp.Diff([]string{"the table answered is not the one that was set"}, f.refused); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
	if !f.lanes.maps[p].done() || f.lanes.Show(p) != (Shown{}) {
		t.Error("the table is not left alone")
	}
}

// TestSavedTablesAreUndone holds that tables which were written before a restart are the defaults again, but none before
// there are routes.
func TestSavedTablesAreUndone(t *testing.T) {
	f := newFabric(t)
	p := f.host()
	f.lanes.Load("maps shares")
	if s := f.take(t, f.maps(p)); s.Method != 0 {
		t.Fatalf("before there are routes: %+v", s)
	}
	if !f.lanes.Follow(&route.Tables{}, nil) {
		t.Error("new routes change no service level")
	}
	if f.take(t, f.maps(p)).Method != mad.MethodSet || f.lanes.IsDone(p) {
		t.Error("nothing is written")
	}
	for f.take(t, f.shares(p)).Method != 0 {
	}
	for in := range ib.PortNum(5) {
		f.lanes.maps[f.at(in)].phase = mapDone
		f.lanes.shares[f.at(in)] = &shareState{right: allHalves}
	}
	f.lanes.Settle()
	if d := cmp.Diff([]string{""}, f.saved); d != "" {
		t.Errorf("saved (-want +got):\n%s", d)
	}
}
