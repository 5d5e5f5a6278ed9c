package keymgr_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
)

// TestCrashAtEveryStep: whenever the manager is killed while keys are given out,
// the next one ends with every device on exactly one known key.
func TestCrashAtEveryStep(t *testing.T) {
	for what, device := range map[string]sim.Device{
		"two keys": sim.Modern(),
		"one key":  {CC: guard.Keyed, VS: guard.Keyed, N2N: guard.Keyed},
	} {
		t.Run(what, func(t *testing.T) { crashAtEveryStep(t, device) })
	}
}

func crashAtEveryStep(t *testing.T, device sim.Device) {
	for step := 1; ; step++ {
		l, err := netlist.Chain(netlist.Shape{Hosts: 2, Radix: 4})
		e := newEnv(t, must(t, l, err), device, uint64(step))
		e.start()
		e.Until(time.Minute, func() bool { return e.steps >= step || e.Settled() })
		done := e.Settled()
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
	e.SM.ClassKeys.Rotation = keys.RotationConfig{Period: 10 * time.Minute, Grace: time.Minute, Window: 3}
}

var allKinds = append([]keys.Kind{keys.N2NNodeKey}, kinds...)

// epochs counts keys by their epoch.
func (e *env) epochs() map[keys.Epoch]int {
	out := make(map[keys.Epoch]int)
	for _, p := range endPorts(e.List) {
		for _, k := range allKinds {
			if k != keys.N2NNodeKey || p.sw {
				out[e.saved[name{k, p.guid}].Current.Epoch]++
			}
		}
	}
	return out
}

// keysNow returns all manager keys as they are on devices.
func (e *env) keysNow() map[name]ib.MKey {
	out := make(map[name]ib.MKey)
	for _, p := range endPorts(e.List) {
		for _, k := range kinds {
			have, _ := e.Fabric.ClassKey(p.node, p.num, classes[k])
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
		e.Run(9*time.Minute + 59*time.Second - e.Now())
		for n, k := range e.keysNow() {
			if k != first[n] {
				t.Fatalf("%v of %v changed before the first period was over", n.kind, n.guid)
			}
		}
		e.Run(5 * time.Second)
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
		e.Run(65 * time.Second)
		e.settle(time.Minute)
		for n, r := range e.saved {
			if !r.Previous.IsZero() {
				t.Errorf("%v of %v: the key before is still there after the grace", n.kind, n.guid)
			}
		}
		for _, p := range endPorts(l) {
			for _, kind := range kinds {
				k, _ := e.Fabric.ClassKey(p.node, p.num, classes[kind])
				if k.Violations != 0 || k.NodeViolations != 0 || !k.Previous.IsZero() {
					t.Errorf("%s/%d, %v: %d requests with a wrong key, %d of switches, the key before is accepted: %v",
						p.node, p.num, kind, k.Violations, k.NodeViolations, !k.Previous.IsZero())
				}
			}
		}
		if got := e.epochs(); len(got) != 1 || got[2] == 0 {
			t.Errorf("keys by epoch: %v, want all on 2", got)
		}
		if n := len(eventsOf[*keyevent.KeysRotated](e.told())); n != len(allKinds) {
			t.Errorf("%d rotations were told of, want %d", n, len(allKinds))
		}
	})
}

// TestSwitchesTalkWhileKeysRotate: at no step of a rotation do neighbours reject each other.
func TestSwitchesTalkWhileKeysRotate(t *testing.T) {
	l, err := netlist.Chain(netlist.Shape{Hosts: 4, Radix: 5})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.rotating()
	e.start()
	e.settle(time.Minute)
	e.Run(10*time.Minute - time.Second - e.Now())
	seen := 0
	e.Until(6*time.Second, func() bool {
		if e.steps != seen {
			seen = e.steps
			e.checkNotified()
		}
		if t.Failed() {
			t.Fatalf("after step %d", e.steps)
		}
		return false
	})
	if got := e.epochs(); len(got) != 1 || got[2] == 0 {
		t.Errorf("keys by epoch: %v, want all on 2", got)
	}
}

// TestRotationKilled: a manager that is killed at a rotation, after any of its steps or
// before any of its packets leaves, is followed by one under which every device ends
// reachable and on exactly one known key, of the new epoch.
func TestRotationKilled(t *testing.T) {
	for what, kill := range map[string]func(e *env, n int) (done func() bool){
		"after each step": func(e *env, n int) func() bool {
			from := e.steps
			return func() bool { return e.steps >= from+n }
		},
		"before each packet": func(e *env, n int) func() bool {
			sent, core := 0, e.OnSend
			e.OnSend = func(r *sm.Request) bool {
				if r.MAD.IsSMP() {
					return core(r)
				}
				if sent++; sent == n {
					e.Crash()
				}
				return sent >= n
			}
			return func() bool { return !e.Running() }
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rotationKilled(t, kill)
		})
	}
}

func rotationKilled(t *testing.T, kill func(e *env, n int) (done func() bool)) {
	for n := 1; ; n++ {
		l, err := netlist.Chain(netlist.Shape{Hosts: 2, Radix: 4})
		e := newEnv(t, must(t, l, err), sim.Modern(), uint64(n))
		e.rotating()
		e.start()
		e.settle(time.Minute)
		e.Run(10*time.Minute - 100*time.Millisecond - e.Now())
		lossy := e.OnSend
		killed := e.Until(12*time.Minute-e.Now(), kill(e, n))
		e.OnSend = lossy
		e.start()
		e.Run(2 * time.Minute)
		e.settle(time.Minute)
		e.checkKeys()
		if got := e.epochs(); len(got) != 1 || got[2] == 0 {
			t.Errorf("keys by epoch: %v, want all on 2", got)
		}
		if t.Failed() {
			t.Fatalf("killed at moment %d of the rotation", n)
		}
		if !killed {
			if n < 90 {
				t.Errorf("a rotation of %d moments, want more to crash at", n)
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
		e.Run(11 * time.Minute)
		e.bad = chaos{}
		e.Run(5 * time.Minute) // devices that did not answer are asked again
		e.settle(time.Minute)
		e.checkKeys()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
