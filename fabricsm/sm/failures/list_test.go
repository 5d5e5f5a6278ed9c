package failures_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/failures"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch that we are attached to, with another switch on port 1 that has a host on port 2.
type fabric struct {
	topo  topo.Builder
	queue work.Queue
	tree  *tree.Tree
	list  failures.List
	now   time.Time
	root  topo.NodeID
	sw    topo.NodeID
	host  topo.NodeID

	nodes  map[topo.NodeID]*failures.Node
	silent map[topo.NodeID]bool
	pause  map[topo.PortID]*time.Duration
	verify bool
	down   bool        // links are
	entry  topo.PortID // in front of the port that work is about
	refuse bool        // adapters may refuse their keys
	keys   int         // further keys to try
	guilty bool        // the law convicts
	gone   bool        // a strike makes the node go
	moved  bool        // the cable is claimed by another

	did    []string
	pauses []time.Duration
}

var limits = failures.Limits{Tries: 3, Min: time.Second, Max: 8 * time.Second}

func newFabric() *fabric {
	f := &fabric{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), entry: topo.None,
		nodes: make(map[topo.NodeID]*failures.Node), silent: make(map[topo.NodeID]bool), pause: make(map[topo.PortID]*time.Duration),
	}
	f.root = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	f.sw = f.topo.AddNode(topo.Node{GUID: 0x11, Type: ib.NodeSwitch, NumPorts: 2})
	f.host = f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.topo.Connect(f.at(f.root, 1), f.at(f.sw, 1))
	f.topo.Connect(f.at(f.sw, 2), f.at(f.host, 1))
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.tree = tree.New(f, &f.topo)
	f.tree.Extend(f.topo.NumNodes())
	f.tree.Add(f.root, topo.None)
	f.tree.Add(f.sw, f.at(f.root, 1))
	f.tree.Add(f.host, f.at(f.sw, 2))
	for _, id := range []topo.NodeID{f.root, f.sw, f.host} {
		f.nodes[id] = new(failures.Node)
	}
	for p := range topo.PortID(f.topo.NumPorts()) {
		f.pause[p] = new(time.Duration)
	}
	f.list = failures.New(&failures.Parts{
		Fabric: f, Actions: f, Keys: keyring{f}, Law: f, Health: f, Topo: &f.topo, Tree: f.tree, Queue: &f.queue,
	}, limits)
	return f
}

func (f *fabric) at(id topo.NodeID, num ib.PortNum) topo.PortID { return f.topo.PortOf(id, num) }
func (f *fabric) note(format string, args ...any) {
	f.did = append(f.did, fmt.Sprintf(format, args...))
}

func (f *fabric) Now() time.Time                             { return f.now }
func (f *fabric) Root() (topo.NodeID, topo.PortID)           { return f.root, f.at(f.root, 0) }
func (f *fabric) IsAlive(topo.NodeID) bool                   { return !f.gone }
func (f *fabric) IsSilent(id topo.NodeID) bool               { return f.silent[id] }
func (f *fabric) Node(id topo.NodeID) *failures.Node         { return f.nodes[id] }
func (f *fabric) Entry(work.Ref) topo.PortID                 { return f.entry }
func (f *fabric) IsContested(topo.PortID) bool               { return f.moved }
func (f *fabric) ManagerTries(work.Request) int              { return 1 }
func (f *fabric) MayRefuse(topo.PortID) bool                 { return f.refuse }
func (f *fabric) Rerouted(topo.NodeID, topo.PortID)          {}
func (f *fabric) Drop(topo.NodeID)                           {}
func (f *fabric) Lost(work.Request)                          {}
func (f *fabric) Unanswered(r work.Request)                  { f.note("unanswered %d", r.Ref.Class) }
func (f *fabric) Refuse(topo.PortID)                         { f.note("refuse") }
func (f *fabric) Silence(id topo.NodeID)                     { f.silent[id] = true; f.note("silence") }
func (f *fabric) Silenced(topo.NodeID)                       { f.note("silenced") }
func (f *fabric) Return(id topo.NodeID)                      { f.silent[id] = false; f.note("return") }
func (f *fabric) ReportDead(topo.PortID)                     { f.note("dead") }
func (f *fabric) ConvictsSilent(topo.PortID, time.Time) bool { return f.guilty }
func (f *fabric) Wavered(topo.PortID)                        {}
func (f *fabric) Acquit(topo.PortID)                         {}

func (f *fabric) Port(p topo.PortID) failures.Port {
	return failures.Port{Pause: f.pause[p], Verify: &f.verify, Num: f.topo.Port(p).Num, IsUp: !f.down}
}

func (f *fabric) After(d time.Duration, a work.Alarm, _ work.Ref) {
	f.pauses = append(f.pauses, d)
	if a == work.Near {
		f.note("near")
	}
}

func (f *fabric) Unlink(p topo.PortID) {
	f.note("unlink")
	f.topo.Disconnect(p)
}

func (f *fabric) ReportBad(node ib.GUID, num ib.PortNum, request, reason string) {
	f.note("bad %v port %d: %s: %s", node, num, request, reason)
}

func (f *fabric) StrikeNode(id topo.NodeID, c health.Condition) { f.note("strike node %d: %v", id, c) }

func (f *fabric) StrikePort(_ topo.PortID, g ib.GUID, c health.Condition) {
	f.note("strike port of %v: %v", g, c)
}

// keyring is the fabric as it knows keys.
type keyring struct{ *fabric }

func (k keyring) ProbeTries(work.Ref) int { return limits.Tries }
func (k keyring) Unanswered(topo.PortID)  {}

func (k keyring) TriesNext(work.Request) bool {
	k.fabric.keys--
	return k.fabric.keys >= 0
}

// expect compares what was done since the last call.
func (f *fabric) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.did, want) {
		t.Errorf("did %q, want %q", f.did, want)
	}
	f.did = nil
}

// waits compares the pauses that began since the last call.
func (f *fabric) waits(t *testing.T, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(f.pauses, want) {
		t.Errorf("pauses %v, want %v", f.pauses, want)
	}
	f.pauses = nil
}

// marked takes all work out of the queue and reports whether some is among it.
func (f *fabric) marked(x work.Ref) (found bool) {
	for {
		got, ok := f.queue.Pop()
		if !ok {
			return found
		}
		f.queue.Unmark(got)
		found = found || got == x
	}
}

// lose has a request fail as often as it is tried at most.
func (f *fabric) lose(r *work.Request) {
	for range limits.Tries {
		f.list.Failed(r, false)
	}
}

// infoOf returns a request for PortInfo of the first port of a node.
func (f *fabric) infoOf(id topo.NodeID) *work.Request {
	return &work.Request{Ref: work.OnPort(work.Info, f.at(id, 1)), Node: id, Method: mad.MethodGet, Attr: mad.AttrPortInfo}
}

// TestSilence checks that a node that answers nothing falls silent after some tries, is asked ever more rarely, and returns.
func TestSilence(t *testing.T) {
	f := newFabric()
	r := f.infoOf(f.sw)
	f.list.Failed(r, false)
	if !f.marked(r.Ref) || f.list.Tries(r.Ref) != 1 {
		t.Error("a lost request is not sent again")
	}
	f.expect(t)
	f.list.Failed(r, false)
	if !f.marked(work.OnPort(work.Info, f.at(f.root, 1))) {
		t.Error("the last link of the way is not read")
	}
	f.list.Failed(r, false)
	f.expect(t, "silence", fmt.Sprintf("strike node %d: unresponsive", f.sw), "silenced")
	f.waits(t, time.Second)
	if f.list.Len() != 0 {
		t.Error("work on a silent node is not forgotten")
	}
	f.lose(r)
	f.expect(t)
	f.pauses = nil
	f.list.Heard(f.sw)
	f.list.Heard(f.sw)
	f.expect(t, "return")
	f.lose(f.infoOf(f.sw))
	f.waits(t, 2*time.Second)
	f.list.Heard(f.sw)
	f.now = f.now.Add(9 * time.Second)
	f.lose(f.infoOf(f.sw))
	f.waits(t, time.Second)
	f.did, f.gone = nil, true
	f.lose(f.infoOf(f.host))
	f.expect(t)
}

// TestRootFallsSilent checks that the node we are attached to is asked again over no hop.
func TestRootFallsSilent(t *testing.T) {
	f := newFabric()
	f.lose(f.infoOf(f.root))
	f.expect(t, "silence", fmt.Sprintf("strike node %d: unresponsive", f.root), "silenced")
	f.waits(t, limits.Min)
}

// TestUndelivered checks that a request that was not delivered is sent again after ever longer pauses.
func TestUndelivered(t *testing.T) {
	f := newFabric()
	r := f.infoOf(f.sw)
	f.list.Failed(r, true)
	f.list.Failed(r, true)
	f.waits(t, 4*failures.NearRetry, 16*failures.NearRetry)
	f.expect(t, "near", "near")
}

// TestLiving checks that a node that answers other requests is asked more often, and that the work is left then.
func TestLiving(t *testing.T) {
	f := newFabric()
	r := f.infoOf(f.sw)
	f.list.Failed(r, false)
	f.list.Heard(f.sw)
	for range 4*limits.Tries - 2 {
		f.list.Failed(r, false)
	}
	f.expect(t)
	want := []string{fmt.Sprintf("strike node %d: unresponsive", f.sw), fmt.Sprintf("bad %v port 1: Get PortInfo: no answer, although it answers other requests", ib.GUID(0x11))}
	f.list.Failed(r, false)
	f.expect(t, want...)
	f.waits(t, time.Second)
	for range 4 {
		f.list.Refused(r, "")
	}
	f.waits(t, 2*time.Second, 4*time.Second, 8*time.Second, 8*time.Second)
	if !f.list.IsPaused(r.Ref) || f.list.Tries(r.Ref) != 0 {
		t.Error("the work is not left")
	}
	f.list.Spoke(r, mad.StatusInvalidField)
	if !f.list.IsPaused(r.Ref) {
		t.Error("an error makes the pauses short again")
	}
	if f.list.Spoke(r, mad.StatusOK); f.list.IsPaused(r.Ref) {
		t.Error("an answer does not make the pauses short again")
	}
}

// TestRefused checks which device an error is recorded of.
func TestRefused(t *testing.T) {
	f := newFabric()
	set := &work.Request{Ref: work.OnNode(work.Switch, f.sw), Node: f.sw, Method: mad.MethodSet, Attr: mad.AttrSwitchInfo}
	f.list.Refused(set, "no")
	f.expect(t, fmt.Sprintf("strike node %d: set-errors", f.sw), fmt.Sprintf("bad %v port 0: Set SwitchInfo: no", ib.GUID(0x11)))
	probe := &work.Request{Ref: work.OnPort(work.Probe, f.at(f.sw, 2)), Node: topo.None, Method: mad.MethodGet, Attr: mad.AttrNodeInfo}
	f.list.Refused(probe, "no")
	f.expect(t, fmt.Sprintf("strike port of %v: illegal-answers", ib.GUID(0)),
		fmt.Sprintf("bad %v port 2: Get NodeInfo: behind %v: no", ib.GUID(0), ib.Place{Switch: 0x11, Port: 2}))
	f.entry = f.at(f.sw, 2)
	f.list.Refused(f.infoOf(f.host), "no")
	f.expect(t, fmt.Sprintf("strike port of %v: illegal-answers", ib.GUID(0x20)), fmt.Sprintf("bad %v port 1: Get PortInfo: no", ib.GUID(0x20)))
}

// TestDeadEnd checks that a silent port of an adapter which was entered by itself loses its cable alone, unless it refuses.
func TestDeadEnd(t *testing.T) {
	f := newFabric()
	f.entry, f.refuse = f.at(f.sw, 2), true
	r := f.infoOf(f.host)
	f.lose(r)
	f.expect(t, "refuse", "dead")
	f.waits(t, time.Second)
	f.list.Forget(r.Ref)
	f.refuse = false
	*f.pause[f.entry] = 2 * time.Second
	f.lose(r)
	f.expect(t, "unlink", "dead")
	f.waits(t, 4*time.Second)
}

// TestNextKey checks that a device is asked under its next key before it falls silent.
func TestNextKey(t *testing.T) {
	f := newFabric()
	f.keys = 1
	r := f.infoOf(f.sw)
	f.lose(r)
	f.expect(t)
	if !f.marked(r.Ref) || f.list.Tries(r.Ref) != 0 {
		t.Error("the request is not sent under the next key")
	}
	f.lose(r)
	f.expect(t, "silence", fmt.Sprintf("strike node %d: unresponsive", f.sw), "silenced")
}

// TestUnanswered checks which requests may stay unanswered.
func TestUnanswered(t *testing.T) {
	f := newFabric()
	for _, class := range []work.Class{work.Vendor, work.Notice, work.SMInfo} {
		f.lose(&work.Request{Ref: work.OnPort(class, f.at(f.host, 1)), Node: f.host})
		if len(f.did) == 0 || f.did[0] != fmt.Sprintf("unanswered %d", class) || f.silent[f.host] {
			t.Errorf("class %d: did %v", class, f.did)
		}
		f.did = nil
	}
}

// TestNoProbe checks how long a link behind which no device answers is left alone.
func TestNoProbe(t *testing.T) {
	f := newFabric()
	p := f.at(f.sw, 2)
	r := &work.Request{Ref: work.OnPort(work.Probe, p), Node: topo.None}
	f.lose(r)
	f.waits(t, time.Second)
	f.lose(r)
	f.waits(t, 2*time.Second)
	f.expect(t)
	f.moved = true
	f.lose(r)
	f.expect(t, "unlink", "dead")
	f.waits(t, 4*time.Second)
	f.guilty = true
	f.lose(r)
	f.guilty, f.down = false, true
	f.lose(r)
	f.waits(t)
	f.lose(&work.Request{Ref: work.OnNode(work.Root, 0), Node: topo.None})
	f.waits(t, limits.Min)
	f.expect(t)
}
