package portview

import (
	"slices"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// TestStirs marks one thing after another: a snapshot shows each as one that may have changed since any older snapshot, and as nothing
// since one that already shows it.
func TestStirs(t *testing.T) {
	none := func(attr mad.AttrID) func(d, old *Devices) []int32 {
		return func(d, old *Devices) []int32 { return ids(slices.Collect(d.SwitchesSince(old, attr))) }
	}
	shown := map[string]func(d, old *Devices) []int32{
		"link":       func(d, old *Devices) []int32 { return ids(slices.Collect(d.LinksSince(old))) },
		"PortInfo":   func(d, old *Devices) []int32 { return ids(slices.Collect(d.PortInfosSince(old))) },
		"keys":       func(d, old *Devices) []int32 { return ids(slices.Collect(d.KeysWrittenSince(old))) },
		"lanes":      func(d, old *Devices) []int32 { return ids(slices.Collect(d.LanesWrittenSince(old))) },
		"SwitchInfo": none(mad.AttrSwitchInfo), "LFT": none(mad.AttrLinearForwardingTable), "MFT": none(mad.AttrMulticastForwardingTable),
		"other": none(mad.AttrSLtoVLMappingTable),
	}
	for name, mark := range map[string]func(r *Recorder){
		"link":       func(r *Recorder) { r.StirLink(1) },
		"PortInfo":   func(r *Recorder) { r.StirPort(1) },
		"keys":       func(r *Recorder) { r.StirKeys(1) },
		"lanes":      func(r *Recorder) { r.StirLanes(1) },
		"SwitchInfo": func(r *Recorder) { r.StirSwitch(1, mad.AttrSwitchInfo) },
		"LFT":        func(r *Recorder) { r.StirSwitch(1, mad.AttrLinearForwardingTable) },
		"MFT":        func(r *Recorder) { r.StirSwitch(1, mad.AttrMulticastForwardingTable) },
		"other":      func(r *Recorder) { r.StirSwitch(1, mad.AttrSLtoVLMappingTable) },
	} {
		t.Run(name, func(t *testing.T) {
			_, r := newRecorder()
			show := func() Devices { return r.Show(&Rest{}) }
			snapshots := []Devices{{}, show()}
			for range 2 {
				mark(r)
				mark(r)
				snapshots = append(snapshots, show())
			}
			last := snapshots[3]
			snapshots = append(snapshots, show())
			for i := range snapshots {
				for what, since := range shown {
					var want []int32
					if what == name && name != "other" && i < 3 {
						want = []int32{1}
					}
					if got := since(&snapshots[4], &snapshots[i]); !slices.Equal(got, want) {
						t.Errorf("%s since snapshot %d: %v, want %v", what, i, got, want)
					}
				}
			}
			if got := shown[name](&last, &snapshots[2]); name != "other" && len(got) != 1 {
				t.Errorf("what was marked again is no change: %v", got)
			}
		})
	}
}

// TestSwitchInfoThatDiffersIsStirred has a switch show another SwitchInfo without a Set.
func TestSwitchInfoThatDiffersIsStirred(t *testing.T) {
	f, r := newRecorder()
	old := r.Show(&Rest{})
	for _, step := range []struct {
		info *mad.SwitchInfo
		want int
	}{{&mad.SwitchInfo{LinearFDBTop: 9}, 1}, {&mad.SwitchInfo{LinearFDBTop: 9}, 0}, {&mad.SwitchInfo{LinearFDBTop: 8}, 1}, {nil, 1}} {
		f.sw = step.info
		r.NoteSwitch(0)
		now := r.Show(&Rest{})
		if got := slices.Collect(now.SwitchesSince(&old, mad.AttrSwitchInfo)); len(got) != step.want {
			t.Errorf("SwitchInfo %+v: %v, want %d", step.info, got, step.want)
		}
		old = now
	}
}

func ids[ID topo.PortID | topo.NodeID](list []ID) (all []int32) {
	for _, id := range list {
		all = append(all, int32(id))
	}
	return all
}
