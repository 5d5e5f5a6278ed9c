package sim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

// slowLeaf is a fabric whose leaf1 works a millisecond on each SMP and holds
// four of each port. Stations are at its ports 1 and 2; it has LID 3.
func slowLeaf(t testing.TB) (f *sim.Fabric, sm, h1 *sim.Station) {
	t.Helper()
	f = tree(t, sim.Options{LoseSilently: true})
	sm, h1 = station(t, f, "sm", false), station(t, f, "h1", false)
	forward(t, sm)
	activate(t, sm)
	if err := f.SetDevice("leaf1", sim.Device{VL15Buffers: 4}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetFault("leaf1", sim.Fault{Work: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	return f, sm, h1
}

// vl15Dropped reads the counter of that name over the fabric.
func vl15Dropped(t testing.TB, s *sim.Station, port byte) uint16 {
	t.Helper()
	const offset = 64 + 22
	in := only(t, s, perf(3, mad.MethodGet, 0x12, port, 0))
	return uint16(in.MAD[offset])<<8 | uint16(in.MAD[offset+1])
}

func TestVL15Buffers(t *testing.T) {
	f, sm, h1 := slowLeaf(t)
	get := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)
	sm.Send(get, get, get, toLID(3, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}), get, get)
	h1.Send(get)
	type came struct{ SM, H1 int }
	var got []came
	for range 7 {
		got = append(got, came{len(sm.Take(nil)), len(h1.Take(nil))})
		f.Advance(time.Millisecond)
	}
	// The agent answers one after the other. The flood at port 1 fills the buffers
	// of port 1 alone.
	if diff := cmp.Diff(got, []came{{0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {0, 1}, {0, 0}}); diff != "" {
		t.Errorf("answers by the millisecond: got-, want+\n%s", diff)
	}
	if at1, at2 := vl15Dropped(t, sm, 1), vl15Dropped(t, sm, 2); at1 != 2 || at2 != 0 {
		t.Errorf("VL15Dropped is %d at port 1 and %d at port 2, want 2 and 0", at1, at2)
	}
	if got := f.Stats().VL15Dropped; got != 2 {
		t.Errorf("the fabric counts %d dropped SMPs, want 2", got)
	}
	only(t, sm, perf(3, mad.MethodSet, 0x12, 1, 1<<11))
	if got := vl15Dropped(t, sm, 1); got != 0 {
		t.Errorf("VL15Dropped is %d after it was cleared", got)
	}
}

func TestSlowNodesForwardAtOnce(t *testing.T) {
	_, sm, _ := slowLeaf(t)
	var all []transport.Packet
	for range 100 {
		all = append(all, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2))
	}
	if got := len(sm.Exchange(all, nil)); got != len(all) {
		t.Errorf("%d of %d answers came through a slow switch at once", got, len(all))
	}
}

func TestVL15BuffersAreVolatile(t *testing.T) {
	f, sm, _ := slowLeaf(t)
	get := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)
	sm.Send(get, get, get, get)
	if err := f.Reboot("leaf1"); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Second)
	if got := sm.Take(nil); len(got) != 0 {
		t.Errorf("%d SMPs outlived a reboot of the switch", len(got))
	}
	sm.Send(get, get, get, get, get)
	f.Advance(time.Second)
	if got := sm.Take(nil); len(got) != 4 {
		t.Errorf("%d answers after the reboot, want as many as there are buffers, 4", len(got))
	}
}

func TestHealedNodesFinishTheirWork(t *testing.T) {
	f, sm, _ := slowLeaf(t)
	get := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)
	sm.Send(get, get)
	if !f.IsTimed() {
		t.Error("nothing of a slow node waits for time")
	}
	if err := f.SetFault("leaf1", sim.Fault{}); err != nil {
		t.Fatal(err)
	}
	if got := sm.Exchange([]transport.Packet{get}, nil); len(got) != 1 || f.IsTimed() {
		t.Errorf("%d answers of a healed node at once, want 1; still timed: %v", len(got), f.IsTimed())
	}
	f.Elapse(time.Millisecond)
	if got := sm.Take(nil); len(got) != 2 {
		t.Errorf("%d answers to what waited, want 2", len(got))
	}
}

func TestFaultsAddUp(t *testing.T) {
	f := tree(t, sim.Options{})
	var seen []sim.Fault
	note := func(fault *sim.Fault) { seen = append(seen, *fault) }
	for _, err := range []error{
		f.SetFault("", sim.Fault{Loss: 0.5}),
		f.ChangeFault("h1", func(fault *sim.Fault) { fault.Delay = time.Second }),
		f.ChangeFault("h1", note), f.ChangeFault("h2", note), f.ChangeFault("", note),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(seen, []sim.Fault{{Loss: 0.5, Delay: time.Second}, {Loss: 0.5}, {Loss: 0.5}}); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
	if err := f.ChangeFault("nowhere", note); err == nil {
		t.Error("a node that is not there has a fault")
	}
}
