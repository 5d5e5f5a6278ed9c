package rerouting

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with two hosts, whose LIDs are 1 to 3.
type fabric struct {
	topo      topo.Builder
	routing   Routing
	now       time.Time
	standby   bool
	finding   bool
	waiting   bool
	alone     bool
	awaited   time.Time // since when an end port is
	disturbed int
	looks     []time.Duration
}

func (f *fabric) Now() time.Time            { return f.now }
func (f *fabric) IsWriting() bool           { return !f.standby }
func (f *fabric) IsFinding() bool           { return f.finding }
func (f *fabric) MayFindMore() bool         { return f.finding || f.waiting }
func (f *fabric) IsAlone() bool             { return f.alone }
func (f *fabric) LID(p topo.PortID) ib.LID  { return f.topo.Port(p).LID }
func (f *fabric) HasKnownLID(ib.GUID) bool  { return true }
func (f *fabric) Disturb()                  { f.disturbed++ }
func (f *fabric) LookLater(d time.Duration) { f.looks = append(f.looks, d) }

func (f *fabric) IsAwaited(_ topo.PortID, within time.Duration) bool {
	return !f.awaited.IsZero() && f.now.Sub(f.awaited) <= within
}

func newFabric() *fabric {
	f := &fabric{now: time.Unix(1000, 0)}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2, LinearFDBCap: 1024})
	f.set(f.topo.PortOf(sw, 0), 0x10, 3)
	for i := range 2 {
		h := f.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + i), Type: ib.NodeCA, NumPorts: 1})
		p, sp := f.topo.PortOf(h, 1), f.topo.PortOf(sw, ib.PortNum(i+1))
		f.topo.Connect(sp, p)
		f.set(p, ib.GUID(0x20+i), ib.LID(i+1))
		f.set(sp, 0, 0)
	}
	f.routing = New(f, &f.topo)
	return f
}

func (f *fabric) set(p topo.PortID, g ib.GUID, l ib.LID) {
	tp := f.topo.Port(p)
	tp.GUID, tp.LID, tp.State = g, l, ib.PortActive
	f.topo.SetPort(p, tp)
}

func (f *fabric) host(i int) topo.PortID { return f.topo.PortOf(topo.NodeID(1+i), 1) }

// route has tables computed and put into force.
func (f *fabric) route(t *testing.T) Result {
	t.Helper()
	job, due := f.routing.Job([]route.Engine{minhop.Engine{}})
	if !due {
		t.Fatal("no job is due")
	}
	res := job.Run()
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	if !f.routing.End(&res) {
		t.Fatal("the result does not count")
	}
	if lids := f.routing.Take(&res); lids != 3 {
		t.Errorf("the tables lead to %d LIDs, want 3", lids)
	}
	return res
}

func TestTablesAreComputedWhenTheyAreNeeded(t *testing.T) {
	f := newFabric()
	if _, due := f.routing.Job(nil); due {
		t.Error("a job is due though nothing asked for tables")
	}
	f.routing.Begin()
	f.route(t)
	if !f.routing.IsDone() {
		t.Error("tables are in force and do not count as those of the present topology")
	}
	f.routing.WantFor(f.host(0))
	if f.routing.IsDue() {
		t.Error("a host at its place asks for new tables")
	}
	p := f.host(0)
	f.topo.Disconnect(p)
	f.topo.Connect(p, f.topo.PortOf(0, 1))
	f.set(p, 0x20, 9)
	f.routing.WantFor(p)
	if !f.routing.IsDue() || f.disturbed != 1 || len(f.looks) != 1 || f.looks[0] != wait {
		t.Errorf("a host with another LID: due %v, disturbed %d times, looks after %v; want new tables, once, after %v", f.routing.IsDue(), f.disturbed, f.looks, wait)
	}
}

func TestTablesWaitForDiscovery(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*fabric)
		most time.Duration // after which they wait no longer
	}{
		{"nothing", func(*fabric) {}, 0},
		{"nodes to be found", func(f *fabric) { f.finding = true }, wait},
		{"hosts that come back", func(f *fabric) { f.routing.CameBack(false); f.awaited = f.now }, returnFor + 1},
		{"a host that comes back, and work for a device without a known key", func(f *fabric) { f.routing.CameBack(false); f.waiting = true }, 0},
		{"a switch that comes back, and ports behind it that wait for a key", func(f *fabric) { f.routing.CameBack(true); f.waiting = true }, returnWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric()
			f.routing.Begin()
			f.route(t)
			f.routing.Want()
			tt.set(f)
			if tt.most > 0 {
				f.now = f.now.Add(tt.most - 1)
				if _, due := f.routing.Job(nil); due {
					t.Errorf("a job is due before %v", tt.most)
				}
				f.now = f.now.Add(1 + returnEvery)
			}
			if _, due := f.routing.Job(nil); !due {
				t.Errorf("no job is due after %v", tt.most)
			}
		})
	}
}

// TestTablesWaitWhileSwitchesComeBack: each switch that comes back has tables wait for what is behind it, but not without end.
func TestTablesWaitWhileSwitchesComeBack(t *testing.T) {
	f := newFabric()
	f.routing.Begin()
	f.route(t)
	f.routing.Want()
	f.waiting = true
	begin := f.now
	for range 100 {
		f.routing.CameBack(true)
		f.now = f.now.Add(returnWait - 1)
		if _, due := f.routing.Job([]route.Engine{minhop.Engine{}}); !due {
			continue
		}
		if took := f.now.Sub(begin); took < returnMost || took > returnMost+returnWait {
			t.Errorf("a job is due after %v of switches that come back, want %v", took, returnMost)
		}
		return
	}
	t.Error("no job is ever due while switches come back")
}

// TestNoTablesAlone: while the own port leads nowhere, the tables stay those that the switches have, and the next are made from
// them.
func TestNoTablesAlone(t *testing.T) {
	f := newFabric()
	f.routing.Begin()
	f.route(t)
	had := f.routing.Tables()
	f.routing.Want()
	f.alone = true
	for range 100 {
		f.now = f.now.Add(time.Second)
		if _, due := f.routing.Job([]route.Engine{minhop.Engine{}}); due {
			t.Fatalf("a job is due after %v while the own port leads nowhere", f.now.Sub(time.Unix(1000, 0)))
		}
	}
	f.alone = false
	job, due := f.routing.Job([]route.Engine{minhop.Engine{}})
	if !due || job.prev != had || f.routing.Tables() != had {
		t.Errorf("due %v, made from other tables %v, tables changed %v; want a job made from the tables there are", due, job.prev != had, f.routing.Tables() != had)
	}
}

func TestResultsFromBeforeAnotherRuledDoNotCount(t *testing.T) {
	f := newFabric()
	f.routing.Begin()
	job, _ := f.routing.Job([]route.Engine{minhop.Engine{}})
	f.routing.OtherRuled()
	res := job.Run()
	if f.routing.End(&res) || !f.routing.IsDue() {
		t.Error("a result counts that is from before another subnet manager ruled")
	}
	f.standby = true
	if _, due := f.routing.Job(nil); due {
		t.Error("a job is due while nothing may be written")
	}
}

func TestChangesDuringAJobAreFollowed(t *testing.T) {
	f := newFabric()
	f.routing.Begin()
	res := f.route(t)
	f.routing.Follow(res.Fabric)
	if f.routing.IsDue() {
		t.Error("new tables are wanted though the fabric is that of the snapshot")
	}
	f.set(f.host(1), 0x21, 7)
	f.routing.Follow(res.Fabric)
	if !f.routing.IsDue() {
		t.Error("no new tables are wanted for a host that got another LID")
	}
}

func TestWorkWaitsForTables(t *testing.T) {
	f := newFabric()
	var q work.Queue
	q.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	x := work.OnPort(work.Set, f.host(0))
	f.routing.Await(x)
	if n := f.routing.Waiting(); n != 1 {
		t.Errorf("%d pieces of work wait, want 1", n)
	}
	f.routing.Release(&q)
	if got, ok := q.Pop(); !ok || got != x || f.routing.Waiting() != 0 {
		t.Errorf("released %v, %v, and %d wait; want %v and none", got, ok, f.routing.Waiting(), x)
	}
}

// TestSlotsOfNodesThatWent: a node under ever new GUIDs does not use up ids.
func TestSlotsOfNodesThatWent(t *testing.T) {
	f := newFabric()
	f.routing.Begin()
	f.route(t)
	for i := range 3 * maxGone {
		id := f.topo.AddNode(topo.Node{GUID: ib.GUID(0x1000 + i), Type: ib.NodeCA, NumPorts: 1})
		f.topo.RemoveNode(id)
		f.routing.Gone(id)
	}
	if n := f.topo.NumNodes(); n > 2*maxGone {
		t.Errorf("%d nodes have a slot, want at most %d", n, 2*maxGone)
	}
}
