package sm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
)

// rotating is keyed, with new keys every minute.
func rotating(t testing.TB) sm.Config {
	t.Helper()
	cfg := keyed(t)
	cfg.MKey.Rotation = keys.RotationConfig{Period: time.Minute, Grace: 10 * time.Second, Window: 3}
	return cfg
}

var dual = sim.Options{LoseSilently: true, Device: sim.Device{DualMKey: true}}

// epochs counts devices by the epoch of the key they are on.
func (e *env) epochs() map[keys.Epoch]int {
	out := make(map[keys.Epoch]int)
	for _, p := range managementPorts(e.list) {
		out[e.keys[p.guid].Current.Epoch]++
	}
	return out
}

func (e *env) mkeysNow() map[ib.GUID]ib.MKey {
	out := make(map[ib.GUID]ib.MKey)
	for _, p := range managementPorts(e.list) {
		out[p.guid] = e.fab.PortInfo(p.node, p.num).MKey
	}
	return out
}

// TestMKeyRotation: after a period, and not before, every device has a new key,
// and the old one opens nothing after the grace.
func TestMKeyRotation(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, dual, rotating(t), 1)
		e.start()
		e.mustSettle(time.Minute)
		first := e.mkeysNow()
		e.run(58 * time.Second)
		if diff := cmp.Diff(first, e.mkeysNow()); diff != "" {
			t.Fatalf("keys changed before the first period was over:\n%s", diff)
		}
		e.run(4 * time.Second)
		e.mustSettle(time.Second)
		e.checkKeys()
		for guid, k := range e.mkeysNow() {
			if k == first[guid] {
				t.Errorf("%v still has its first key", guid)
			}
			if rec := e.keys[guid]; rec.Previous.Key.M() != first[guid] {
				t.Errorf("%v: the key before is forgotten before the grace is over", guid)
			}
		}
		e.run(15 * time.Second)
		e.mustSettle(time.Minute)
		for guid := range first {
			if rec := e.keys[guid]; !rec.Previous.IsZero() {
				t.Errorf("%v: the key before is still there after the grace", guid)
			}
		}
		e.run(2 * time.Minute)
		e.mustSettle(time.Minute)
		e.checkKeys()
		if diff := cmp.Diff(map[keys.Epoch]int{4: len(first)}, e.epochs()); diff != "" {
			t.Errorf("epochs after three periods (-want +got):\n%s", diff)
		}
		for _, p := range managementPorts(l) {
			if n := e.fab.PortInfo(p.node, p.num).MKeyViolations; n != 0 {
				t.Errorf("%s/%d counted %d SMPs with a wrong key", p.node, p.num, n)
			}
		}
	})
}

// TestMKeyOfSingleKeyDevices: a device that holds one key at a time keeps it, and
// is listed.
func TestMKeyOfSingleKeyDevices(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 4})
	e := newEnv(t, list(t, l, err), dual, rotating(t), 1)
	single := hosts(l)[1]
	if err := e.fab.SetDevice(single.node.Name, sim.Device{}); err != nil {
		t.Fatal(err)
	}
	e.start()
	e.mustSettle(time.Minute)
	first := e.mkeysNow()
	e.run(61 * time.Second)
	e.mustSettle(time.Minute)
	e.checkKeys()
	same := 0
	for guid, k := range e.mkeysNow() {
		if k == first[guid] {
			same++
		}
	}
	if guid := single.node.PortGUID(1); same != 1 || e.mkeysNow()[guid] != first[guid] {
		t.Errorf("%d devices kept their key, want that one", same)
	}
	for _, ev := range e.takeEvents() {
		if x, ok := ev.(*keyevent.KeysRotated); ok {
			if x.Single != 1 || x.Failed != 0 || x.Done != len(first)-1 || x.Old != 1 {
				t.Errorf("%v; %d old ones", x, x.Old)
			}
			return
		}
	}
	t.Error("nobody is told of the rotation")
}

// TestMKeyRotationKilledAtEveryStep: a subnet manager that is killed after any
// step of a rotation is followed by one under which every device ends reachable
// and on exactly one known key, of the new epoch.
func TestMKeyRotationKilledAtEveryStep(t *testing.T) {
	for _, o := range map[string]sim.Options{"dual": dual, "fickle": {LoseSilently: true}} {
		for step := 1; ; step++ {
			l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 5})
			e := newEnv(t, list(t, l, err), o, rotating(t), uint64(step))
			e.start()
			e.mustSettle(time.Minute)
			e.run(time.Minute - e.now.Sub(epoch) - 100*time.Millisecond)
			from := e.steps
			for e.steps < from+step && e.next(epoch.Add(75*time.Second)) {
			}
			done := e.now.Sub(epoch) >= 74*time.Second
			e.start()
			e.run(20 * time.Second)
			e.mustSettle(time.Minute)
			e.checkKeys()
			if got := e.epochs(); len(got) != 1 {
				t.Errorf("devices by epoch: %v, want all on one", got)
			}
			if t.Failed() {
				t.Fatalf("killed after step %d of the rotation", step)
			}
			if done {
				if o.Device.DualMKey && step < 30 {
					t.Errorf("a rotation of %d steps, want more to crash at", step)
				}
				break
			}
		}
	}
}

// TestMKeyRelease: all keys are given back on request, also by a subnet manager
// that is killed at it and asked again.
func TestMKeyRelease(t *testing.T) {
	keyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
		for _, steps := range []int{0, 1, 5, 20} {
			e := newEnv(t, l, dual, rotating(t), 1)
			e.start()
			e.mustSettle(time.Minute)
			if steps > 0 {
				e.step(&sm.ReleaseKeys{})
				for range steps {
					e.next(e.now.Add(time.Second))
				}
				e.start()
				e.mustSettle(time.Minute)
			}
			e.takeEvents()
			e.step(&sm.ReleaseKeys{})
			e.mustSettle(time.Minute)
			for guid, k := range e.mkeysNow() {
				if rec := e.keys[guid]; !k.IsZero() || !rec.Retired {
					t.Errorf("%v: holds a key: %v, the record is retired: %v", guid, !k.IsZero(), rec.Retired)
				}
			}
			told := false
			for _, ev := range e.takeEvents() {
				if x, ok := ev.(*keyevent.KeysReleased); ok {
					told = x.Kept == 0 && x.Released == len(e.mkeysNow())
				}
			}
			if !told {
				t.Error("nobody is told that all keys were given back")
			}
			before := e.sets()
			e.cfg.MKey = mkeys.Config{}
			e.start()
			e.mustSettle(time.Minute)
			if n := e.sets() - before; n != 0 || len(e.problems()) != 0 {
				t.Errorf("without keys: %d Sets after a restart, problems %q", n, e.problems())
			}
		}
	})
}
