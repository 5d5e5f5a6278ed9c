package sm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/transport"
)

// keyed is a configuration under which devices get M_Keys where they are seen.
func keyed(t testing.TB) sm.Config {
	t.Helper()
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return sm.Config{AuditPeriod: -1, MKey: mkeys.Config{Source: keys.Derived{Master: m}, Places: keyplace.Seen}}
}

// management names a port that has an M_Key of its own.
type management struct {
	node string
	num  ib.PortNum
	guid ib.GUID
}

func managementPorts(l *netlist.Netlist) (out []management) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Type == ib.NodeSwitch {
			out = append(out, management{n.Name, 0, n.GUID})
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer != "" {
				out = append(out, management{n.Name, ib.PortNum(num), n.PortGUID(ib.PortNum(num))})
			}
		}
	}
	return out
}

// checkKeys finds devices that are not on the one key that their record says.
func (e *env) checkKeys() {
	e.t.Helper()
	seen := make(map[ib.MKey]string)
	for _, p := range managementPorts(e.list) {
		pi := e.fab.PortInfo(p.node, p.num)
		rec, ok := e.keys[p.guid]
		switch {
		case pi.MKey.IsZero():
			e.t.Errorf("%s/%d has no M_Key; problems %q", p.node, p.num, e.problems())
		case seen[pi.MKey] != "":
			e.t.Errorf("%s/%d has the M_Key of %s", p.node, p.num, seen[pi.MKey])
		case pi.MKeyProtectBits != 2:
			e.t.Errorf("%s/%d has protection level %d", p.node, p.num, pi.MKeyProtectBits)
		case !ok || rec.Current.Key.M() != pi.MKey || !rec.Pending.IsZero():
			e.t.Errorf("%s/%d is not on the one key that is saved for it (a record: %v, one pending: %v)", p.node, p.num, ok, !rec.Pending.IsZero())
		}
		seen[pi.MKey] = fmt.Sprintf("%s/%d", p.node, p.num)
	}
}

func keyFabrics(t *testing.T, f func(t *testing.T, l *netlist.Netlist)) {
	for name, shape := range map[string]func() (*netlist.Netlist, error){
		"one switch": func() (*netlist.Netlist, error) { return netlist.Single(netlist.Shape{Hosts: 3, Radix: 4}) },
		"two levels": func() (*netlist.Netlist, error) { return netlist.FatTree2(netlist.Shape{Hosts: 12, Radix: 8}) },
		"chain":      func() (*netlist.Netlist, error) { return netlist.Chain(netlist.Shape{Hosts: 6, Radix: 8}) },
		"dual port":  func() (*netlist.Netlist, error) { return netlist.DualPort(netlist.Shape{Hosts: 5, Radix: 8}) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := shape()
			f(t, list(t, l, err))
		})
	}
}

// TestMKeysOfABringUp: every device gets a key of its own, and is asked under it
// after a restart, which changes nothing.
func TestMKeysOfABringUp(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, sim.Options{LoseSilently: true}, keyed(t), 1)
		e.start()
		e.mustSettle(time.Minute)
		e.checkKeys()
		if e.smps["Get PortInfo"] == 0 || len(e.problems()) > 0 {
			t.Errorf("problems %q", e.problems())
		}
		before := e.sets()
		e.start()
		e.mustSettle(time.Minute)
		e.checkKeys()
		if n := e.sets() - before; n != 0 {
			t.Errorf("%d Sets after a restart on a settled fabric, want none", n)
		}
		for _, p := range managementPorts(l) {
			if n := e.fab.PortInfo(p.node, p.num).MKeyViolations; n != 0 {
				t.Errorf("%s/%d counted %d SMPs with a wrong key", p.node, p.num, n)
			}
		}
	})
}

// TestMKeyKeepsOthersOut: with keys, a host can neither write nor read what is
// not its own.
func TestMKeyKeepsOthersOut(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	e.start()
	e.mustSettle(time.Minute)
	h := hosts(l)[0]
	before := e.fab.PortInfo(h.peer, 0)
	st, err := e.fab.Station(h.node.Name, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		way, _ := (mad.Route{}).Append(1)
		p := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: mad.AttrPortInfo, TID: 77}, &way, ib.MKey{})
		if got := st.Exchange([]transport.Packet{p}, nil); len(got) != 0 {
			t.Errorf("%v PortInfo without the key was answered", method)
		}
	}
	after := e.fab.PortInfo(h.peer, 0)
	before.MKeyViolations += 2
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("PortInfo of port 0 (-want +got):\n%s", diff)
	}
}

// TestMKeyAfterReboot: a device that was reset, and so holds no key, gets its own
// back.
func TestMKeyAfterReboot(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		for i := range l.Nodes {
			name := l.Nodes[i].Name
			if name == "sm" {
				continue
			}
			cfg := keyed(t)
			cfg.AuditPeriod = time.Second
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.mustSettle(time.Minute)
			if err := e.fab.Reboot(name); err != nil {
				t.Fatal(err)
			}
			e.run(10 * time.Second)
			e.mustSettle(time.Minute)
			e.checkKeys()
			if t.Failed() {
				t.Fatalf("after a reboot of %s; events %v", name, e.events)
			}
		}
	})
}

// TestMKeyCrashAtEveryStep: whenever the subnet manager is killed while keys are
// given out, the next one ends with every device on exactly one known key.
func TestMKeyCrashAtEveryStep(t *testing.T) {
	for step := 1; ; step++ {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), uint64(step))
		e.start()
		for e.steps < step && e.next(e.now.Add(time.Second)) {
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
				t.Errorf("a bring-up of %d steps, want more to crash at", step)
			}
			return
		}
	}
}

// TestMKeysUnderLoss: whatever is lost, every device ends on its own key.
func TestMKeysUnderLoss(t *testing.T) {
	for seed := range uint64(200) {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 4})
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), seed)
		e.bad = chaos{lose: 0.1, twice: 0.05, delay: 0.05}
		e.start()
		e.run(30 * time.Second)
		e.bad = chaos{}
		e.run(2 * time.Minute)
		e.mustSettle(time.Minute)
		e.checkKeys()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// give sets the M_Key of an end port by its own host, before any subnet manager came.
func (e *env) give(node string, key uint64, level uint8) {
	e.t.Helper()
	st, err := e.fab.Station(node, false)
	if err != nil {
		e.t.Fatal(err)
	}
	pi := e.fab.PortInfo(node, 1)
	pi.MKey, pi.MKeyProtectBits = ib.NewMKey(key), level
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	pi.LID, pi.MasterSMLID = 77, 78
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo, TID: 78}, &mad.Route{}, ib.MKey{})
	if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
		e.t.Fatal(err)
	}
	if got := st.Exchange([]transport.Packet{p}, nil); len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
		e.t.Fatalf("Set PortInfo of %s by its own host: %v", node, got)
	}
	st.Close()
}

// TestMKeyOfSomebodyElse: a device that holds a key of another manager stays out, is reported, and does not hold up other
// devices.
func TestMKeyOfSomebodyElse(t *testing.T) {
	for level := range uint8(4) {
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 4})
			e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
			h := hosts(l)[0]
			e.give(h.node.Name, 0xbad, level)
			e.start()
			e.run(20 * time.Second)
			e.mustSettle(time.Minute)
			if pi := e.fab.PortInfo(h.node.Name, 1); pi.MKey != ib.NewMKey(0xbad) || pi.PortState == ib.PortActive {
				t.Errorf("the port is %v, key ours: %v", pi.PortState, pi.MKey != ib.NewMKey(0xbad))
			}
			if len(e.problems()) == 0 {
				t.Error("nobody is told")
			}
			for _, o := range hosts(l)[1:] {
				if pi := e.fab.PortInfo(o.node.Name, 1); pi.PortState != ib.PortActive || pi.MKey.IsZero() {
					t.Errorf("%s is %v, has a key: %v", o.node.Name, pi.PortState, !pi.MKey.IsZero())
				}
			}
		})
	}
}

// TestMKeyIsRenewedAfterItWasShown: another device answers where a device belongs. It has seen the key of the owner, so the
// owner gets another. The other device never gets the key of the owner.
func TestMKeyIsRenewedAfterItWasShown(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 6})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	hs := hosts(l)
	victim, thief := hs[0], hs[1]
	e.start()
	e.mustSettle(time.Minute)
	old := e.fab.PortInfo(victim.node.Name, 1).MKey
	e.takeEvents()
	for _, do := range []func() error{
		func() error { return e.fab.Unlink(victim.node.Name, 1) },
		func() error { return e.fab.Unlink(thief.node.Name, 1) },
		func() error { return e.fab.Reboot(thief.node.Name) },
		func() error { return e.fab.Relink(thief.node.Name, 1, victim.peer, victim.pnum) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		e.run(5 * time.Second)
	}
	if got := e.fab.PortInfo(thief.node.Name, 1).MKey; !got.IsZero() {
		t.Errorf("a device away from its place has an M_Key, that of its victim: %v", got == old)
	}
	exposed := false
	for _, ev := range e.takeEvents() {
		if x, ok := ev.(*keyevent.KeyExposed); ok {
			exposed = x.GUID == victim.node.PortGUID(1) && x.To == thief.node.PortGUID(1)
		}
	}
	if !exposed {
		t.Error("nobody is told that the key was shown")
	}
	for _, do := range []func() error{
		func() error { return e.fab.Unlink(thief.node.Name, 1) },
		func() error { return e.fab.Relink(thief.node.Name, 1, thief.peer, thief.pnum) },
		func() error { return e.fab.Relink(victim.node.Name, 1, victim.peer, victim.pnum) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		e.run(5 * time.Second)
	}
	e.mustSettle(time.Minute)
	e.checkKeys()
	if got := e.fab.PortInfo(victim.node.Name, 1).MKey; got == old {
		t.Error("the victim still has the key that was shown")
	}
}
