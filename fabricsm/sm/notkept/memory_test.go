package notkept_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/notkept"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

// TestMemory checks which devices are different, and that their number is bounded.
func TestMemory(t *testing.T) {
	var b topo.Builder
	sw := b.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	ni := mad.NodeInfo{NodeGUID: 0x20, NodeType: ib.NodeCA, VendorID: 0x2c9, DeviceID: 0x1017, Revision: 1, NumPorts: 2}
	first, second := notkept.DeviceAt(&b, &ni, b.PortOf(sw, 1)), notkept.DeviceAt(&b, &ni, b.PortOf(sw, 2))
	m := notkept.New()
	if !m.Set(first, portset.HOQLife) || m.Of(first) != portset.HOQLife || m.Of(second) != 0 {
		t.Error("a device speaks for one at another place, or is not remembered")
	}
	ni.Revision++
	if d := notkept.DeviceAt(&b, &ni, b.PortOf(sw, 1)); m.Of(d) != 0 {
		t.Error("new firmware is taken for the old")
	}
	for g := ib.GUID(0x1000); m.Set(notkept.Device{GUID: g}, portset.LMC); g++ {
		if g > 0x10000 {
			t.Fatal("the memory has no end")
		}
	}
	if !m.Set(first, portset.LID) || m.Of(first) != portset.LID {
		t.Error("a device that is remembered is not learned about any more")
	}
}

// TestModel checks that a model is read as it is written, and that any other text is no model.
func TestModel(t *testing.T) {
	ni := mad.NodeInfo{VendorID: 0x2c9, DeviceID: 0x1017, Revision: 0xa0, NumPorts: 36}
	m := notkept.DeviceAt(nil, &ni, topo.None).Model
	if s := m.String(); s != "0002c9/1017/a0/36" || notkept.ParseModel(s) != m {
		t.Errorf("%q is read as %v", s, notkept.ParseModel(s))
	}
	if got := notkept.ParseModel("0002c9/1017"); got != (notkept.Model{}) {
		t.Errorf("a part of a model is read as %v", got)
	}
}
