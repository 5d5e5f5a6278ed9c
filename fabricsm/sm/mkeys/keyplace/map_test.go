package keyplace

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// rig is a host on port 1 of a switch, whose port 2 leads to another switch, with a host on port 1 of that.
type rig struct {
	topo       topo.Builder
	near, far  topo.NodeID
	own, host  topo.PortID
	up         map[topo.NodeID]topo.PortID
	challenged map[topo.PortID]bool
	declared   bool // all that is seen is
	saved      []ib.Place
}

func (r *rig) Own() topo.PortID                      { return r.own }
func (r *rig) Root() (topo.NodeID, topo.PortID)      { return r.topo.Port(r.own).Node, r.own }
func (r *rig) Up(id topo.NodeID) topo.PortID         { return r.up[id] }
func (r *rig) IsChallenged(p topo.PortID) bool       { return r.challenged[p] }
func (r *rig) IsFenced(topo.PortID) bool             { return false }
func (r *rig) IsDark(topo.PortID) bool               { return false }
func (r *rig) SaveBehind(at ib.Place, _ ib.GUID)     { r.saved = append(r.saved, at) }
func (r *rig) IsOn() bool                            { return r.declared }
func (r *rig) WantsEnforcement() bool                { return r.declared }
func (r *rig) IsDeclared(topo.PortID) bool           { return r.declared }
func (r *rig) IsLawful(ib.Place) bool                { return r.declared }
func (r *rig) Expects(topo.PortID) bool              { return r.declared }
func (r *rig) Trusts(ib.GUID) bool                   { return r.declared }
func (r *rig) VerdictAt(ib.Place) (v verify.Verdict) { return v }
func (r *rig) Spec() *topospec.Spec                  { return nil }

const (
	ownGUID  ib.GUID = 0x11
	nearGUID ib.GUID = 0x22
	farGUID  ib.GUID = 0x33
	hostGUID ib.GUID = 0x44
)

func (r *rig) add(guid ib.GUID, kind ib.NodeType, end ib.PortNum) (topo.NodeID, topo.PortID) {
	id := r.topo.AddNode(topo.Node{GUID: guid, Type: kind, NumPorts: 2})
	p := r.topo.PortOf(id, end)
	tp := r.topo.Port(p)
	tp.GUID = guid
	r.topo.SetPort(p, tp)
	return id, p
}

func start(t *testing.T, o Options) (*rig, *Map, *keys.Book) {
	o.Controls = controls.Strict{}
	t.Helper()
	r := &rig{up: make(map[topo.NodeID]topo.PortID), challenged: make(map[topo.PortID]bool)}
	var root, host topo.NodeID
	root, r.own = r.add(ownGUID, ib.NodeCA, 1)
	r.near, _ = r.add(nearGUID, ib.NodeSwitch, 0)
	r.far, _ = r.add(farGUID, ib.NodeSwitch, 0)
	host, r.host = r.add(hostGUID, ib.NodeCA, 1)
	r.topo.Connect(r.own, r.topo.PortOf(r.near, 1))
	r.topo.Connect(r.topo.PortOf(r.near, 2), r.topo.PortOf(r.far, 2))
	r.topo.Connect(r.topo.PortOf(r.far, 1), r.host)
	r.up[root], r.up[r.near] = topo.None, r.own
	r.up[r.far], r.up[host] = r.topo.PortOf(r.near, 2), r.topo.PortOf(r.far, 1)
	book, err := keys.NewBook(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := New(r, r, &r.topo, book, o)
	return r, &m, book
}

// hold records that a device is on a key.
func hold(t *testing.T, b *keys.Book, guid ib.GUID, at ib.Place) {
	t.Helper()
	ring := b.Open(keys.MKey, guid, at)
	if err := ring.Adopt(keys.Held{Key: keys.New(0x1234567890ABCDEF), Origin: keys.OriginImported}); err != nil {
		t.Fatal(err)
	}
	ring.Answered(keys.Seen{Key: keys.New(0x1234567890ABCDEF)})
	if err := ring.Plan(keys.Held{Key: keys.New(0x2234567890ABCDEF), Epoch: ring.NextEpoch()}); err != nil {
		t.Fatal(err)
	}
}

func TestPolicyFollowsTheMode(t *testing.T) {
	for _, tt := range []struct {
		of       Policy
		declared bool
		want     Policy
	}{{Auto, false, Seen}, {Auto, true, Declared}, {Declared, false, Declared}, {Seen, true, Seen}} {
		r, m, _ := start(t, Options{Policy: tt.of})
		if r.declared = tt.declared; m.Policy() != tt.want {
			t.Errorf("%v, declared %v: %v, want %v", tt.of, tt.declared, m.Policy(), tt.want)
		}
	}
}

func TestADeviceIsVerifiedWhereNobodyContestsIt(t *testing.T) {
	r, m, _ := start(t, Options{Policy: Seen})
	port := r.topo.Peer(r.host)
	if !m.IsVerified(r.host) || !m.IsVerified(r.own) {
		t.Error("it is seen there, and no other device says that it is it")
	}
	if r.challenged[port] = true; m.IsVerified(r.host) {
		t.Error("another port claims it")
	}
	r.challenged[port] = false
	_, m, _ = start(t, Options{Policy: Declared})
	if m.IsVerified(r.host) {
		t.Error("nothing is declared")
	}
}

func TestAKeyGoesOnlyOverKnownSwitches(t *testing.T) {
	r, m, book := start(t, Options{Policy: Seen})
	hold(t, book, farGUID, ib.Place{})
	if m.IsVerified(r.host) {
		t.Error("a switch on the way has a key, and was never found behind that port")
	}
	m.LoadBehind(ib.Place{Switch: nearGUID, Port: 2}, farGUID)
	if !m.IsVerified(r.host) {
		t.Error("each switch on the way is where it was found before")
	}
}

func TestOnlyTheKnownNeighbourIsShownAKey(t *testing.T) {
	r, m, book := start(t, Options{Policy: Seen})
	hold(t, book, nearGUID, ib.Place{})
	if m.IsWayKnown(r.near) || m.Neighbour().GUID != 0 {
		t.Error("nothing says which switch our own port is cabled to")
	}
	_, m, book = start(t, Options{Policy: Seen, AttachedTo: nearGUID})
	hold(t, book, nearGUID, ib.Place{})
	if got := m.Neighbour(); !m.IsWayKnown(r.near) || got != (Neighbour{nearGUID, bySetting}) {
		t.Errorf("neighbour %v", got)
	}
}

func TestASwitchIsRememberedOnce(t *testing.T) {
	r, m, _ := start(t, Options{Policy: Seen})
	p := r.topo.PortOf(r.near, 2)
	m.Remember(p)
	m.Remember(p)
	at := ib.Place{Switch: nearGUID, Port: 2}
	if len(r.saved) != 1 || r.saved[0] != at || m.Behind(at) != farGUID || !m.Switches()[farGUID] {
		t.Errorf("saved %v", r.saved)
	}
}
