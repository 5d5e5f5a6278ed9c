package hostwrites_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/hostwrites"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a host on port 1 of a switch.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	sp, hp topo.PortID
	state  hostwrites.State
	other  hostwrites.State
	notes  []violation.HostWrite
	later  int
}

func newFabric() *fabric {
	f := new(fabric)
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 1})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.sp, f.hp = f.topo.PortOf(sw, 1), f.topo.PortOf(host, 1)
	f.topo.Connect(f.sp, f.hp)
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	return f
}

func (f *fabric) Port(p topo.PortID) hostwrites.Port {
	if p != f.hp {
		return hostwrites.Port{State: &f.other, IsUp: true}
	}
	return hostwrites.Port{State: &f.state, Node: 1, LID: 3, GUIDCap: 16, IsPlaced: true, IsUp: true}
}

func (f *fabric) Own() topo.PortID            { return topo.None }
func (f *fabric) IsWriting() bool             { return true }
func (f *fabric) SMLID() ib.LID               { return 1 }
func (f *fabric) LMC(topo.PortID) ib.LMC      { return 0 }
func (f *fabric) Owner(l ib.LID) ib.GUID      { return ib.GUID(l) + 0x100 }
func (f *fabric) HasAliases(topo.PortID) bool { return false }
func (f *fabric) IsMember(g ib.GUID) bool     { return g == 0x99 }
func (f *fabric) ReadLater(topo.PortID)       { f.later++ }
func (f *fabric) PortByGUID(g ib.GUID) (topo.PortID, bool) {
	return f.sp, g == 0x10
}
func (f *fabric) Note(_ topo.PortID, w violation.HostWrite) { f.notes = append(f.notes, w) }

// TestCompare checks which values of an adapter are reported, and that a restarted one is not.
func TestCompare(t *testing.T) {
	f := newFabric()
	w := hostwrites.New(f, &f.topo, &f.queue)
	if w.IsAdapter(f.sp) || !w.IsAdapter(f.hp) {
		t.Fatal("an adapter is not told from a switch port")
	}
	old := mad.PortInfo{PortState: ib.PortActive, LID: 3, MasterSMLID: 1}
	is := mad.PortInfo{PortState: ib.PortActive, LID: 7, LMC: 1, MasterSMLID: 2}
	w.SuspectKeys(f.hp, &work.Request{Method: mad.MethodGet}, []ib.PKey{1, 2}, []ib.PKey{1, 0})
	w.Compare(f.hp, &old, &is)
	want := []violation.HostWrite{
		{Field: violation.HostPKeys, LID: 7, PKey: 2},
		{Field: violation.HostLID, LID: 7, Victim: 0x107},
		{Field: violation.HostLMC, LID: 7},
		{Field: violation.HostMasterLID, LID: 2},
	}
	if len(f.notes) != len(want) || f.later != 1 {
		t.Fatalf("reported %+v; read %d times", f.notes, f.later)
	}
	for i := range want {
		if f.notes[i] != want[i] {
			t.Errorf("reported %+v, want %+v", f.notes[i], want[i])
		}
	}
	f.notes = nil
	w.SuspectKeys(f.hp, &work.Request{Method: mad.MethodGet}, []ib.PKey{1}, []ib.PKey{5})
	is.PortState = ib.PortInit
	w.Compare(f.hp, &old, &is)
	is.PortState, is = ib.PortActive, old
	if w.Compare(f.hp, &old, &is); len(f.notes) != 0 {
		t.Errorf("of a restarted port: %+v", f.notes)
	}
}

// TestGUIDs checks that GUIDs of others are taken out of a block, and blocks are read in turn.
func TestGUIDs(t *testing.T) {
	f := newFabric()
	w := hostwrites.New(f, &f.topo, &f.queue)
	for _, want := range []uint8{1, 0} {
		w.ReadGUIDs(f.hp)
		if block, due := f.state.Due(); block != want || !due {
			t.Errorf("block %d, due %v; want %d", block, due, want)
		}
	}
	if _, due := f.state.Due(); due {
		t.Error("a block is read twice")
	}
	got := mad.GUIDInfo{GUID: [mad.GUIDsPerBlock]ib.GUID{0x10, 0x10, 0x99, 0x55}}
	if !w.TakeGUIDs(f.hp, &work.Request{Method: mad.MethodGet}, &got) || got.GUID[0] != 0x10 || got.GUID[1] != 0 || got.GUID[2] != 0 || got.GUID[3] != 0x55 {
		t.Errorf("the block is to be %v", got.GUID)
	}
	if w.TakeGUIDs(f.hp, &work.Request{Method: mad.MethodGet}, &got) || len(f.notes) != 2 {
		t.Errorf("reported %+v", f.notes)
	}
}

// TestReadLIDs checks that each adapter has its turn once in a period.
func TestReadLIDs(t *testing.T) {
	f := newFabric()
	w := hostwrites.New(f, &f.topo, &f.queue)
	for range 8 {
		w.ReadLIDs(f.topo.NumPorts(), 1, 4*hostwrites.LIDTick)
	}
	if f.later != 2 {
		t.Errorf("read %d times in two periods", f.later)
	}
	w.ReadLIDs(0, 0, time.Second)
}
