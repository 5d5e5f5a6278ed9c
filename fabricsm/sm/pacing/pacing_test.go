package pacing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with a host. It is what everything of the package asks.
type fabric struct {
	topo     topo.Builder
	queue    work.Queue
	wire     work.Window
	ports    []Allowance
	age      time.Duration
	settled  bool
	suspects map[topo.NodeID]bool
	timers   []time.Duration
	begun    []work.Ref
	done     int
}

func newFabric() *fabric {
	f := &fabric{wire: work.NewWindow(8), suspects: make(map[topo.NodeID]bool)}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.topo.Connect(f.topo.PortOf(host, 1), f.topo.PortOf(sw, 1))
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.ports = make([]Allowance, f.topo.NumPorts())
	return f
}

func (f *fabric) Now() time.Time                                  { return time.Unix(1000, 0).Add(f.age) }
func (f *fabric) Age() time.Duration                              { return f.age }
func (f *fabric) IsSettled() bool                                 { return f.settled }
func (f *fabric) Allowance(p topo.PortID) *Allowance              { return &f.ports[p] }
func (f *fabric) KeyBlocks(topo.PortID) int                       { return 1 }
func (f *fabric) IsSuspect(id topo.NodeID) bool                   { return f.suspects[id] }
func (f *fabric) Begin(x work.Ref)                                { f.begun = append(f.begun, x) }
func (f *fabric) Done()                                           { f.done++ }
func (f *fabric) After(d time.Duration, _ work.Alarm, _ work.Ref) { f.timers = append(f.timers, d) }

func TestAllowances(t *testing.T) {
	f := newFabric()
	host, sw := f.topo.PortOf(1, 1), f.topo.PortOf(0, 1)
	for _, tt := range []struct {
		name string
		x    work.Ref
		most int             // requests in a second
		want []time.Duration // pauses of three overdrafts
	}{
		{"a host", work.OnPort(work.Set, host), 64, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"P_Keys of a host", work.OnPort(work.PKey, host), 36, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"P_Keys of a switch port", work.OnPort(work.PKey, sw), 36, []time.Duration{gateHold, gateHold, gateHold}},
		{"lanes of a switch port", work.OnPort(work.SLtoVL, sw), 36, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.timers, f.age = nil, f.age+time.Hour
			b := NewBudget(f, &f.topo, &f.queue, Pauses{time.Second, time.Minute})
			for range tt.want {
				for i := range tt.most {
					if b.IsOverdrawn(tt.x) {
						t.Fatalf("overdrawn after %d requests, want %d", i, tt.most)
					}
					b.Spend(tt.x)
				}
				if !b.IsOverdrawn(tt.x) {
					t.Fatalf("not overdrawn after %d requests", tt.most)
				}
				f.queue.Free(tt.x)
				f.age += time.Second
			}
			if d := cmp.Diff(tt.want, f.timers); d != "" {
				t.Errorf("pauses (-want +got):\n%s", d)
			}
		})
	}
	b := NewBudget(f, &f.topo, &f.queue, Pauses{time.Second, time.Minute})
	if b.IsOverdrawn(work.OnNode(work.LFT, 0)) {
		t.Error("work on a node is overdrawn, want no bound")
	}
}

func TestThrottle(t *testing.T) {
	f := newFabric()
	const size = 2
	th := NewThrottle(f, &f.topo, &f.queue, &f.wire, size)
	f.suspects[0] = true
	x := work.OnPort(work.Probe, f.topo.PortOf(0, 1))
	f.queue.Mark(x)
	if th.Delays(x, topo.None) {
		t.Error("work has to wait though no answer is late")
	}
	var ids []uint32
	for range size {
		id := f.wire.Add(&work.Request{Ref: work.OnNode(work.Desc, 1), Node: 1}, false)
		f.wire.Ignore(id)
		ids = append(ids, id)
	}
	if th.Delays(work.OnNode(work.Desc, 1), 1) {
		t.Error("work on a node that hangs by several cables has to wait")
	}
	f.queue.Pop()
	if !th.Delays(x, topo.None) {
		t.Error("work on a node that hangs by one cable need not wait though all answers are late")
	}
	if r := (&work.Request{Ref: x, Node: topo.None}); !th.Affects(r) {
		t.Error("a request for such a node delays other work")
	}
	th.Resume()
	if !f.queue.IsEmpty() {
		t.Error("work goes on though all answers are late")
	}
	f.wire.End(ids[0])
	th.Resume()
	if got, ok := f.queue.Pop(); !ok || got != x {
		t.Errorf("after an answer %v, %v goes on, want %v", got, ok, x)
	}
}

func TestBackground(t *testing.T) {
	f := newFabric()
	b := NewBackground(f, &f.queue, &f.wire)
	const n = batch + 5
	for range n {
		b.Add(work.OnNode(work.Desc, 1))
	}
	if !b.IsArmed() || b.Len() != n || len(f.timers) != 1 {
		t.Fatalf("armed %v with %d pieces and %d timers, want all %d with one", b.IsArmed(), b.Len(), len(f.timers), n)
	}
	if b.Due(); len(f.begun) != 0 {
		t.Errorf("%d pieces were begun though the fabric is not settled", len(f.begun))
	}
	f.settled = true
	if b.Due(); len(f.begun) != batch {
		t.Errorf("%d pieces were begun, want %d", len(f.begun), batch)
	}
	if b.Due(); len(f.begun) != n || f.done != 0 {
		t.Errorf("%d pieces were begun and %d times all done, want %d and none before the answers are there", len(f.begun), f.done, n)
	}
	f.age += tick
	if b.Due(); f.done != 1 || b.IsArmed() {
		t.Errorf("%d times all done and armed %v, want once and no longer", f.done, b.IsArmed())
	}
}

// TestBackgroundDoesNotWaitForEver: a fabric that never settles puts background work off for a while only.
func TestBackgroundDoesNotWaitForEver(t *testing.T) {
	f := newFabric()
	b := NewBackground(f, &f.queue, &f.wire)
	b.Add(work.OnNode(work.Desc, 1))
	f.age += patience + 1
	if b.Due(); len(f.begun) != 1 {
		t.Errorf("%d pieces were begun after %v, want 1", len(f.begun), patience)
	}
}
