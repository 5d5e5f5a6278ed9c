package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// keyedSwitch is a settled fabric of one switch with M_Keys, and its hosts.
func keyedSwitch(t *testing.T) (*env, []endPort) {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 6})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	e.start()
	e.mustSettle(time.Minute)
	e.run(10 * time.Second)
	return e, hosts(l)
}

// listens makes the device at a host's place read every request and answer only those for which answers returns true. It
// returns the keys that were shown there.
func (e *env) listens(h *endPort, answers func(*sm.Request) bool) map[ib.MKey]bool {
	shown := make(map[ib.MKey]bool)
	e.hostile = map[string]liar{h.node.Name: func(_ []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if !r.MAD.MKey().IsZero() {
			shown[r.MAD.MKey()] = true
		}
		return mad.MAD{}, !answers(r)
	}}
	return shown
}

// keyNow is the M_Key that a host holds.
func (e *env) keyNow(h *endPort) ib.MKey { return e.fab.PortInfo(h.node.Name, h.num).MKey }

// TestKeyOfARebootedAndRecabledDevice: a device is restarted and its cable is in
// another host, all within the moment in which it is asked. That host has seen its
// key. When the device is back it gets another, and not that one for a moment either.
func TestKeyOfARebootedAndRecabledDevice(t *testing.T) {
	e, hs := keyedSwitch(t)
	h, thief := &hs[0], &hs[1]
	was := e.keyNow(h)
	seen := false
	e.logSend = func(r *sm.Request) {
		if seen || e.reached(&r.MAD) != h.node.Name || r.MAD.MKey() != was {
			return
		}
		seen = true // the request leaves now, and meets the thief
		if err := e.fab.Unlink(h.node.Name, h.num); err != nil {
			t.Fatal(err)
		}
		if err := e.fab.Reboot(h.node.Name); err != nil {
			t.Fatal(err)
		}
		if err := e.fab.Recable(sim.Endpoint{Node: thief.node.Name, Port: 1}, sim.Endpoint{Node: h.peer, Port: h.pnum}); err != nil {
			t.Fatal(err)
		}
	}
	e.step(&sm.MoveKey{GUID: h.node.PortGUID(1), Place: h.place}) // has it asked
	e.run(10 * time.Second)
	if !seen {
		t.Fatal("the device was not asked, so nothing is proven")
	}
	again := false
	e.logSend = func(r *sm.Request) {
		var pi mad.PortInfo
		if r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Method() == mad.MethodSet && mad.Decode(r.MAD.Data(), &pi) == nil && pi.MKey == was {
			again = true
		}
	}
	for _, cable := range [][2]*endPort{{thief, thief}, {h, h}} {
		if err := e.fab.Recable(sim.Endpoint{Node: cable[0].node.Name, Port: 1}, sim.Endpoint{Node: cable[1].peer, Port: cable[1].pnum}); err != nil {
			t.Fatal(err)
		}
		e.run(10 * time.Second)
	}
	e.mustSettle(time.Minute)
	e.checkKeys()
	if e.keyNow(h) == was || again {
		t.Errorf("the device has the key that was seen: %v; it was given it once more: %v", e.keyNow(h) == was, again)
	}
}

// TestKeyShownToASilentListener: a cable is put into something that answers nothing
// and reads what it is asked, then back.
func TestKeyShownToASilentListener(t *testing.T) {
	e, hs := keyedSwitch(t)
	h := &hs[0]
	was := e.keyNow(h)
	e.fab.Unlink(h.node.Name, h.num)
	e.run(5 * time.Second)
	shown := e.listens(h, func(*sm.Request) bool { return false })
	if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
		t.Fatal(err)
	}
	e.run(10 * time.Second)
	if !shown[was] {
		t.Fatal("the key was not shown, so nothing is proven")
	}
	e.start() // that it was shown outlasts the subnet manager
	e.run(100 * time.Millisecond)
	e.hostile = nil
	e.run(2 * time.Minute)
	e.mustSettle(time.Minute)
	e.checkKeys()
	if e.keyNow(h) == was {
		t.Error("the device has the key that somebody may have seen")
	}
}

// TestShownKeyIsReplacedAfterARestart: a device whose key another device has seen answers a subnet manager before that one
// is master, and gets another key as soon as it is.
func TestShownKeyIsReplacedAfterARestart(t *testing.T) {
	e, hs := keyedSwitch(t)
	h := &hs[0]
	was := e.keyNow(h)
	e.facts = append(e.facts, sm.Fact{Kind: sm.FactExposed, GUID: h.node.PortGUID(h.num), Mark: "shown"})
	e.start()
	e.mustSettle(10 * time.Second)
	e.run(10 * time.Second)
	e.checkKeys()
	if e.keyNow(h) == was {
		t.Error("the device has the key that somebody has seen")
	}
}

// TestKeyOutlastsARestart: a host that is restarted long after it was last asked, as hosts are, keeps its key: no other
// device has seen it.
func TestKeyOutlastsARestart(t *testing.T) {
	e, hs := keyedSwitch(t)
	h := &hs[0]
	was := e.keyNow(h)
	for range 3 {
		if err := e.fab.Reboot(h.node.Name); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(20 * time.Second)
		e.mustSettle(time.Minute)
		e.checkKeys()
	}
	if e.keyNow(h) != was {
		t.Errorf("it has another key, of epoch %v", e.keys[h.node.PortGUID(1)].Current.Epoch)
	}
}
