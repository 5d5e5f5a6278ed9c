package traps_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/sm/traps"
)

const hold = 10 * time.Millisecond

// TestLook checks that looks at a source of false traps become rare, and that they are not for one that proves true.
func TestLook(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l traps.Look
	if l.Wait(now) != 0 || l.IsDue() || !l.IsCredible(hold) {
		t.Error("the first trap of a node has to wait, or is held against it")
	}
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000} {
		l.Begin(now, hold)
		if got := l.Wait(now); got != want*time.Millisecond {
			t.Errorf("the next look waits %v, want %v", got, want*time.Millisecond)
		}
		now = now.Add(l.Wait(now))
	}
	if l.Wait(now) != 0 || l.IsCredible(hold) {
		t.Error("a look has to wait at its time, or ten false traps are not held against the node")
	}
	l.Await()
	if !l.IsDue() {
		t.Error("the look does not wait")
	}
	l.Prove()
	if !l.IsCredible(hold) {
		t.Error("a true trap is held against the node")
	}
	if l.Begin(now, hold); l.Wait(now) != hold || l.IsDue() {
		t.Errorf("after a true trap the next look waits %v, want %v", l.Wait(now), hold)
	}
	l.Begin(now.Add(hold), hold)
	now = now.Add(11*hold + 1) // four pauses of 20 ms after the last hold
	if l.Begin(now, hold); l.Wait(now) != hold {
		t.Errorf("after a quiet time the next look waits %v, want %v", l.Wait(now), hold)
	}
	if l.Begin(now, 3*time.Second); l.Wait(now) != 3*time.Second {
		t.Errorf("with a hold of 3 s the next look waits %v", l.Wait(now))
	}
}
