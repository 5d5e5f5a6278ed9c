package subtree_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/topo"
)

// fabric is a set of switches of 15 ports, of size 1 each; our own switch is the first, with hosts at ports 11 to 15.
type fabric struct {
	t       *testing.T
	topo    topo.Builder
	tracker *subtree.Tracker
	age     time.Duration
	up      map[topo.NodeID]topo.PortID
	held    []topo.PortID
	trusted topo.PortID
	root    topo.NodeID
}

func newFabric(t *testing.T, l subtree.Limits) *fabric {
	t.Helper()
	f := &fabric{t: t, up: make(map[topo.NodeID]topo.PortID), trusted: topo.None}
	f.tracker = subtree.New(f, &f.topo, l)
	f.root = f.add(topo.None, ib.NodeSwitch, false)
	for num := range 5 {
		f.add(f.topo.PortOf(f.root, ib.PortNum(11+num)), ib.NodeCA, true)
	}
	return f
}

func (f *fabric) Age() time.Duration                  { return f.age }
func (f *fabric) Root() (topo.NodeID, topo.PortID)    { return f.root, f.topo.PortOf(f.root, 0) }
func (f *fabric) IsAlive(id topo.NodeID) bool         { return f.topo.Node(id).Type != 0 }
func (f *fabric) Up(id topo.NodeID) topo.PortID       { return f.up[id] }
func (f *fabric) IsTrusted(p topo.PortID) bool        { return p == f.trusted }
func (f *fabric) MayHold(p topo.PortID) bool          { return p != topo.None && p != f.trusted }
func (f *fabric) IsHeld(p topo.PortID) bool           { return slices.Contains(f.held, p) }
func (f *fabric) Hold(p topo.PortID, _ int)           { f.held = append(f.held, p); f.drop(f.topo.Port(p).Peer) }
func (f *fabric) AnyHeld(func(topo.NodeID) bool) bool { return false }

func (f *fabric) Hops(id topo.NodeID) (n int) {
	for ; f.up[id] != topo.None; n++ {
		id = f.topo.Port(f.up[id]).Node
	}
	return n
}

// add adds a node behind a port, without asking whether it may be.
func (f *fabric) add(p topo.PortID, kind ib.NodeType, known bool) topo.NodeID {
	f.t.Helper()
	n := topo.Node{GUID: ib.GUID(1 + f.topo.NumNodes()), Type: kind, NumPorts: 15}
	id := f.topo.AddNode(n)
	f.up[id] = p
	f.tracker.Add(id, f.found(p, kind, known))
	if p != topo.None {
		f.topo.Connect(p, f.topo.PortOf(id, 1))
	}
	return id
}

func (f *fabric) found(p topo.PortID, kind ib.NodeType, known bool) *subtree.Found {
	return &subtree.Found{Port: p, Ports: 15, Switch: kind == ib.NodeSwitch, Known: known, New: !known}
}

// drop removes the node of a port, and all that was found behind it.
func (f *fabric) drop(p topo.PortID) {
	id := f.topo.Port(p).Node
	for num := range 15 {
		far := f.topo.Port(f.topo.PortOf(id, ib.PortNum(1+num))).Peer
		if far != topo.None && f.up[f.topo.Port(far).Node] == f.topo.PortOf(id, ib.PortNum(1+num)) {
			f.drop(far)
		}
	}
	f.tracker.Remove(id)
	f.topo.RemoveNode(id)
}

// chain adds switches one behind the other, the first behind port num of our own switch, and returns them.
func (f *fabric) chain(num ib.PortNum, length int) (ids []topo.NodeID) {
	f.t.Helper()
	p := f.topo.PortOf(f.root, num)
	for range length {
		id := f.add(p, ib.NodeSwitch, false)
		p = f.topo.PortOf(id, 2)
		ids = append(ids, id)
	}
	return ids
}

var limits = subtree.Limits{Ceiling: 1000, Entry: 500, Window: time.Minute, Cable: 4, Hops: 30}

// TestEndLevelHoldsCable: the cable by which too much hangs is held, and no other.
func TestEndLevelHoldsCable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length int
		second bool // the end of the chain has a cable of its own to us
		want   int
	}{
		{name: "at the limit", length: 4},
		{name: "beyond it", length: 5, want: 1},
		{name: "two cables", length: 5, second: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t, limits)
			f.chain(1, 3)
			ids := f.chain(2, tt.length)
			if tt.second {
				f.topo.Connect(f.topo.PortOf(ids[tt.length-1], 3), f.topo.PortOf(f.root, 4))
			}
			if again := f.tracker.EndLevel(); len(again) != 0 {
				t.Errorf("ports %v are to be asked again", again)
			}
			if len(f.held) != tt.want || tt.want == 1 && f.held[0] != f.topo.PortOf(f.root, 2) {
				t.Errorf("held %v, want %d ports", f.held, tt.want)
			}
			if got := !f.tracker.IsSuspect(ids[0]); tt.want == 0 && got != tt.second {
				t.Errorf("vouched for: %v, want %v", got, tt.second)
			}
		})
	}
}

// TestMayHang: a node beyond the limit is put off until the level ends, but a known one is not.
func TestMayHang(t *testing.T) {
	f := newFabric(t, limits)
	ids := f.chain(2, 4)
	f.tracker.EndLevel()
	p := f.topo.PortOf(ids[3], 2)
	if !f.tracker.MayHang(f.found(p, ib.NodeSwitch, true)) || f.tracker.IsPending() {
		t.Error("a known node is put off")
	}
	if f.tracker.MayHang(f.found(p, ib.NodeSwitch, false)) || !f.tracker.IsPending() {
		t.Error("a node beyond the limit is not put off")
	}
	f.topo.Connect(f.topo.PortOf(ids[3], 3), f.topo.PortOf(f.root, 4)) // another way, found in the same level
	if again := f.tracker.EndLevel(); !slices.Equal(again, []topo.PortID{p}) || len(f.held) != 0 {
		t.Errorf("ports %v are to be asked again and %v are held, want %v and none", again, f.held, p)
	}
	if !f.tracker.MayHang(f.found(p, ib.NodeSwitch, false)) {
		t.Error("a node behind two cables is put off")
	}
}

// TestHoldChain: a chain that is too long is held at its own cable, once in a window.
func TestHoldChain(t *testing.T) {
	l := limits
	l.Hops, l.Cable = 3, 100
	f := newFabric(t, l)
	first, second := f.chain(2, 3), f.chain(3, 3)
	end := f.topo.PortOf(first[2], 2)
	if f.tracker.IsTooFar(f.topo.PortOf(first[1], 2)) || !f.tracker.IsTooFar(end) {
		t.Fatal("want the third switch to be too far, and not the second")
	}
	if !f.tracker.HoldChain(end) || !slices.Equal(f.held, []topo.PortID{f.topo.PortOf(f.root, 2)}) {
		t.Errorf("held %v, want the port in front of the chain", f.held)
	}
	end = f.topo.PortOf(second[2], 2)
	if f.tracker.HoldChain(end) {
		t.Error("held twice in a window")
	}
	if f.age += l.Window; !f.tracker.HoldChain(end) {
		t.Error("not held in the next window")
	}
}

// TestMayGrow: the port behind which too much is found in a window is held; a port that an operator trusts is not.
func TestMayGrow(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		l := limits
		l.Entry, l.Cable = 10, 100
		f := newFabric(t, l)
		f.age = 100 * l.Window // our own switch is young no longer
		entry := f.topo.PortOf(f.root, 2)
		if trusted {
			f.trusted = entry
		}
		ids := f.chain(2, 10)
		may := f.tracker.MayGrow(f.found(f.topo.PortOf(ids[9], 2), ib.NodeSwitch, false))
		if may != trusted || f.IsHeld(entry) == trusted {
			t.Errorf("trusted %v: may grow %v, held %v", trusted, may, f.held)
		}
		if !trusted && !f.tracker.MayGrow(f.found(f.topo.PortOf(f.root, 3), ib.NodeSwitch, false)) {
			t.Error("nothing new is let in elsewhere")
		}
	}
}

// TestCeiling: beyond the ceiling nothing is let in, known or not, until the next window.
func TestCeiling(t *testing.T) {
	l := limits
	l.Ceiling, l.Cable = 12, 100
	f := newFabric(t, l)
	f.chain(2, 6)
	next := f.found(f.topo.PortOf(f.root, 3), ib.NodeSwitch, true)
	if f.tracker.MayGrow(next) {
		t.Error("let in beyond the ceiling")
	}
	f.drop(f.topo.Port(f.topo.PortOf(f.root, 11)).Peer)
	if f.tracker.MayGrow(next) {
		t.Error("let in within the same window")
	}
	if f.age += l.Window; !f.tracker.MayGrow(next) {
		t.Error("not let in in the next window, although there is room")
	}
}
