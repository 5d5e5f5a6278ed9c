package traps_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/traps"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

const (
	ownLID    ib.LID = 1
	switchLID ib.LID = 2
	hostLID   ib.LID = 3
)

// fabric is our own adapter and a host, on two ports of a switch.
type fabric struct {
	topo    topo.Builder
	now     time.Time
	root    topo.NodeID
	sw      topo.NodeID
	host    topo.NodeID
	lids    map[ib.LID]topo.PortID
	looks   map[topo.NodeID]*traps.Look
	gone    bool // no node is part of the fabric
	hidden  bool // no key can be shown
	judge   traps.Judge
	health  *health.Records
	tally   settling.Tally
	answers []mad.MAD
	did     []string
	waits   []time.Duration
}

func newFabric() *fabric {
	f := &fabric{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), looks: make(map[topo.NodeID]*traps.Look)}
	f.root = f.topo.AddNode(topo.Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 1})
	f.sw = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	f.host = f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	own, p0, hp := f.topo.PortOf(f.root, 1), f.topo.PortOf(f.sw, 0), f.topo.PortOf(f.host, 1)
	f.topo.Connect(f.topo.PortOf(f.sw, 1), hp)
	f.topo.Connect(f.topo.PortOf(f.sw, 2), own)
	for p, guid := range map[topo.PortID]ib.GUID{own: 0x31, p0: 0x10, hp: 0x21} {
		tp := f.topo.Port(p)
		tp.GUID = guid
		f.topo.SetPort(p, tp)
	}
	f.lids = map[ib.LID]topo.PortID{ownLID: own, switchLID: p0, hostLID: hp}
	for _, id := range []topo.NodeID{f.root, f.sw, f.host} {
		f.looks[id] = new(traps.Look)
	}
	config, faults := &health.Config{}, fault.New()
	config.SetDefaults()
	f.health = health.New(records{f}, config, &faults)
	reports := violation.New(claims{f}, &f.topo, violation.Options{
		Config: violation.Config{Rows: 64, RowsPerSource: 16, TellEvery: time.Second, ChecksPerSecond: 4, Quiet: time.Minute}, PortGUID: 0x31, Controls: controls.Strict{},
	})
	f.judge = traps.New(&traps.Parts{Fabric: f, Actions: f, Topo: &f.topo, Reports: reports, Health: f.health, Tally: &f.tally}, traps.Options{Hold: hold, Controls: controls.Strict{}})
	return f
}

func (f *fabric) Now() time.Time                   { return f.now }
func (f *fabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.lids[ownLID] }
func (f *fabric) OwnLID() ib.LID                   { return ownLID }
func (f *fabric) IsAlive(topo.NodeID) bool         { return !f.gone }
func (f *fabric) Look(id topo.NodeID) *traps.Look  { return f.looks[id] }

func (f *fabric) ByLID(l ib.LID) topo.PortID {
	if p, ok := f.lids[l]; ok {
		return p
	}
	return topo.None
}

func (f *fabric) SuspectPlace(id topo.NodeID) ib.Place { return ib.Place{Switch: f.topo.NodeGUID(id)} }

func (f *fabric) KeyForAnswer(topo.PortID) (ib.MKey, bool) { return ib.NewMKey(7), !f.hidden }

func (f *fabric) Answer(_ ib.LID, _ uint32, m *mad.MAD) *mad.MAD {
	f.answers = append(f.answers, *m)
	return &f.answers[len(f.answers)-1]
}

func (f *fabric) LookLater(_ topo.NodeID, d time.Duration) { f.waits = append(f.waits, d) }
func (f *fabric) ReadSwitch(topo.NodeID)                   { f.did = append(f.did, "switch") }
func (f *fabric) Describe(topo.NodeID)                     { f.did = append(f.did, "describe") }
func (f *fabric) ReadPort(topo.PortID)                     { f.did = append(f.did, "port") }
func (f *fabric) Identify(topo.PortID)                     { f.did = append(f.did, "identify") }
func (f *fabric) AskManager(topo.PortID)                   { f.did = append(f.did, "manager") }

// records is the fabric as health knows it.
type records struct{ *fabric }

func (r records) IsProtected(ib.Place) bool     { return false }
func (r records) Apply(ib.Place, health.Action) {}
func (r records) Report(fault.Event)            {}
func (r records) Save(health.Saved)             {}
func (r records) TickLater(time.Duration)       {}

// claims is the fabric as violation knows it.
type claims struct{ *fabric }

func (r claims) Report(violation.Event)                {}
func (r claims) ReportLater(time.Duration)             {}
func (r claims) CheckLater(topo.PortID, time.Duration) {}
func (r claims) ReadCounters(topo.PortID)              {}
func (r claims) ReadNotices(topo.PortID)               {}
func (r claims) CanAsk(topo.PortID) bool               { return true }
func (r claims) Own() topo.PortID                      { return r.lids[ownLID] }
func (r claims) PlaceOf(p topo.PortID) ib.Place        { return r.topo.PlaceOf(p) }

func (r claims) LIDOf(p topo.PortID) ib.LID {
	for l, at := range r.lids {
		if at == p {
			return l
		}
	}
	return 0
}

// done returns what was done since the last call.
func (f *fabric) done() []string {
	did := f.did
	f.did = nil
	return did
}

// trap returns a trap with a notice.
func trap[T any](t *testing.T, n *T) *mad.MAD {
	t.Helper()
	m := &mad.MAD{}
	m.SetHeader(mad.Header{Class: mad.ClassSubn, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: 5})
	if err := mad.Encode(m.Data(), n); err != nil {
		t.Fatal(err)
	}
	return m
}

// head returns the header of a notice.
func head(num mad.TrapNum) *mad.NoticeHeader {
	return &mad.NoticeHeader{IsGeneric: true, TrapNumber: num}
}

// TestTakeOfSwitch checks that a switch is read at its first trap, that the next one waits, and that it is repressed.
func TestTakeOfSwitch(t *testing.T) {
	f := newFabric()
	m := trap(t, head(mad.TrapLinkStateChange))
	if !f.judge.Take(traps.Packet{MAD: m, LID: switchLID}) || !slices.Equal(f.done(), []string{"switch"}) {
		t.Fatal("a switch that sends a trap is not read")
	}
	if len(f.answers) != 1 || f.answers[0].Method() != mad.MethodTrapRepress || f.answers[0].TID() != 5 || !f.answers[0].MKey().Equal(ib.NewMKey(7)) {
		t.Errorf("answers %v", f.answers)
	}
	f.now = f.now.Add(4 * time.Millisecond)
	for range 2 {
		f.judge.Take(traps.Packet{MAD: m, LID: switchLID})
	}
	if did := f.done(); len(did) != 0 || !slices.Equal(f.waits, []time.Duration{6 * time.Millisecond}) {
		t.Errorf("two more traps: did %v, waits %v", did, f.waits)
	}
	f.now = f.now.Add(6 * time.Millisecond)
	if f.judge.LookDue(f.sw); !slices.Equal(f.done(), []string{"switch"}) {
		t.Error("the look that waited is not done")
	}
	f.gone = true
	if f.judge.LookDue(f.sw); len(f.done()) != 0 {
		t.Error("a node that is gone is looked at")
	}
	if f.tally.Traps != 3 {
		t.Errorf("%d traps are counted, want 3", f.tally.Traps)
	}
}

// TestTakeOfHost checks that a trap of a host has it read again, and that all hosts share one allowance.
func TestTakeOfHost(t *testing.T) {
	f := newFabric()
	m := trap(t, head(mad.TrapLocalChange))
	f.judge.Take(traps.Packet{MAD: m, LID: hostLID})
	if did := f.done(); !slices.Equal(did, []string{"manager", "describe", "port", "identify"}) {
		t.Errorf("did %v", did)
	}
	f.now = f.now.Add(hold)
	f.judge.Take(traps.Packet{MAD: m, LID: ownLID})
	if did := f.done(); !slices.Equal(did, []string{"manager"}) || !slices.Equal(f.waits, []time.Duration{violation.CheckPause}) {
		t.Errorf("beyond the allowance: did %v, waits %v", did, f.waits)
	}
	f.now = f.now.Add(time.Second)
	if f.judge.LookDue(f.root); !slices.Equal(f.done(), []string{"describe", "port", "identify"}) {
		t.Error("the look that waited is not done")
	}
}

// TestTakeRefuses checks which traps are not answered, or have no effect.
func TestTakeRefuses(t *testing.T) {
	f := newFabric()
	m := trap(t, head(mad.TrapLinkStateChange))
	if f.judge.Take(traps.Packet{MAD: m, LID: ib.PermissiveLID}) {
		t.Error("a trap without a source is taken")
	}
	if !f.judge.Take(traps.Packet{MAD: m, LID: 99}) || len(f.done()) != 0 {
		t.Error("a trap of a LID that no port has is not taken, or has something read")
	}
	if !f.judge.Take(traps.Packet{MAD: m, LID: hostLID}) || len(f.done()) != 0 {
		t.Error("a host that sends the trap of a switch is read")
	}
	f.answers, f.hidden = nil, true
	if f.judge.Take(traps.Packet{MAD: m, LID: switchLID}); len(f.answers) != 0 {
		t.Error("a trap is answered without the key")
	}
	f.hidden = false
	about := trap(t, &mad.Trap256{NoticeHeader: *head(mad.TrapBadMKey), LID: ownLID, Method: mad.MethodTrapRepress})
	if f.judge.Take(traps.Packet{MAD: about, LID: hostLID}); len(f.answers) != 0 {
		t.Error("a trap about an answer of ours is answered")
	}
}

// TestNoisySwitch checks that only the traps of a switch that prove false are counted against it.
func TestNoisySwitch(t *testing.T) {
	for _, isTrue := range []bool{true, false} {
		f := newFabric()
		m := trap(t, head(mad.TrapLinkStateChange))
		for range 700 {
			f.judge.Take(traps.Packet{MAD: m, LID: switchLID})
			f.now = f.now.Add(50 * time.Millisecond)
			if f.looks[f.sw].IsDue() {
				f.judge.LookDue(f.sw)
			}
			if isTrue {
				f.looks[f.sw].Prove()
			}
		}
		if got := len(f.health.Sick()) > 0; got == isTrue {
			t.Errorf("true %v: the switch is noisy: %v", isTrue, got)
		}
	}
}

// FuzzTake sends the judge any MAD from anywhere, and checks how many answers it sends.
func FuzzTake(f *testing.F) {
	var m mad.MAD
	m.SetHeader(mad.Header{Class: mad.ClassSubn, Method: mad.MethodTrap, Attr: mad.AttrNotice})
	f.Add(m[:], uint16(hostLID), uint32(0))
	m.SetHeader(mad.Header{Class: mad.ClassCongestionControl, Method: mad.MethodTrap, Attr: mad.AttrNotice})
	f.Add(m[:], uint16(switchLID), uint32(1))
	f.Fuzz(func(t *testing.T, data []byte, lid uint16, qp uint32) {
		fab := newFabric()
		p := traps.Packet{MAD: &mad.MAD{}, LID: ib.LID(lid), QP: qp}
		copy(p.MAD[:], data)
		kind := traps.KindOf(qp, p.MAD)
		if (kind == traps.OfClass) != (qp == 1) && kind != traps.Unwanted {
			t.Fatalf("a MAD of queue pair %d is of kind %d", qp, kind)
		}
		for range 3 {
			fab.judge.Take(p)
			fab.judge.TakeOfClass(p)
			fab.now = fab.now.Add(time.Millisecond)
		}
		if len(fab.answers) > 6 {
			t.Errorf("%d answers to six MADs", len(fab.answers))
		}
	})
}
