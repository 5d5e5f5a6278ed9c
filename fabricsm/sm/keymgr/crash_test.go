package keymgr_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestCrashAtEveryStep: whenever the manager is killed while keys are given out,
// the next one ends with every device on exactly one known key.
func TestCrashAtEveryStep(t *testing.T) {
	for what, device := range map[string]sim.Device{
		"two keys": sim.Modern(),
		"one key":  {CC: sim.ClassKeyed, VS: sim.ClassKeyed, N2N: sim.ClassKeyed},
	} {
		t.Run(what, func(t *testing.T) { crashAtEveryStep(t, device) })
	}
}

func crashAtEveryStep(t *testing.T, device sim.Device) {
	for step := 1; ; step++ {
		l, err := netlist.Chain(netlist.Shape{Hosts: 2, Radix: 4})
		e := newEnv(t, must(t, l, err), device, uint64(step))
		e.start()
		for e.steps < step && e.next(e.now.Add(time.Second)) && !e.quiet() {
		}
		done := e.quiet()
		e.start()
		e.settle(time.Minute)
		e.checkKeys()
		if t.Failed() {
			t.Fatalf("killed after step %d", step)
		}
		if done {
			if step < 50 {
				t.Errorf("a bring-up of %d steps, want more to crash at", step)
			}
			return
		}
	}
}

// rotating has keys changed every ten minutes.
func (e *env) rotating() {
	e.cfg.ClassKeys.Rotation = keys.RotationConfig{Period: 10 * time.Minute, Grace: time.Minute, Window: 3}
}

var allKinds = append([]keys.Kind{keys.N2NNodeKey}, kinds...)

// epochs counts keys by their epoch.
func (e *env) epochs() map[keys.Epoch]int {
	out := make(map[keys.Epoch]int)
	for _, p := range endPorts(e.list) {
		for _, k := range allKinds {
			if k != keys.N2NNodeKey || p.sw {
				out[e.saved[name{k, p.guid}].Current.Epoch]++
			}
		}
	}
	return out
}

// now gives all manager keys as they are on devices.
func (e *env) keysNow() map[name]ib.MKey {
	out := make(map[name]ib.MKey)
	for _, p := range endPorts(e.list) {
		for _, k := range kinds {
			have, _ := e.fab.ClassKey(p.node, p.num, classes[k])
			out[name{k, p.guid}] = have.Key
		}
	}
	return out
}

// TestRotation: after a period, and not before, every device has new keys, and the
// old ones open nothing after the grace.
func TestRotation(t *testing.T) {
	fabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, sim.Modern(), 1)
		e.rotating()
		e.start()
		e.settle(time.Minute)
		first := e.keysNow()
		e.run(9*time.Minute + 59*time.Second - e.now.Sub(epoch))
		for n, k := range e.keysNow() {
			if k != first[n] {
				t.Fatalf("%v of %v changed before the first period was over", n.kind, n.guid)
			}
		}
		e.run(5 * time.Second)
		e.settle(time.Minute)
		e.checkKeys()
		for n, k := range e.keysNow() {
			if k == first[n] {
				t.Errorf("%v of %v was not changed", n.kind, n.guid)
			}
			if e.saved[n].Previous.Key.M() != first[n] {
				t.Errorf("%v of %v: the key before is forgotten before the grace is over", n.kind, n.guid)
			}
		}
		e.run(65 * time.Second)
		e.settle(time.Minute)
		for n, r := range e.saved {
			if !r.Previous.IsZero() {
				t.Errorf("%v of %v: the key before is still there after the grace", n.kind, n.guid)
			}
		}
		for _, p := range endPorts(l) {
			for _, kind := range kinds {
				k, _ := e.fab.ClassKey(p.node, p.num, classes[kind])
				if k.Violations != 0 || k.NodeViolations != 0 || !k.Previous.IsZero() {
					t.Errorf("%s/%d, %v: %d requests with a wrong key, %d of switches, the key before is accepted: %v",
						p.node, p.num, kind, k.Violations, k.NodeViolations, !k.Previous.IsZero())
				}
			}
		}
		if got := e.epochs(); len(got) != 1 || got[2] == 0 {
			t.Errorf("keys by epoch: %v, want all on 2", got)
		}
		if n := len(eventsOf[*sm.KeysRotated](e.events)); n != len(allKinds) {
			t.Errorf("%d rotations were told of, want %d", n, len(allKinds))
		}
	})
}

// TestSwitchesTalkWhileKeysRotate: at no step of a rotation do neighbours refuse
// each other.
func TestSwitchesTalkWhileKeysRotate(t *testing.T) {
	l, err := netlist.Chain(netlist.Shape{Hosts: 4, Radix: 5})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.rotating()
	e.start()
	e.settle(time.Minute)
	e.run(10*time.Minute - time.Second - e.now.Sub(epoch))
	for seen := 0; e.now.Sub(epoch) < 10*time.Minute+5*time.Second; {
		if !e.next(epoch.Add(10*time.Minute + 5*time.Second)) {
			break
		}
		if e.steps != seen {
			seen = e.steps
			e.checkNotified()
		}
		if t.Failed() {
			t.Fatalf("after step %d", e.steps)
		}
	}
	if got := e.epochs(); len(got) != 1 || got[2] == 0 {
		t.Errorf("keys by epoch: %v, want all on 2", got)
	}
}

// TestRotationKilledAtEveryStep: a manager that is killed after any step of a
// rotation is followed by one under which every device ends reachable and on
// exactly one known key, of the new epoch.
func TestRotationKilledAtEveryStep(t *testing.T) {
	for step := 1; ; step++ {
		l, err := netlist.Chain(netlist.Shape{Hosts: 2, Radix: 4})
		e := newEnv(t, must(t, l, err), sim.Modern(), uint64(step))
		e.rotating()
		e.start()
		e.settle(time.Minute)
		e.run(10*time.Minute - 100*time.Millisecond - e.now.Sub(epoch))
		from, end := e.steps, epoch.Add(12*time.Minute)
		for e.steps < from+step && e.next(end) {
		}
		done := !e.now.Before(end)
		e.start()
		e.run(2 * time.Minute)
		e.settle(time.Minute)
		e.checkKeys()
		if got := e.epochs(); len(got) != 1 || got[2] == 0 {
			t.Errorf("keys by epoch: %v, want all on 2", got)
		}
		if t.Failed() {
			t.Fatalf("killed after step %d of the rotation", step)
		}
		if done {
			if step < 100 {
				t.Errorf("a rotation of %d steps, want more to crash at", step)
			}
			return
		}
	}
}

// TestLoss: whatever is lost, late or doubled, every device ends on its own keys.
func TestLoss(t *testing.T) {
	for seed := range uint64(15) {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 4})
		e := newEnv(t, must(t, l, err), sim.Modern(), seed)
		e.rotating()
		e.bad = chaos{lose: 0.1, twice: 0.05, delay: 0.05}
		e.start()
		e.run(11 * time.Minute)
		e.bad = chaos{}
		e.run(5 * time.Minute) // those that were given up are looked at again
		e.settle(time.Minute)
		e.checkKeys()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
