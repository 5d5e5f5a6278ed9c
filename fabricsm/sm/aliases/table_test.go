package aliases

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with two hosts, at its ports 1 and 2, which have room for 16 GUIDs each.
type fabric struct {
	topo    topo.Builder
	queue   work.Queue
	table   *Table
	now     time.Time
	hosts   map[ib.GUID]topo.PortID
	reports []string
}

const first, second ib.GUID = 0x20, 0x21

func newFabric() *fabric {
	f := &fabric{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), hosts: make(map[ib.GUID]topo.PortID)}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 4})
	for i, guid := range []ib.GUID{first, second} {
		p := f.topo.PortOf(f.topo.AddNode(topo.Node{GUID: guid, Type: ib.NodeCA, NumPorts: 1}), 1)
		f.topo.SetPort(p, topo.Port{GUID: guid})
		f.topo.Connect(p, f.topo.PortOf(sw, ib.PortNum(i+1)))
		f.hosts[guid] = p
	}
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.table = New(f, &f.topo, &f.queue, Pauses{time.Second, time.Minute})
	return f
}

func (f *fabric) Now() time.Time                        { return f.now }
func (f *fabric) RetryLater(topo.PortID, time.Duration) {}
func (f *fabric) IsPlaced(topo.PortID) bool             { return true }
func (f *fabric) Room(topo.PortID) int                  { return 2 * mad.GUIDsPerBlock }
func (f *fabric) IsMember(ib.GUID) bool                 { return false }
func (f *fabric) IsEntitled(ib.GUID, ib.Place) bool     { return false }
func (f *fabric) Duplicate(ib.GUID, ib.Place, topo.PortID) {
	f.reports = append(f.reports, "duplicate")
}

func (f *fabric) ShowsStrange(topo.PortID, ib.GUID) { f.reports = append(f.reports, "strange") }

func (f *fabric) Applied(g ib.GUID, _ ib.Place, _ []ib.GUID) {
	f.reports = append(f.reports, "applied "+g.String())
}
func (f *fabric) Solved(fault.Key) {}
func (f *fabric) Refuse(_ fault.Key, _, _ ib.GUID, why string) {
	f.reports = append(f.reports, why)
}

func (f *fabric) PortByGUID(g ib.GUID) (topo.PortID, bool) {
	p, ok := f.hosts[g]
	return p, ok
}

// answer has a port answer what is asked for, until there is nothing more, and returns how many Sets there were.
func (f *fabric) answer(guid ib.GUID, held map[int]mad.GUIDInfo) (sets int) {
	p := f.hosts[guid]
	for {
		s := f.table.Next(p)
		if s.Method == 0 {
			return sets
		}
		if s.Method == mad.MethodSet {
			held[s.Block] = s.Want
			sets++
		}
		got := held[s.Block]
		f.table.Answer(p, &work.Request{Method: s.Method, Mod: uint32(s.Block)}, &got)
	}
}

// TestAliasIsReadBack checks that every block is read, that only one that differs is written, and that the port is said to
// hold its aliases when that was read back.
func TestAliasIsReadBack(t *testing.T) {
	f := newFabric()
	at := ib.Place{Switch: 0x10, Port: 1}
	f.table.Set([]Wanted{{GUID: first, Place: at, Aliases: []ib.GUID{0x100, 0, 0x102}}})
	held := map[int]mad.GUIDInfo{0: {GUID: [mad.GUIDsPerBlock]ib.GUID{first}}}
	if sets := f.answer(first, held); sets != 1 {
		t.Errorf("%d blocks were written, want 1", sets)
	}
	if want := [mad.GUIDsPerBlock]ib.GUID{first, 0x100, 0, 0x102}; held[0].GUID != want {
		t.Errorf("the port holds %v, want %v", held[0].GUID, want)
	}
	if diff := cmp.Diff([]string{"applied " + first.String()}, f.reports); diff != "" {
		t.Error(diff)
	}
	if got := f.table.Show().Of(f.hosts[first]); !cmp.Equal(got, []ib.GUID{0x100, 0, 0x102}) {
		t.Errorf("shown are %v", got)
	}
}

// TestAliasHasOneOwner checks that an alias stays with its first owner, and goes to the next once that lost it.
func TestAliasHasOneOwner(t *testing.T) {
	f := newFabric()
	wanted := []Wanted{
		{GUID: first, Place: ib.Place{Switch: 0x10, Port: 1}, Aliases: []ib.GUID{0x100}},
		{GUID: second, Place: ib.Place{Switch: 0x10, Port: 2}, Aliases: []ib.GUID{0x100, second}},
	}
	f.table.Set(wanted)
	want := []string{"it belongs to port " + first.String(), "it is the port GUID of node " + second.String()}
	if diff := cmp.Diff(want, f.reports[:2]); diff != "" {
		t.Error(diff)
	}
	wanted[0].Aliases = nil
	f.reports = nil
	f.table.Set(wanted[:1])
	held := map[int]mad.GUIDInfo{0: {GUID: [mad.GUIDsPerBlock]ib.GUID{second}}}
	if f.answer(second, held); held[0].GUID[1] != 0x100 {
		t.Errorf("the second port holds %v, want the alias; reports %q", held[0].GUID, f.reports)
	}
}
