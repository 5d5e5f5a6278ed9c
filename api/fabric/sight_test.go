package fabric

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

func TestJudgeSight(t *testing.T) {
	partly := v1.Sight{State: v1.SightPartly, Cause: v1.SightNodes}
	blind := v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort}
	tests := []struct {
		name         string
		s            sighting
		was          v1.Sight
		state, cause string
	}{
		{"all is seen", sighting{state: ib.SMMaster, nodes: 100, known: 100}, v1.Sight{}, v1.SightClear, ""},
		{"own port without link", sighting{state: ib.SMMaster, down: true, nodes: 1, known: 100, missing: 99}, v1.Sight{}, v1.SightBlind, v1.SightOwnPort},
		{"own port without link at the start", sighting{state: ib.SMDiscovering, down: true, nodes: 1, known: 1}, v1.Sight{}, v1.SightBlind, v1.SightOwnPort},
		{"only our own node", sighting{state: ib.SMMaster, nodes: 1, known: 100, missing: 99}, v1.Sight{}, v1.SightBlind, v1.SightAlone},
		{"only our own node, and no other was known", sighting{state: ib.SMMaster, nodes: 1, known: 1}, v1.Sight{}, v1.SightBlind, v1.SightAlone},
		{"fewer than the number", sighting{state: ib.SMMaster, nodes: 13, known: 20, missing: 7}, v1.Sight{}, v1.SightClear, ""},
		{"the number", sighting{state: ib.SMMaster, nodes: 12, known: 20, missing: 8}, v1.Sight{}, v1.SightPartly, v1.SightNodes},
		{"the number, and less than the share", sighting{state: ib.SMMaster, nodes: 901, known: 1000, missing: 99}, v1.Sight{}, v1.SightClear, ""},
		{"the share", sighting{state: ib.SMMaster, nodes: 900, known: 1000, missing: 100}, v1.Sight{}, v1.SightPartly, v1.SightNodes},
		{"half of it is back", sighting{state: ib.SMMaster, nodes: 950, known: 1000, missing: 50}, partly, v1.SightPartly, v1.SightNodes},
		{"more than half of it is back", sighting{state: ib.SMMaster, nodes: 951, known: 1000, missing: 49}, partly, v1.SightClear, ""},
		{"own port back", sighting{state: ib.SMMaster, nodes: 100, known: 100}, blind, v1.SightClear, ""},
		{"not yet found", sighting{state: ib.SMDiscovering, nodes: 3, known: 1000, missing: 997}, v1.Sight{}, v1.SightClear, ""},
		{"not yet found, and blind before", sighting{state: ib.SMDiscovering, nodes: 3, known: 1000, missing: 997}, partly, v1.SightPartly, v1.SightNodes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state, cause := judgeSight(tt.s, DefaultSightLimits(), tt.was)
			if state != tt.state || cause != tt.cause {
				t.Errorf("got %s (%s), want %s (%s)", state, cause, tt.state, tt.cause)
			}
		})
	}
}

// sightRig is a book over a store, and a fabric of one switch with a node at each of its ports.
type sightRig struct {
	t     *testing.T
	store *store.Store
	book  *book
	now   time.Time
	seen  []sightState // that OnSight was called with
	link  *Link
}

type sightState struct {
	state, cause string
	nodes        int
}

func newSightRig(t *testing.T) *sightRig {
	r := &sightRig{t: t, now: noon}
	r.store = store.New(memory.New(func() time.Time { return r.now }), "")
	r.restart()
	return r
}

// restart makes a book that knows what is in the store.
func (r *sightRig) restart() {
	r.t.Helper()
	now := func() time.Time { return r.now }
	r.link = New(Options{Store: r.store, Now: now, OnSight: func(s v1.Sight) { r.seen = append(r.seen, sightState{s.State, s.Cause, s.Nodes}) }})
	r.book = newBook(now, SightLimits{})
	snap, err := r.store.Snapshot(r.t.Context())
	if err == nil {
		err = r.book.load(r.t.Context(), source{Snapshot: snap})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// shows has the book see our own node 1, the switch 0x10 and n nodes more.
func (r *sightRig) shows(n int, change func(*observed)) {
	r.t.Helper()
	var b topo.Builder
	sw := topo.NodeID(topo.None)
	ends := []topo.NodeID{b.AddNode(topo.Node{GUID: 1, Type: ib.NodeCA, NumPorts: 1})}
	if n >= 0 {
		sw = b.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 40, Description: "leaf-1"})
		for i := range n {
			ends = append(ends, b.AddNode(topo.Node{GUID: 0x100 + ib.GUID(i), Type: ib.NodeCA, NumPorts: 1, Description: "h" + strconv.Itoa(i)}))
		}
	}
	for i, id := range ends {
		p := b.PortOf(id, 1)
		b.SetPort(p, topo.Port{Node: id, Num: 1, GUID: b.Node(id).GUID, State: ib.PortActive, Peer: topo.None})
		if sw != topo.None {
			b.Connect(p, b.PortOf(sw, ib.PortNum(i+1)))
		}
	}
	o := &observed{fabric: b.Freeze(), quiet: true, settled: true, smState: ib.SMMaster, pkeys: func(topo.PortID) ([]ib.PKey, bool) { return nil, false }}
	o.state.State, o.state.Settled, o.state.GUID = ib.SMMaster.String(), true, 1
	if change != nil {
		change(o)
	}
	r.now = r.now.Add(10 * time.Second)
	r.book.look(o)
	r.link.tellSight(r.book)
	if err := r.link.write(r.t.Context(), r.book); err != nil {
		r.t.Fatal(err)
	}
}

func (r *sightRig) stored() v1.Sight {
	r.t.Helper()
	rec, err := records.Sights().Get(r.t.Context(), r.store, records.Master)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec.Value
}

func (r *sightRig) events() (out []string) {
	r.t.Helper()
	all, err := events.Book{Store: r.store}.List(r.t.Context(), v1.EventQuery{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range all.Items {
		out = append(out, e.Type+" "+e.Cause+" "+strconv.FormatUint(e.Count, 10))
	}
	slices.Sort(out)
	return out
}

func (r *sightRig) wantState(what, state, cause string, nodes int) v1.Sight {
	r.t.Helper()
	s := r.stored()
	if s.State != state || s.Cause != cause || s.Nodes != nodes {
		r.t.Fatalf("%s: %s (%s), %d nodes out of sight; want %s (%s), %d: %+v", what, s.State, s.Cause, s.Nodes, state, cause, nodes, s)
	}
	return s
}

// A large part that goes at once is reported with when, how many and which, also to a service that is started meanwhile,
// and so is that it is back.
func TestPartOutOfSight(t *testing.T) {
	r := newSightRig(t)
	r.book.owners.names[0x105], r.book.owners.names[0x106] = "alice", "alice"
	r.shows(20, nil)
	r.wantState("all is seen", v1.SightClear, "", 0)
	r.shows(5, nil)
	s := r.wantState("15 of 22 gone", v1.SightPartly, v1.SightNodes, 15)
	if !s.Since.Equal(r.now) || s.Ports != 15 || s.Hosts != 1 || !slices.Equal(s.Names, []string{"alice"}) || s.Known != 22 {
		t.Errorf("out of sight: %+v", s)
	}
	since := s.Since
	r.restart()
	r.shows(2, func(o *observed) { o.smState, o.settled = ib.SMDiscovering, false })
	r.wantState("started, and not discovered yet", v1.SightPartly, v1.SightNodes, 18)
	r.shows(5, nil)
	if s = r.wantState("started again", v1.SightPartly, v1.SightNodes, 15); !s.Since.Equal(since) {
		t.Errorf("since %v, want %v", s.Since, since)
	}
	nodes, _, err := records.Nodes().List(t.Context(), r.store, "")
	if err != nil || len(nodes) != 22 {
		t.Errorf("%d nodes are known, want 22: %v", len(nodes), err)
	}
	r.shows(20, nil)
	r.wantState("back", v1.SightClear, "", 0)
	if got, want := r.events(), []string{"fabric.blind nodes 1", "fabric.seen back 1"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// The subnet manager's own cable: blind, the state never settled, and the record of each node stays.
func TestOwnPortWithoutLink(t *testing.T) {
	r := newSightRig(t)
	r.shows(20, nil)
	r.shows(-1, func(o *observed) { o.down = true })
	r.wantState("own cable out", v1.SightBlind, v1.SightOwnPort, 21)
	r.shows(-1, nil)
	s := r.wantState("nothing answers", v1.SightBlind, v1.SightAlone, 21)
	if !strings.Contains(s.Reason, "M_Keys") || !slices.Equal(s.Names, []string{"leaf-1"}) {
		t.Errorf("%+v", s)
	}
	rec, err := records.SMs().Get(t.Context(), r.store, records.Master)
	if err != nil || rec.Value.Settled || rec.Value.Sight.State != v1.SightBlind {
		t.Errorf("state of the subnet manager: %+v, %v", rec.Value, err)
	}
	r.shows(20, nil)
	r.wantState("back", v1.SightClear, "", 0)
	want := []sightState{{v1.SightClear, "", 0}, {v1.SightBlind, v1.SightOwnPort, 21}, {v1.SightBlind, v1.SightAlone, 21}, {v1.SightClear, "", 0}}
	if !slices.Equal(r.seen, want) {
		t.Errorf("told %v, want %v", r.seen, want)
	}
}

// Nodes that go one by one are no part that went at once, unless they do within the time.
func TestNodesThatGoSlowly(t *testing.T) {
	r := newSightRig(t)
	for n := 20; n > 2; n-- {
		r.shows(n, nil)
		r.now = r.now.Add(DefaultSightLimits().Within)
	}
	r.wantState("one by one", v1.SightClear, "", 0)
	r = newSightRig(t)
	for n := 20; n >= 12; n-- {
		r.shows(n, nil) // ten seconds apart
	}
	r.wantState("one by one, quickly", v1.SightPartly, v1.SightNodes, 8)
}

// A node that an operator accepts as gone is known no longer.
func TestAcceptedSight(t *testing.T) {
	r := newSightRig(t)
	r.shows(20, nil)
	r.shows(5, nil)
	r.wantState("gone", v1.SightPartly, v1.SightNodes, 15)
	r.now = r.now.Add(time.Second)
	_, err := r.store.Update(t.Context(), func(tx *store.Tx) error {
		return records.AcceptedSights().Put(tx, records.Master, records.Accepted{Time: r.now, By: "ann", Reason: "hall 2 is sold"})
	})
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.shows(5, nil)
	r.wantState("accepted", v1.SightClear, "", 0)
	if got, want := r.events(), []string{"fabric.blind nodes 1", "fabric.seen accepted 1"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// An adapter that cannot be used is a cause too, which is reported once.
func TestAdapterGone(t *testing.T) {
	r := newSightRig(t)
	r.shows(20, nil)
	for range 3 {
		if err := LoseAdapter(t.Context(), r.store, "no such device mlx5_0", r.now); err != nil {
			t.Fatal(err)
		}
	}
	r.wantState("adapter gone", v1.SightBlind, v1.SightAdapter, 22)
	r.restart()
	r.shows(20, nil)
	r.wantState("back", v1.SightClear, "", 0)
	if got, want := r.events(), []string{"fabric.blind adapter 1", "fabric.seen back 1"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
