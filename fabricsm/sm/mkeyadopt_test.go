package sm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/sm/mkeys/keyplace"
)

// sameKey is a source as OpenSM is one with m_key: all devices get one key.
type sameKey keys.Key

func (k sameKey) Make(_ keys.Kind, _ ib.GUID, epoch keys.Epoch, now time.Time) (keys.Held, error) {
	return keys.Held{Key: keys.Key(k), Epoch: epoch, Origin: keys.OriginRandom, Since: now}, nil
}

const theirKey = 0x3c5a_9617_d2e8_4b01

// locked returns a fabric that another subnet manager has locked, and the keys that it assigned.
func locked(t *testing.T, l *netlist.Netlist, source keys.Source) (*env, map[ib.GUID]ib.MKey) {
	t.Helper()
	theirs := keyed(t)
	if source != nil {
		theirs.MKey.Source = source
	}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, theirs, 1)
	e.start()
	e.mustSettle(time.Minute)
	had := e.mkeysNow()
	e.facts, e.keys = nil, make(map[ib.GUID]keys.Record)
	e.takeEvents()
	return e, had
}

// ours is a configuration with other keys than those of locked.
func ours(t *testing.T, in *keyimport.Keys) mkeys.Config {
	t.Helper()
	drawn, err := keys.NewDrawn(rand.NewChaCha8([32]byte{9}), 100)
	if err != nil {
		t.Fatal(err)
	}
	return mkeys.Config{Source: drawn, Places: keyplace.Seen, Import: in}
}

// neighbours is the file of that name that OpenSM keeps of a fabric.
func neighbours(l *netlist.Netlist) map[ib.Place]ib.GUID {
	out := make(map[ib.Place]ib.GUID)
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			if p := &n.Ports[num]; p.Peer != "" {
				out[ib.Place{Switch: n.PortGUID(ib.PortNum(num)), Port: ib.PortNum(num)}] = l.Find(p.Peer).PortGUID(p.PeerPort)
			}
		}
	}
	return out
}

func imported(had map[ib.GUID]ib.MKey) map[ib.GUID]keys.Key {
	out := make(map[ib.GUID]keys.Key)
	for g, k := range had {
		out[g] = keys.New(k.Reveal())
	}
	return out
}

// TestTakeOver: a fabric that another subnet manager has locked, with a key for
// each device or one for all, is read under those, and every device ends on a key
// of ours. Once that is done the import is not needed.
func TestTakeOver(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		for name, with := range map[string]struct {
			source keys.Source
			what   func(had map[ib.GUID]ib.MKey) *keyimport.Keys
		}{
			"a key for each": {nil, func(had map[ib.GUID]ib.MKey) *keyimport.Keys {
				return &keyimport.Keys{Keys: imported(had), Behind: neighbours(l)}
			}},
			"one for all": {sameKey(keys.New(theirKey)), func(map[ib.GUID]ib.MKey) *keyimport.Keys {
				return &keyimport.Keys{Single: keys.New(theirKey)}
			}},
		} {
			e, had := locked(t, l, with.source)
			e.cfg.MKey = ours(t, with.what(had))
			e.start()
			e.mustSettle(time.Minute)
			e.checkKeys()
			for g, k := range e.mkeysNow() {
				if k == had[g] {
					t.Errorf("%s: %v is still on the key that was taken over", name, g)
				}
			}
			before := e.sets()
			e.cfg.MKey.Import = nil
			e.start()
			e.mustSettle(time.Minute)
			e.checkKeys()
			if n := e.sets() - before; n != 0 {
				t.Errorf("%s: %d Sets after a restart without the import, want none", name, n)
			}
			if t.Failed() {
				t.Fatalf("%s; problems %q", name, e.problems())
			}
		}
	})
}

// TestTakeOverKilledAtEveryStep: whenever the subnet manager is killed while it
// takes over, the next one ends with every device on exactly one known key.
func TestTakeOverKilledAtEveryStep(t *testing.T) {
	for step := 1; ; step++ {
		l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
		e, had := locked(t, list(t, l, err), nil)
		e.cfg.MKey = ours(t, &keyimport.Keys{Keys: imported(had), Behind: neighbours(l)})
		e.start()
		from := e.steps
		for e.steps < from+step && e.next(e.now.Add(time.Second)) {
		}
		done := e.view != nil && e.view.Settled
		e.start()
		e.mustSettle(time.Minute)
		e.checkKeys()
		if t.Failed() {
			t.Fatalf("killed after step %d", step)
		}
		if done {
			if step < 30 {
				t.Errorf("a take-over of %d steps, want more to crash at", step)
			}
			return
		}
	}
}

// TestTakeOverOfSome: a device that has no key although the import has one for it gets a key of its own, and never that of
// the import. A device with another key stays out, and is reported.
func TestTakeOverOfSome(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 5})
	e, had := locked(t, list(t, l, err), nil)
	hs := hosts(l)
	fresh, other := hs[0], hs[1]
	if err := e.fab.Reboot(fresh.node.Name); err != nil {
		t.Fatal(err)
	}
	in := &keyimport.Keys{Keys: imported(had), Behind: neighbours(l)}
	in.Keys[other.node.PortGUID(1)] = keys.New(theirKey)
	e.cfg.MKey = ours(t, in)
	e.start()
	e.run(20 * time.Second)
	e.mustSettle(time.Minute)
	for _, h := range hs {
		g, now := h.node.PortGUID(1), e.fab.PortInfo(h.node.Name, 1).MKey
		switch {
		case h.node.Name == other.node.Name:
			if now != had[g] || len(e.problems()) == 0 {
				t.Errorf("the device with another key: unchanged %v, problems %q", now == had[g], e.problems())
			}
		case now.IsZero() || now == had[g] || e.keys[g].Current.Key.M() != now:
			t.Errorf("%s: no key %v, the one before %v", h.node.Name, now.IsZero(), now == had[g])
		}
	}
}

// TestNoKeyIsGuessed: without an import, a fabric that another subnet manager has locked is shown no key at all.
func TestNoKeyIsGuessed(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	e, had := locked(t, list(t, l, err), nil)
	e.cfg.MKey = ours(t, nil)
	e.logSend = func(r *sm.Request) {
		if !r.MAD.MKey().IsZero() {
			t.Errorf("%v %v shows a key", r.MAD.Method(), r.MAD.Attr())
		}
	}
	e.start()
	e.run(20 * time.Second)
	for g, k := range e.mkeysNow() {
		if k != had[g] {
			t.Errorf("%v has another key than before", g)
		}
	}
}

// TestReleaseLasts: keys that were given back are not given out again by a
// restart, but when that is said; then every device has one it never had.
func TestReleaseLasts(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, dual, rotating(t), 1)
		e.start()
		e.mustSettle(time.Minute)
		first := e.mkeysNow()
		e.step(&sm.ReleaseKeys{})
		e.mustSettle(time.Minute)
		before := e.sets()
		e.start()
		e.mustSettle(time.Minute)
		e.run(3 * time.Minute)
		if n := e.sets() - before; n != 0 {
			t.Errorf("%d Sets after a restart, want none", n)
		}
		if v := e.view.MKeys; v == nil || !v.Releasing || !v.Released {
			t.Errorf("the view says %+v, want released", v)
		}
		for g, k := range e.mkeysNow() {
			if !k.IsZero() {
				t.Errorf("%v has a key", g)
			}
		}
		e.step(&sm.ResumeKeys{})
		e.mustSettle(time.Minute)
		e.checkKeys()
		for g, k := range e.mkeysNow() {
			if k == first[g] {
				t.Errorf("%v has its first key again", g)
			}
		}
		e.start()
		e.mustSettle(time.Minute)
		if e.view.MKeys.Releasing {
			t.Error("released again after a restart")
		}
		e.checkKeys()
	})
}

// TestMoveKey: a device at another place is shown no key, so that one with a key
// does not even answer, until an operator says that it belongs there.
func TestMoveKey(t *testing.T) {
	for _, reset := range []bool{false, true} {
		l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 6})
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
		e.start()
		e.mustSettle(time.Minute)
		h := hosts(l)[0]
		guid, to := h.node.PortGUID(1), ib.PortNum(6)
		if err := e.fab.Unlink(h.node.Name, 1); err != nil {
			t.Fatal(err)
		}
		e.run(5 * time.Second)
		if reset {
			if err := e.fab.Reboot(h.node.Name); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.fab.Relink(h.node.Name, 1, h.peer, to); err != nil {
			t.Fatal(err)
		}
		e.run(20 * time.Second)
		if got := e.fab.PortInfo(h.node.Name, 1); got.PortState == ib.PortActive && !reset {
			t.Error("a device at another place is active")
		}
		in := &sm.MoveKey{GUID: guid}
		if !reset {
			in.Place = ib.Place{Switch: l.Find(h.peer).GUID, Port: to}
		}
		e.step(in)
		e.run(10 * time.Second)
		e.mustSettle(time.Minute)
		e.checkKeys()
		p := e.view.Fabric.PortByGUID(guid)
		if s := e.view.MKey(p); s == nil || s.Standing != mkeys.KeyHeld || s.Place.Port != to {
			t.Errorf("reset %v: it stands as %+v", reset, s)
		}
	}
}

// TestViewShowsKeyStates: a view says how each device stands to its key.
func TestViewShowsKeyStates(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, dual, rotating(t), 1)
		e.start()
		e.mustSettle(time.Minute)
		check := func(epoch keys.Epoch) {
			t.Helper()
			n := 0
			for i := range e.view.Fabric.Ports() {
				s := e.view.MKey(i)
				if s == nil {
					continue
				}
				n++
				rec := e.keys[s.GUID]
				if s.Standing != mkeys.KeyHeld || s.Epoch != epoch || s.Epoch != rec.Current.Epoch || s.Place != rec.Place || !s.Dual {
					t.Errorf("%+v, and the record is of epoch %d at %v", *s, rec.Current.Epoch, rec.Place)
				}
				if why := s.Why(e.view.MKeys, e.now); why != "" {
					t.Errorf("%v is old: %s", s.GUID, why)
				}
			}
			if want := len(managementPorts(l)); n != want {
				t.Errorf("%d states, want %d", n, want)
			}
		}
		e.run(10 * time.Second) // which devices accept two keys is asked in the background
		e.mustSettle(time.Minute)
		check(1)
		e.run(55 * time.Second)
		e.mustSettle(time.Minute)
		check(2)
	})
}
