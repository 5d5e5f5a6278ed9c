package violation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with LID 1 and hosts at its ports 1 to 4 with LIDs 11 to 14. The first host is our own.
type fabric struct {
	t      *testing.T
	topo   topo.Builder
	log    *violation.Log
	now    time.Time
	sw     topo.PortID
	hosts  [4]topo.PortID
	asked  []topo.PortID // whose counters are to be read
	later  []topo.PortID // that are to be checked later
	events []violation.Event
}

func newFabric(t *testing.T, cfg violation.Config) *fabric {
	t.Helper()
	f := &fabric{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	sw := f.topo.AddNode(topo.Node{GUID: 0x100, Type: ib.NodeSwitch, NumPorts: 8})
	f.sw = f.topo.PortOf(sw, 0)
	f.topo.SetPort(f.sw, topo.Port{GUID: 0x100})
	for i := range f.hosts {
		id := f.topo.AddNode(topo.Node{GUID: ib.GUID(0x200 + i), Type: ib.NodeCA, NumPorts: 1})
		f.hosts[i] = f.topo.PortOf(id, 1)
		f.topo.SetPort(f.hosts[i], topo.Port{GUID: ib.GUID(0x200 + i)})
		f.topo.Connect(f.topo.PortOf(sw, ib.PortNum(i+1)), f.hosts[i])
	}
	f.log = violation.New(f, &f.topo, violation.Options{Config: cfg.WithDefaults(), PortGUID: 0x200, Controls: controls.Strict{}})
	return f
}

func (f *fabric) Now() time.Time                            { return f.now }
func (f *fabric) Own() topo.PortID                          { return f.hosts[0] }
func (f *fabric) CanAsk(topo.PortID) bool                   { return true }
func (f *fabric) ReadCounters(p topo.PortID)                { f.asked = append(f.asked, p) }
func (f *fabric) ReadNotices(topo.PortID)                   {}
func (f *fabric) CheckLater(p topo.PortID, _ time.Duration) { f.later = append(f.later, p) }
func (f *fabric) ReportLater(time.Duration)                 {}
func (f *fabric) Report(e violation.Event)                  { f.events = append(f.events, e) }
func (f *fabric) place(i int) ib.Place                      { return ib.Place{Switch: 0x100, Port: ib.PortNum(i + 1)} }

func (f *fabric) counters(mkey uint16) (was, is *mad.PortInfo) {
	return &mad.PortInfo{}, &mad.PortInfo{MKeyViolations: mkey}
}

func (f *fabric) ByLID(l ib.LID) topo.PortID {
	for i, p := range f.hosts {
		if l == ib.LID(11+i) {
			return p
		}
	}
	if l == 1 {
		return f.sw
	}
	return topo.None
}

func (f *fabric) LIDOf(p topo.PortID) ib.LID {
	for l := range ib.LID(20) {
		if f.ByLID(l) == p {
			return l
		}
	}
	return 0
}

func (f *fabric) PlaceOf(p topo.PortID) ib.Place {
	if far := f.topo.Port(p).Peer; f.topo.Node(f.topo.Port(p).Node).Type != ib.NodeSwitch && far != topo.None {
		p = far
	}
	if f.topo.Port(p).Num == 0 {
		return ib.Place{}
	}
	return ib.Place{Switch: 0x100, Port: f.topo.Port(p).Num}
}

// trap has a host report an SMP with a wrong M_Key that came from a LID.
func (f *fabric) trap(host int, source ib.LID, tid ib.TID) {
	f.t.Helper()
	n := mad.Trap256{NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapBadMKey}, LID: source, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo}
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: tid}, nil, ib.MKey{})
	if err := mad.Encode(m.Data(), &n); err != nil {
		f.t.Fatal(err)
	}
	f.log.Check(f.log.NoteTrap(&violation.Trap{MAD: &m, Head: &n.NoticeHeader, LID: ib.LID(11 + host), From: f.hosts[host]}))
}

// row returns the only row, as it is now.
func (f *fabric) row() violation.Violation {
	f.t.Helper()
	f.log.ReportDue()
	rows := f.log.Snapshot().Rows
	if len(rows) != 1 {
		f.t.Fatalf("%d rows, want 1: %+v", len(rows), rows)
	}
	return rows[0]
}

// TestVerdicts: a report is a claim until the counter of its device was read. The same trap again is a repetition.
func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		counted uint16
		want    violation.Verdict
	}{{"counted", 1, violation.Confirmed}, {"not counted", 0, violation.Refuted}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t, violation.Config{})
			f.trap(1, 13, 7)
			f.trap(1, 13, 7)
			r := f.row()
			if r.Kind != violation.BadMKey || r.Place != f.place(2) || r.ReporterPlace != f.place(1) || r.By != violation.ByLID {
				t.Errorf("row %+v", r)
			}
			if r.Verdict != violation.Claimed || r.Count != 1 || r.Repeats != 1 {
				t.Errorf("before the counter is read: %v, count %d, repeats %d", r.Verdict, r.Count, r.Repeats)
			}
			if d := cmp.Diff([]topo.PortID{f.hosts[1]}, f.asked); d != "" {
				t.Fatalf("counters that are read (-want +got):\n%s", d)
			}
			was, is := f.counters(2 * tt.counted) // both reports count: a repetition may be true
			f.log.RecordCounters(f.hosts[1], was, is, true)
			if r = f.row(); r.Verdict != tt.want || r.Counted != uint64(2*tt.counted) {
				t.Errorf("then: %v, counted %d, want %v", r.Verdict, r.Counted, tt.want)
			}
		})
	}
}

// TestForgetsPorts: the reports of a port that goes are not proven by the counters of the next one.
func TestForgetsPorts(t *testing.T) {
	f := newFabric(t, violation.Config{})
	f.trap(1, 13, 7)
	f.log.Forget(f.hosts[1])
	was, is := f.counters(1)
	f.log.RecordCounters(f.hosts[1], was, is, true)
	if r := f.row(); r.Verdict != violation.Claimed {
		t.Errorf("the row is %v", r.Verdict)
	}
}

// TestPacesChecks: reports beyond what may be checked wait.
func TestPacesChecks(t *testing.T) {
	f := newFabric(t, violation.Config{ChecksPerSecond: 4})
	for host := range 3 {
		f.trap(1+host, 1, ib.TID(host+1))
	}
	if len(f.asked) != 1 || len(f.later) != 2 {
		t.Fatalf("%d ports are asked, %d wait: want 1 and 2", len(f.asked), len(f.later))
	}
	f.now = f.now.Add(time.Second)
	f.log.CheckDue(f.later[0])
	if d := cmp.Diff([]topo.PortID{f.hosts[1], f.hosts[2]}, f.asked); d != "" {
		t.Errorf("ports asked (-want +got):\n%s", d)
	}
}

// TestKeyGuessingSequence: wrong keys that a device counts are reported at 10, 20, 50, ....
func TestKeyGuessingSequence(t *testing.T) {
	f := newFabric(t, violation.Config{})
	var got []uint64
	for i := range uint16(60) {
		f.log.RecordCounters(f.hosts[2], &mad.PortInfo{MKeyViolations: i}, &mad.PortInfo{MKeyViolations: i + 1}, true)
		f.now = f.now.Add(time.Second)
	}
	for _, e := range f.events {
		if g, ok := e.(*violation.KeyGuessing); ok && g.Kind == keys.MKey && g.Place == f.place(2) {
			got = append(got, g.Count)
		}
	}
	if d := cmp.Diff([]uint64{10, 20, 50}, got); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
}
