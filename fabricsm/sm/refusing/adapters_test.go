package refusing_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/refusing"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

const hosts = 6

// fabric is a switch with a host on each of six ports.
type fabric struct {
	topo     topo.Builder
	queue    work.Queue
	health   *health.Records
	adapters refusing.Adapters
	now      time.Time
	sw       topo.NodeID
	hosts    [hosts]topo.NodeID
	ports    map[topo.PortID]*refusing.Port
	do       keys.Do
	silent   map[topo.NodeID]bool
	strange  bool // it is not proven where devices are
	own      bool // all ports are protected

	did      []string
	refused  []refusing.Refused
	problems map[fault.Key]bool
}

func newFabric() *fabric {
	f := &fabric{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ports: make(map[topo.PortID]*refusing.Port), do: keys.Stranded,
		silent: make(map[topo.NodeID]bool), problems: make(map[fault.Key]bool),
	}
	f.sw = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: hosts})
	for i := range f.hosts {
		f.hosts[i] = f.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + i), Type: ib.NodeCA, NumPorts: 1})
		p := f.host(i)
		f.topo.Connect(f.at(i), p)
		tp := f.topo.Port(p)
		tp.GUID = ib.GUID(0x30 + i)
		f.topo.SetPort(p, tp)
	}
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	for p := range topo.PortID(f.topo.NumPorts()) {
		f.ports[p] = &refusing.Port{Info: &mad.PortInfo{PortState: ib.PortActive, LID: 5}, IsRead: true, HasObeyed: true}
	}
	config, faults := &health.Config{}, fault.New()
	config.SetDefaults()
	f.health = health.New(records{f}, config, &faults)
	f.adapters = refusing.New(&refusing.Parts{Fabric: f, Actions: f, Keys: f, Topo: &f.topo, Queue: &f.queue, Health: f.health}, true)
	return f
}

// host returns the port of a host, and at the switch port in front of it.
func (f *fabric) host(i int) topo.PortID { return f.topo.PortOf(f.hosts[i], 1) }
func (f *fabric) at(i int) topo.PortID   { return f.topo.PortOf(f.sw, ib.PortNum(1+i)) }

func (f *fabric) Now() time.Time                   { return f.now }
func (f *fabric) Port(p topo.PortID) refusing.Port { return *f.ports[p] }
func (f *fabric) IsAlive(topo.NodeID) bool         { return true }
func (f *fabric) IsSilent(id topo.NodeID) bool     { return f.silent[id] }
func (f *fabric) IsAdapter(p topo.PortID) bool     { return f.topo.IsEndPort(p) }
func (f *fabric) IsAtPlace(topo.PortID) bool       { return !f.strange }
func (f *fabric) IsWriting() bool                  { return true }
func (f *fabric) IsProtected(topo.PortID) bool     { return f.own }
func (f *fabric) IsPaused(work.Ref) bool           { return false }
func (f *fabric) IsOn() bool                       { return true }
func (f *fabric) IsReleasing() bool                { return false }
func (f *fabric) Do(topo.PortID) (keys.Do, bool)   { return f.do, true }

func (f *fabric) PortByGUID(g ib.GUID) (topo.PortID, bool) {
	if i := int(g) - 0x30; i >= 0 && i < hosts {
		return f.host(i), true
	}
	return 0, false
}

func (f *fabric) Unlink(topo.PortID)             { f.did = append(f.did, "unlink") }
func (f *fabric) Shut(topo.PortID)               { f.did = append(f.did, "shut") }
func (f *fabric) Doubt(topo.PortID)              { f.did = append(f.did, "doubt") }
func (f *fabric) ReadPort(topo.PortID)           { f.did = append(f.did, "read") }
func (f *fabric) AskLater(time.Duration)         { f.did = append(f.did, "ask") }
func (f *fabric) NoteWrite(topo.PortID, ib.LID)  { f.did = append(f.did, "write") }
func (f *fabric) ReportObeyed(ib.GUID, ib.Place) { f.did = append(f.did, "obeyed") }
func (f *fabric) ShowSoon()                      { f.did = append(f.did, "show") }
func (f *fabric) Solved(k fault.Key)             { delete(f.problems, k) }

func (f *fabric) ReportRefused(r refusing.Refused) {
	f.refused = append(f.refused, r)
	f.problems[fault.Key{Kind: fault.KeyRefused, Place: r.Place}] = true
}

// records is the fabric as health knows it.
type records struct{ *fabric }

func (r records) IsProtected(ib.Place) bool     { return false }
func (r records) Apply(ib.Place, health.Action) { r.did = append(r.did, "isolate") }
func (r records) Report(fault.Event)            {}
func (r records) Save(health.Saved)             {}
func (r records) TickLater(time.Duration)       {}

// expect compares what was done since the last call.
func (f *fabric) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.did, want) {
		t.Errorf("did %q, want %q", f.did, want)
	}
	f.did = nil
}

// TestShownKey checks that an adapter which shows another key is closed, asked again, and opened.
func TestShownKey(t *testing.T) {
	f := newFabric()
	f.adapters.Refuses(f.host(0), true)
	f.expect(t, "show", "write", "ask", "unlink", "shut")
	if want := (refusing.Refused{GUID: 0x30, Place: ib.Place{Switch: 0x10, Port: 1}, LID: 5}); len(f.refused) != 1 || f.refused[0] != want {
		t.Errorf("reported %+v, want %+v", f.refused, want)
	}
	if !f.adapters.IsHeld(f.at(0)) {
		t.Error("its link may leave Init")
	}
	f.adapters.KeepClosed(f.at(0))
	f.adapters.KeepClosed(f.at(1))
	f.expect(t, "shut")
	f.adapters.AskClosed()
	f.expect(t, "doubt", "read", "ask")
	f.topo.Disconnect(f.at(0))
	f.adapters.AskClosed()
	f.expect(t, "ask")
	f.topo.Connect(f.at(0), f.host(0))
	f.do = keys.Nothing
	f.adapters.Reopen(f.host(0))
	f.adapters.Reopen(f.host(0))
	f.expect(t, "obeyed")
	if len(f.problems) != 0 || f.adapters.IsHeld(f.at(0)) {
		t.Errorf("problems %v", f.problems)
	}
	f.adapters.AskClosed()
	f.expect(t)
}

// TestCount checks that an adapter that answers nothing is closed when it has sent packets twice, and only then.
func TestCount(t *testing.T) {
	f := newFabric()
	f.adapters.Refuses(f.host(0), false)
	f.expect(t, "show")
	if l := f.adapters.List(); len(l) != 1 || l[0].GUID != 0x30 || l[0].Switch != f.topo.PortOf(f.sw, 0) {
		t.Fatalf("listed %+v", l)
	}
	for _, packets := range []uint64{100, 100, 110, 3, 3, 4} {
		f.adapters.Count(0x30, packets)
	}
	f.adapters.Count(0x31, 7)
	f.adapters.Count(0x99, 7)
	f.expect(t)
	f.adapters.Count(0x30, 9)
	f.expect(t, "write", "ask", "unlink", "shut")
	if len(f.refused) != 1 || f.refused[0].Packets != 6 || len(f.adapters.List()) != 0 {
		t.Errorf("reported %+v", f.refused)
	}
	f.adapters.Refuses(f.host(1), false)
	f.do, f.did = keys.Nothing, nil
	f.adapters.Count(0x31, 7)
	f.expect(t, "show")
	if len(f.adapters.List()) != 0 {
		t.Error("an adapter that answers is listed")
	}
}

// TestMayRefuse checks behind which ports nothing is closed.
func TestMayRefuse(t *testing.T) {
	for name, change := range map[string]func(*fabric){
		"never obeyed":    func(f *fabric) { f.ports[f.host(0)].HasObeyed = false },
		"unread port":     func(f *fabric) { f.ports[f.at(0)].IsRead = false },
		"idle link":       func(f *fabric) { f.ports[f.at(0)].Info.PortState = ib.PortInit },
		"silent switch":   func(f *fabric) { f.silent[f.sw] = true },
		"protected port":  func(f *fabric) { f.own = true },
		"unproven device": func(f *fabric) { f.strange = true },
	} {
		f := newFabric()
		change(f)
		if f.adapters.Refuses(f.host(0), true); len(f.did) != 0 || f.adapters.MayRefuse(f.host(0)) {
			t.Errorf("%s: did %q", name, f.did)
		}
	}
}

// TestMany checks that at most four ports are closed in ten minutes, and that the next stays open.
func TestMany(t *testing.T) {
	f := newFabric()
	for i := range hosts {
		f.adapters.Refuses(f.host(i), true)
	}
	for i, r := range f.refused {
		if r.Open != (i >= refusing.MaxClosed) {
			t.Errorf("port %d: left open %v", i, r.Open)
		}
	}
	f.did = nil
	f.adapters.Obeys(f.host(4))
	f.expect(t, "show")
	f.now = f.now.Add(refusing.Window)
	f.adapters.Refuses(f.host(4), true)
	f.expect(t, "show", "write", "unlink", "shut")
}

// TestOften checks that a port that is closed a third time is isolated as unhealthy.
func TestOften(t *testing.T) {
	f := newFabric()
	for range 3 {
		f.did = nil
		f.adapters.Refuses(f.host(0), true)
		f.adapters.Reopen(f.host(0))
	}
	f.expect(t, "show", "write", "isolate", "obeyed")
	if sick := f.health.Sick(); len(sick) != 1 || f.health.WorstAt(sick[0]) != health.RefusesKey {
		t.Errorf("sick places %v", sick)
	}
}

// TestLinkDown checks that a port whose cable is pulled is closed no longer.
func TestLinkDown(t *testing.T) {
	f := newFabric()
	f.adapters.Refuses(f.host(0), true)
	f.do = keys.Nothing
	f.now = f.now.Add(10 * time.Second)
	if f.adapters.LinkDown(f.at(0)); !f.adapters.IsHeld(f.at(0)) {
		t.Error("the port is open although its link may be down from being closed")
	}
	f.now = f.now.Add(1)
	if f.adapters.LinkDown(f.at(0)); f.adapters.IsHeld(f.at(0)) || len(f.problems) != 0 {
		t.Error("the port is closed, or reported")
	}
}
