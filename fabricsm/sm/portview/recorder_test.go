package portview

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/topo"
)

// fabric is a switch of two ports. It is what a Recorder asks.
type fabric struct {
	topo  topo.Builder
	infos [3]*mad.PortInfo
	sw    *mad.SwitchInfo
	ports [3]bool
	node  bool
	asked int // for PortInfo
}

func (f *fabric) Lanes(topo.PortID) lanes.Shown          { return lanes.Shown{} }
func (f *fabric) SwitchInfo(topo.NodeID) *mad.SwitchInfo { return f.sw }
func (f *fabric) Noted(p topo.PortID) *bool              { return &f.ports[p] }
func (f *fabric) NodeNoted(topo.NodeID) *bool            { return &f.node }

func (f *fabric) PortInfo(p topo.PortID) *mad.PortInfo {
	f.asked++
	return f.infos[p]
}

func newRecorder() (*fabric, *Recorder) {
	f := &fabric{}
	f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	r := New(f, &f.topo)
	return f, &r
}

func TestOnlyWhatChangedIsWrittenDown(t *testing.T) {
	f, r := newRecorder()
	f.infos[1] = &mad.PortInfo{MKey: ib.NewMKey(7), LID: 5}
	f.infos[2] = &mad.PortInfo{LID: 5}
	f.sw = &mad.SwitchInfo{LinearFDBTop: 9}
	for range 3 {
		r.NotePort(1)
		r.NotePort(2)
		r.NoteSwitch(0)
	}
	first := r.Show(&Rest{Fabric: f.topo.Freeze()})
	if f.asked != 2 {
		t.Errorf("PortInfo was asked for %d times, want once for each port", f.asked)
	}
	var got mad.PortInfo
	if mad.Decode(first.PortInfo(1)[:], &got) != nil || got.LID != 5 || !got.MKey.IsZero() {
		t.Errorf("port 1 shows LID %v and M_Key set %v, want LID 5 and none", got.LID, !got.MKey.IsZero())
	}
	if first.PortInfo(1) != first.PortInfo(2) {
		t.Error("ports that show the same are kept twice")
	}
	if first.PortInfo(0) != nil || first.SwitchInfo(0) == nil {
		t.Error("a port that was not read is shown, or the switch is not")
	}
	f.infos[1], f.sw = nil, nil
	r.NotePort(1)
	r.NoteSwitch(0)
	second := r.Show(&Rest{Fabric: f.topo.Freeze()})
	if second.PortInfo(1) != nil || second.SwitchInfo(0) != nil || first.PortInfo(1) == nil {
		t.Error("what is gone is still shown, or is gone from the snapshot before")
	}
	if second.PortInfo(2) != first.PortInfo(2) {
		t.Error("snapshots do not share a port that did not change")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	_, r := newRecorder()
	var none Devices
	some := r.Show(&Rest{})
	for name, d := range map[string]*Devices{"zero": &none, "nothing read": &some} {
		for _, p := range []topo.PortID{topo.None, 0, 99} {
			if _, known := d.SLtoVL(p, 0); known {
				t.Errorf("%s: SL-to-VL of port %d is known", name, p)
			}
			keys, proven := d.PKeys(p)
			_, half := d.VLArbitration(p, mad.VLArbLow0)
			if keys != nil || proven || half || d.PortInfo(p) != nil || d.MKey(p) != nil || d.Aliases(p) != nil || d.PKeyBlocks(p) != 0 || d.LeavesSLtoVL(p) || d.LeavesVLArbitration(p, mad.VLArbLow0) {
				t.Errorf("%s: something is shown of port %d", name, p)
			}
		}
	}
}

func TestKeysThatChanged(t *testing.T) {
	var pages topo.OwnPages[*pkeys.Table]
	pages.Grow(3)
	show := func() Devices { return (&Rest{PKeys: pages.Snapshot()}).Devices() }
	pages.Set(1, pkeys.NewTable([]ib.PKey{0xffff, 0, 0x8001}))
	first := show()
	keys, proven := first.PKeys(1)
	if !slices.Equal(keys, []ib.PKey{0xffff, 0x8001}) || !proven {
		t.Errorf("keys %v, proven %v; want two, proven", keys, proven)
	}
	pages.Set(2, pkeys.NewTable([]ib.PKey{0xffff}))
	second := show()
	if got := slices.Collect(second.PKeysSince(&first)); !slices.Equal(got, []topo.PortID{2}) {
		t.Errorf("ports that changed: %v, want 2", got)
	}
	if got := slices.Collect(second.PKeysSince(&Devices{})); !slices.Equal(got, []topo.PortID{0, 1, 2}) {
		t.Errorf("ports that differ from nothing: %v, want all", got)
	}
}
