package fabric

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/store/storetest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

var (
	home = ib.Place{Switch: 0x10, Port: 1}
	away = ib.Place{Switch: 0x10, Port: 2}
	key  = records.Key{PKey: 5, GUID: 0xa1, Place: home}
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// newTestBook returns a book that knows one port of the inventory, cabled home, and a grant of it last changed at revision
// 100.
func newTestBook(withdrawn bool) *book {
	b := newBook(func() time.Time { return noon }, SightLimits{})
	b.grants = map[records.Key]grant{key: {withdrawn: withdrawn, modified: 100}}
	b.cables, b.hostOf = map[ib.GUID]ib.Place{}, map[string][]ib.GUID{}
	b.host("h", &inventory.Host{ID: "h", HCAs: []inventory.HCA{{NodeGUID: 0xa0, Ports: []inventory.Port{{Num: 1, GUID: 0xa1, Cable: home}}}}})
	return b
}

// seenAt returns a view of a switch with the port at a place, or without it.
func seenAt(at ib.Place, change func(*observed)) *observed {
	var b topo.Builder
	sw := b.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 4, PartitionEnforcementCap: 32})
	if !at.IsZero() {
		ca := b.AddNode(topo.Node{GUID: 0xa0, Type: ib.NodeCA, NumPorts: 1, PartitionCap: 64})
		end, port := b.PortOf(ca, 1), b.PortOf(sw, at.Port)
		b.Connect(end, port)
		for _, id := range []topo.PortID{end, port} {
			p := b.Port(id)
			p.State = ib.PortActive
			if id == end {
				p.GUID, p.LID = 0xa1, 7
			}
			b.SetPort(id, p)
		}
	}
	o := &observed{fabric: b.Freeze(), revision: 100, quiet: true, settled: true}
	o.pkeys = func(topo.PortID) ([]ib.PKey, bool) { return nil, true }
	if change != nil {
		change(o)
	}
	return o
}

// shutAt has a view show that the subnet manager acts on the health of a place.
func shutAt(s health.State) func(*observed) {
	return func(o *observed) { o.closed = shutPlaces([]health.State{s}) }
}

func holding(proven bool, keys ...ib.PKey) func(*observed) {
	return func(o *observed) { o.pkeys = func(topo.PortID) ([]ib.PKey, bool) { return keys, proven } }
}

func both(fs ...func(*observed)) func(*observed) {
	return func(o *observed) {
		for _, f := range fs {
			f(o)
		}
	}
}

func TestWhatTablesProve(t *testing.T) {
	busy := func(o *observed) { o.quiet = false }
	old := func(o *observed) { o.revision = 99 }
	applied := &records.Membership{State: records.Applied, Revision: 50}
	for _, c := range []struct {
		name      string
		withdrawn bool
		before    *records.Membership
		at        ib.Place
		view      func(*observed)
		want      records.Membership // without Time
	}{
		{"granted again before anybody noticed", false, applied, home, holding(true, 0x8005), records.Membership{State: records.Applied, Revision: 100}},
		{"never applied: tables alone do not tell that the switch enforces", false, nil, home, holding(true, 0x8005), records.Membership{}},
		{"tables not read back", false, applied, home, holding(false, 0x8005), *applied},
		{"another key", false, applied, home, holding(true, 0x8006), *applied},
		{"intent not in force yet", false, applied, home, both(holding(true, 0x8005), old), *applied},
		{"a request is out", false, applied, home, both(holding(true, 0x8005), busy), *applied},
		{"withdrawn and gone", true, applied, home, nil, records.Membership{State: records.Removed, Revision: 100, HCAProven: true}},
		{"withdrawn, HCA away", true, applied, ib.Place{}, nil, records.Membership{State: records.Removed, Revision: 100}},
		{"withdrawn, HCA back", true, &records.Membership{State: records.Removed, Revision: 100}, home, nil, records.Membership{State: records.Removed, Revision: 100, HCAProven: true}},
		{"withdrawn, HCA elsewhere without it", true, applied, away, nil, records.Membership{State: records.Removed, Revision: 100, HCAProven: true}},
		{"withdrawn, still there", true, applied, home, holding(true, 0x0005), *applied},
		{"withdrawn, not read back", true, applied, home, holding(false), *applied},
		{"withdrawn, intent not in force yet", true, applied, home, old, *applied},
		{"withdrawn, a request is out", true, applied, home, busy, *applied},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestBook(c.withdrawn)
			if c.before != nil {
				b.memberships.set(key.String(), *c.before)
			}
			b.look(seenAt(c.at, c.view))
			got, _ := b.memberships.get(key.String())
			got.Time = time.Time{}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestWherePortsAre(t *testing.T) {
	unsettled := func(o *observed) { o.settled = false }
	present := records.Port{NodeGUID: 0xa0, Place: home, LID: 7, State: "Active", HCACap: 64, SwitchCap: 32, Time: noon}
	moved := present
	moved.Place = away
	for _, c := range []struct {
		name string
		do   func(*book)
		want records.Port
	}{
		{"seen", func(b *book) { b.look(seenAt(home, nil)) }, present},
		{"seen elsewhere", func(b *book) { b.look(seenAt(away, nil)) }, moved},
		{"not seen yet by a restarted subnet manager", func(b *book) {
			b.look(seenAt(home, nil))
			b.look(seenAt(ib.Place{}, unsettled))
		}, present},
		{"not seen in a settled fabric", func(b *book) {
			b.look(seenAt(home, nil))
			b.look(seenAt(ib.Place{}, nil))
		}, records.Port{Time: noon}},
		{"said to be gone", func(b *book) {
			b.look(seenAt(home, nil))
			b.event(&sm.PortGone{GUID: 0xa1, Place: home})
		}, records.Port{Time: noon}},
		{"behind a switch port that an operator marked", func(b *book) {
			b.look(seenAt(home, nil))
			b.look(seenAt(ib.Place{}, shutAt(health.State{
				Place: home, Unhealthy: true, Condition: health.Marked, Action: health.Isolate, Reason: "dirty optic", Since: noon,
			})))
		}, records.Port{Time: noon, Shut: "switch port " + home.String() + " is kept from carrying data since 2026-03-01T12:00:00Z, because an operator marked it unhealthy (dirty optic): once that is mended, portcullis fabric health release " + home.String()}},
		{"behind a switch that is switched off", func(b *book) {
			b.look(seenAt(ib.Place{}, shutAt(health.State{
				Place: ib.Place{Switch: home.Switch}, Unhealthy: true, Condition: health.Rebooting, Action: health.Disable, Reason: "3 times in 10m0s", Since: noon,
			})))
		}, records.Port{Time: noon, Shut: "switch " + home.Switch.String() + " is switched off since 2026-03-01T12:00:00Z, because it misbehaves (rebooting: 3 times in 10m0s): see portcullis fabric health; when it is mended, portcullis fabric health release " + ib.Place{Switch: home.Switch}.String()}},
		{"behind a switch port that is reported and left alone", func(b *book) {
			b.look(seenAt(ib.Place{}, shutAt(health.State{Place: home, Unhealthy: true, Condition: health.Flapping, Action: health.Report, Since: noon})))
		}, records.Port{Time: noon}},
		{"seen again after a mark", func(b *book) {
			b.look(seenAt(ib.Place{}, shutAt(health.State{Place: home, Unhealthy: true, Condition: health.Marked, Action: health.Isolate, Since: noon})))
			b.event(&sm.PortPlaced{GUID: 0xa1, Place: away, LID: 9, NodeGUID: 0xa0})
		}, records.Port{NodeGUID: 0xa0, Place: away, LID: 9, Time: noon}},
		{"gone from where it was not", func(b *book) {
			b.look(seenAt(home, nil))
			b.event(&sm.PortGone{GUID: 0xa1, Place: away})
		}, present},
		{"said to be placed", func(b *book) {
			b.event(&sm.PortPlaced{GUID: 0xa1, Place: away, LID: 9, NodeGUID: 0xa0})
		}, records.Port{NodeGUID: 0xa0, Place: away, LID: 9, Time: noon}},
		{"not of the inventory", func(b *book) { b.event(&sm.PortPlaced{GUID: 0xff, Place: away}) }, records.Port{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestBook(false)
			c.do(b)
			got, _ := b.ports.get(ib.GUID(0xa1).String())
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if n := len(b.ports.now); n > 1 {
				t.Errorf("%d ports are recorded, the inventory has one", n)
			}
		})
	}
}

// A port that goes and comes back at once has to be read back again.
func TestBounceVoidsWhatWasReadBack(t *testing.T) {
	b := newTestBook(false)
	b.handle([]sm.Event{
		&sm.PortPlaced{GUID: 0xa1, Place: home, LID: 7, NodeGUID: 0xa0},
		&sm.MembershipApplied{GUID: 0xa1, PKey: 0x8005, Place: home, Revision: 100},
		&sm.PortGone{GUID: 0xa1, Place: home},
		&sm.PortPlaced{GUID: 0xa1, Place: home, LID: 7, NodeGUID: 0xa0},
	})
	if m, _ := b.memberships.get(key.String()); m.State == records.Applied {
		t.Errorf("membership is still %+v", m)
	}
	b.handle([]sm.Event{&sm.MembershipApplied{GUID: 0xa1, PKey: 0x8005, Place: home, Revision: 100}})
	if m, _ := b.memberships.get(key.String()); m.State != records.Applied || m.Revision != 100 {
		t.Errorf("membership is %+v, want it applied at 100", m)
	}
}

func TestOnlyChangesAreWritten(t *testing.T) {
	b := newTestBook(false)
	land := func() (n int) {
		for _, w := range b.pending(1000) {
			w.done()
			n++
		}
		return n
	}
	b.event(&sm.MembershipApplied{GUID: 0xa1, PKey: 0x8005, Place: home, Revision: 100})
	b.look(seenAt(home, nil))
	if n := land(); n != 6 { // sight, membership, port, two nodes, state
		t.Errorf("first view: %d writes, want 6", n)
	}
	b.event(&sm.MembershipApplied{GUID: 0xa1, PKey: 0x8005, Place: home, Revision: 120}) // as after a restart
	b.event(&sm.MembershipApplied{GUID: 0xbb, PKey: 0x8005, Place: home, Revision: 120}) // belongs to no grant
	b.look(seenAt(home, nil))
	if n := land(); n != 0 {
		t.Errorf("the same again: %d writes, want none", n)
	}
}

func TestIntent(t *testing.T) {
	b := newTestBook(false)
	gone := records.Key{PKey: 4, GUID: 0xb1, Place: away}
	b.grants[gone] = grant{withdrawn: true, modified: 90}
	b.revision = 101
	want := sm.Intent{
		Revision: 101,
		Grants:   []sm.Grant{{GUID: 0xa1, PKey: 0x8005, Place: home}},
		Absent:   []sm.Grant{{GUID: 0xb1, PKey: 0x8004, Place: away}},
		Hosts:    []ib.Place{home},
	}
	if d := cmp.Diff(want, b.intent()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFactsSurvive(t *testing.T) {
	s := storetest.Open(t)
	l := New(Options{Store: s, Log: storetest.Quiet()})
	var many []sm.Fact
	for i := range 250 {
		many = append(many, sm.Fact{Kind: sm.FactLID, GUID: ib.GUID(i + 1), LID: ib.LID(i + 1)})
	}
	for _, facts := range [][]sm.Fact{
		many,
		{{Kind: sm.FactLID, GUID: 1, LID: 900}, {Kind: sm.FactLID, GUID: 2}, {Kind: sm.FactNotKept, GUID: 1, NotKept: portset.LID}},
		{{Kind: sm.FactSAMember, Name: "c000-10", Body: "1"}, {Kind: sm.FactSAMember, Name: "c000-11", Body: "1"}},
		{{Kind: sm.FactSAMember, Name: "c000-11"}},
	} {
		if err := l.Save(facts); err != nil {
			t.Fatal(err)
		}
	}
	got, err := New(Options{Store: s, Log: storetest.Quiet()}).Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 251 { // one LID less, two other facts more
		t.Errorf("got %d facts, want 251", len(got))
	}
	want := []sm.Fact{{Kind: sm.FactLID, GUID: 1, LID: 900}, {Kind: sm.FactLID, GUID: 3, LID: 3}}
	if d := cmp.Diff(want, got[:2]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNewestIntentWaits(t *testing.T) {
	l, b := New(Options{Log: storetest.Quiet()}), newTestBook(false)
	for rev := range int64(3) {
		b.revision = rev
		l.publish(b)
	}
	if in := <-l.Intents(); in.Revision != 2 {
		t.Errorf("got intent of revision %d, want the newest, 2", in.Revision)
	}
}

// TestObserveLooksAtEachGrantOnce: the cost of a start, when all ports are placed at once, does not grow with ports times
// grants. Names of grants are made only for those that may be owed.
func TestObserveLooksAtEachGrantOnce(t *testing.T) {
	const hosts = 500
	b := newTestBook(false)
	var placed []sm.Event
	for i := range hosts {
		k := records.Key{PKey: 5, GUID: ib.GUID(0xb000 + i), Place: ib.Place{Switch: 0x11, Port: ib.PortNum(1 + i%30)}}
		b.grants[k] = grant{modified: 100}
		placed = append(placed, &sm.PortPlaced{GUID: k.GUID, Place: k.Place})
	}
	if n := testing.AllocsPerRun(3, func() { b.handle(placed) }); n > hosts {
		t.Errorf("%v allocations for %d ports, want no more than one for each", n, hosts)
	}
	if b.handle(placed) {
		t.Error("the intent is said again, and nothing is owed")
	}
	owed := records.Key{PKey: 5, GUID: 0xb007, Place: home}
	b.grants[owed] = grant{withdrawn: true, modified: 100}
	if !b.handle(placed) {
		t.Error("the intent is not said again, and a P_Key is still to be proven absent from an HCA")
	}
}

// TestViewOlderThanEvents: a view that does not know yet that a port went, or came, does not take the event back. Before,
// hosts stayed in phase granting while a subnet manager was blind: their port was seen in a view shown once more, and what
// was read back of it was void.
func TestViewOlderThanEvents(t *testing.T) {
	with, without := seenAt(home, nil).fabric, seenAt(ib.Place{}, nil).fabric
	gone := &sm.PortGone{GUID: 0xa1, Place: home}
	placed := &sm.PortPlaced{GUID: 0xa1, Place: home, LID: 7, NodeGUID: 0xa0}
	for _, tt := range []struct {
		name string
		do   func(*Link)
		want bool // that the port is at home
	}{
		{"the view from before, once more, with the event", func(l *Link) {
			l.OnEvent(gone)
			l.OnView(&sm.View{Fabric: with, Repeats: true})
		}, false},
		{"the view from before is taken late", func(l *Link) {
			l.OnView(&sm.View{Fabric: with})
			l.OnEvent(gone)
		}, false},
		{"both", func(l *Link) {
			l.OnView(&sm.View{Fabric: with})
			l.OnEvent(gone)
			l.OnView(&sm.View{Fabric: with, Repeats: true})
		}, false},
		{"a new view does not show the port", func(l *Link) {
			l.OnEvent(gone)
			l.OnView(&sm.View{Fabric: without})
		}, false},
		{"a new view shows the port", func(l *Link) {
			l.OnEvent(gone)
			l.OnView(&sm.View{Fabric: with})
		}, true},
		{"came back; the settled view from before once more", func(l *Link) {
			l.OnEvent(gone)
			l.OnView(&sm.View{Fabric: without, Settled: true})
			l.OnEvent(placed)
			l.OnView(&sm.View{Fabric: without, Settled: true, Repeats: true})
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, after := range []string{"", "then a change of the store", "then the view once more"} {
				b, l := newTestBook(false), New(Options{})
				l.OnView(&sm.View{Fabric: with})
				b.observe(l.take())
				tt.do(l)
				b.observe(l.take())
				switch after {
				case "then a change of the store":
					b.review()
				case "then the view once more":
					l.OnView(&sm.View{Fabric: b.seen.fabric, Repeats: true})
					b.observe(l.take())
				}
				if p, _ := b.ports.get(ib.GUID(0xa1).String()); (p.Place == home) != tt.want {
					t.Errorf("%s: the port is recorded at %v, want it at home: %v", after, p.Place, tt.want)
				}
			}
		})
	}
}

// TestOrdered: a membership that was read back says when the sm role learned of its grant: once for each change of the grant, however
// often that is read.
func TestOrdered(t *testing.T) {
	now := noon
	b := newBook(func() time.Time { return now }, SightLimits{})
	b.grants, b.cables = map[records.Key]grant{}, map[ib.GUID]ib.Place{key.GUID: home}
	learn := func(modified int64) {
		b.grants[key] = b.grantOf(key, &records.Grant{Host: "h"}, modified)
		now = now.Add(time.Second)
	}
	learn(100)
	learn(100)
	b.found(key, records.Membership{State: records.Applied, Revision: 100})
	got, _ := b.memberships.get(key.String())
	if want := (records.Membership{State: records.Applied, Revision: 100, Ordered: noon, Time: noon.Add(2 * time.Second)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	learn(200)
	b.found(key, records.Membership{State: records.Applied, Revision: 200})
	if got, _ = b.memberships.get(key.String()); !got.Ordered.Equal(noon.Add(2 * time.Second)) {
		t.Errorf("%+v after the grant changed", got)
	}
	was := got
	now = now.Add(time.Hour)
	b.found(key, records.Membership{State: records.Applied, Revision: 200})
	if got, _ = b.memberships.get(key.String()); got != was {
		t.Errorf("%+v is written again as %+v", was, got)
	}
}
