package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/transport"
)

// dualKeyed is a settled fabric of one switch, of devices that hold two keys at a time.
func dualKeyed(t *testing.T) *env {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 6})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true, Device: sim.Modern()}, keyed(t), 1)
	e.start()
	e.mustSettle(time.Minute)
	e.takeEvents()
	return e
}

// obeys reports whether the switch answers a host that shows a key.
func (e *env) obeys(from endPort, key ib.MKey) bool {
	e.t.Helper()
	st, err := e.fab.Station(from.node.Name, false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	way, _ := (mad.Route{}).Append(from.num)
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: 77}, &way, key)
	return len(st.Exchange([]transport.Packet{p}, nil)) > 0
}

// told returns the events of one kind since they were last taken.
func told[E sm.Event](e *env) (out []E) {
	for _, ev := range e.takeEvents() {
		if x, ok := ev.(E); ok {
			out = append(out, x)
		}
	}
	return out
}

// TestLentKey: a key that was lent opens the device until its time is over, and not
// a moment longer, although the device holds two keys at a time.
func TestLentKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		then func(e *env, guid ib.GUID)
	}{
		{"in its time", func(*env, ib.GUID) {}},
		{"given back early", func(e *env, guid ib.GUID) { e.step(&sm.LendKey{GUID: guid}) }},
		{"over a restart", func(e *env, _ ib.GUID) { e.start() }},
		{"lent again for less", func(e *env, guid ib.GUID) {
			e.step(&sm.LendKey{GUID: guid, Until: e.now.Add(time.Minute), To: "bob"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := dualKeyed(t)
			h := hosts(e.list)[1]
			guid := e.list.Find(h.peer).GUID
			key := e.fab.PortInfo(h.peer, 0).MKey
			e.step(&sm.LendKey{GUID: guid, Until: e.now.Add(10 * time.Minute), To: "alice"})
			if got := told[*keyevent.KeyLent](e); len(got) != 1 || got[0].To != "alice" || got[0].GUID != guid {
				t.Fatalf("told %v", got)
			}
			e.run(time.Second)
			if s := e.view.MKey(e.view.Fabric.PortByGUID(guid)); s.Lent.IsZero() {
				t.Error("the view does not show that the key is lent")
			}
			if !e.obeys(h, key) {
				t.Fatal("the key that was lent does not open the switch")
			}
			tt.then(e, guid)
			e.run(11 * time.Minute)
			e.mustSettle(time.Minute)
			if got := told[*keyevent.KeyLeaseEnded](e); len(got) != 1 || got[0].GUID != guid {
				t.Errorf("told of the end: %v", got)
			}
			if e.obeys(h, key) {
				t.Error("the switch obeys the key whose time is over")
			}
			if s := e.view.MKey(e.view.Fabric.PortByGUID(guid)); !s.Lent.IsZero() || s.Exposed || s.Standing != mkeys.KeyHeld {
				t.Errorf("the view shows %+v after the end", s)
			}
			e.checkKeys()
		})
	}
}

// TestLeaseOfWhoIsAway: a device that is away when the time is over gets another key
// when it comes back.
func TestLeaseOfWhoIsAway(t *testing.T) {
	e := dualKeyed(t)
	h := hosts(e.list)[2]
	guid := h.node.PortGUID(h.num)
	key := e.fab.PortInfo(h.node.Name, h.num).MKey
	e.step(&sm.LendKey{GUID: guid, Until: e.now.Add(time.Minute), To: "alice"})
	e.fab.Unlink(h.node.Name, h.num)
	e.run(2 * time.Minute)
	e.start()
	e.run(time.Minute)
	if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	e.run(5 * time.Minute)
	e.mustSettle(time.Minute)
	if now := e.fab.PortInfo(h.node.Name, h.num).MKey; now == key || now.IsZero() {
		t.Error("the device has the key that was lent, or none")
	}
	e.checkKeys()
}

// TestShownKeyIsDropped: a device that holds two keys stops obeying the one that another device saw.
func TestShownKeyIsDropped(t *testing.T) {
	e := dualKeyed(t)
	h := hosts(e.list)[2]
	key := e.fab.PortInfo(h.node.Name, h.num).MKey
	e.fab.Unlink(h.node.Name, h.num)
	e.run(3 * time.Second)
	if err := e.fab.SetGUIDs(h.node.Name, 0x77770000, 0x77770000); err != nil {
		t.Fatal(err)
	}
	replug := func() {
		if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(5 * time.Second)
	}
	replug()
	if got := told[*keyevent.KeyExposed](e); len(got) != 1 {
		t.Fatalf("told %v: nobody was shown a key, so nothing is proven", got)
	}
	e.fab.Unlink(h.node.Name, h.num)
	e.run(3 * time.Second)
	if err := e.fab.SetGUIDs(h.node.Name, h.node.GUID, h.node.GUID); err != nil {
		t.Fatal(err)
	}
	replug()
	e.run(5 * time.Minute)
	e.mustSettle(time.Minute)
	var m mad.MAD
	way, _ := (mad.Route{}).Append(1)
	way, _ = way.Append(h.pnum)
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: 7}, &way, key)
	st, err := e.fab.Station(hosts(e.list)[0].node.Name, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil); len(got) > 0 {
		t.Error("the device obeys the key that was shown to somebody else")
	}
}

// TestRetiredKey: the key of a device that left is destroyed, and a device that is there keeps its own. A device that comes
// back gets one of a later epoch.
func TestRetiredKey(t *testing.T) {
	e := dualKeyed(t)
	h := hosts(e.list)[2]
	guid := h.node.PortGUID(h.num)
	before := e.keys[guid]
	e.step(&sm.RetireKey{GUID: guid})
	e.run(time.Second)
	if e.keys[guid].Retired || len(told[*keyevent.KeyProblem](e)) != 1 {
		t.Error("the key of a device that is there was destroyed, or nobody said that it was not")
	}
	e.fab.Unlink(h.node.Name, h.num)
	e.run(3 * time.Second)
	e.step(&sm.RetireKey{GUID: guid})
	e.run(time.Second)
	if rec := e.keys[guid]; !rec.Retired || !rec.Current.IsZero() || rec.Floor != before.Current.Epoch {
		t.Errorf("the record is retired %v with a key %v and floor %d", rec.Retired, !rec.Current.IsZero(), rec.Floor)
	}
	if got := told[*keyevent.KeyRetired](e); len(got) != 1 || got[0].Place != h.place {
		t.Errorf("told %v", got)
	}
	relink := func() {
		if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(10 * time.Second)
	}
	relink()
	if e.fab.PortInfo(h.node.Name, h.num).LID != 0 && e.fab.PortInfo(h.peer, h.pnum).PortState == ib.PortActive {
		t.Error("a device with a key that was destroyed carries data")
	}
	e.fab.Unlink(h.node.Name, h.num)
	e.run(3 * time.Second)
	e.fab.Reboot(h.node.Name)
	relink()
	e.run(2 * time.Minute)
	e.mustSettle(time.Minute)
	if rec := e.keys[guid]; rec.Current.Epoch <= before.Current.Epoch || rec.Current.Key == before.Current.Key || rec.Kind != keys.MKey {
		t.Errorf("who came back without a key has one of epoch %d, before it was %d", rec.Current.Epoch, before.Current.Epoch)
	}
	e.checkKeys()
}

// TestLeasesHoldWhileNothingSettles: a host sends a switch a wrong key all the time, its
// traps and a tenth of all packets get lost, and a table elsewhere is always busy, so that
// the fabric is never settled. The lease does not run out, and no request is answered
// without the key.
func TestLeasesHoldWhileNothingSettles(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { leasesHold(t, seed) })
	}
}

func leasesHold(t *testing.T, seed uint64) {
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.MKey.Lease = 6
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, seed)
	hs := hosts(l)
	h, other := hs[0], hs[len(hs)-1]
	if h.peer == other.peer {
		t.Fatalf("%s and %s are both at %s", h.node.Name, other.node.Name, h.peer)
	}
	e.start()
	e.mustSettle(time.Minute)
	e.takeEvents()
	e.bad.lose = 0.1
	e.mangle = func(p *transport.Packet) {
		switch {
		case p.MAD.Method() == mad.MethodTrap:
			p.MAD = mad.MAD{}
		case p.MAD.Attr() == mad.AttrPKeyTable: // of this table nothing is ever known for certain
			p.MAD.SetStatus(mad.StatusBusy)
		}
	}
	e.step(&sm.IntentSet{Intent: sm.Intent{Revision: 2, Grants: []sm.Grant{
		{GUID: other.node.PortGUID(other.num), PKey: 0x8007, Place: other.place},
	}}})
	way := mad.MakeRoute(h.num)
	ran := false
	for i := range 400 {
		e.forge(h.node.Name, smp(mad.MethodSet, mad.AttrSwitchInfo, &way, 0))
		e.run(100 * time.Millisecond)
		_, running := e.fab.MKeyLease(h.peer, 0)
		ran = ran || running
		if e.obeys(h, ib.MKey{}) {
			t.Fatalf("after %v the switch answers without a key", time.Duration(i)*100*time.Millisecond)
		}
	}
	if !ran {
		t.Error("no lease ever ran")
	}
	if lapsed := told[*keyevent.ProtectionLapsed](e); len(lapsed) > 0 {
		t.Errorf("told of %v", lapsed)
	}
}
