package limit

import (
	"net/netip"
	"testing"
	"time"
)

func TestSource(t *testing.T) {
	for _, tt := range []struct{ addr, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"fe80::1%eth0", "fe80::"},
		{"", "invalid IP"},
	} {
		a, _ := netip.ParseAddr(tt.addr) // the zero Addr for ""
		if got := Source(a).String(); got != tt.want {
			t.Errorf("Source(%q) = %s, want %s", tt.addr, got, tt.want)
		}
	}
}

func TestRefills(t *testing.T) {
	l, now := New[string](Rate{PerSecond: 1, Burst: 2}), time.Unix(0, 0)
	for i, want := range []bool{true, true, false} {
		if got := l.Allow("a", now); got != want {
			t.Errorf("request %d: %v, want %v", i, got, want)
		}
	}
	if !l.Allow("a", now.Add(time.Second)) {
		t.Error("a second later: refused, want allowed")
	}
}

// Spent tokens are owed, up to a burst, and a bucket that owes has nothing until that is made up for.
func TestSpends(t *testing.T) {
	l, now := New[string](Rate{PerSecond: 1, Burst: 4}), time.Unix(0, 0)
	for i, want := range []bool{true, true, false} {
		if got := l.Has("a", now); got != want {
			t.Errorf("before %d: %v, want %v", i, got, want)
		}
		l.Spend("a", now, 3)
	}
	l.Spend("b", now, 1000)
	for _, tt := range []struct {
		key   string
		after time.Duration
		want  bool
	}{{"a", 5 * time.Second, false}, {"a", 6 * time.Second, true}, {"b", 0, false}, {"b", time.Second, true}} {
		if got := l.Has(tt.key, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s after %v: %v, want %v", tt.key, tt.after, got, tt.want)
		}
	}
}

// A flood of keys must not grow memory, nor shut out a key that is already known, nor grant a new bucket to a key that used
// its bucket up.
func TestIsBounded(t *testing.T) {
	l, now := New[int](Rate{PerSecond: 1, Burst: 2}), time.Unix(0, 0)
	const known, spent = -1, -2
	l.Allow(known, now)
	l.Allow(spent, now)
	l.Allow(spent, now)
	key := 0
	for ; key < MaxKeys+100; key++ {
		l.Allow(key, now)
	}
	if n := l.Len(); n > MaxKeys {
		t.Errorf("%d keys held, want at most %d", n, MaxKeys)
	}
	if !l.Allow(known, now) {
		t.Error("a known key was shut out")
	}
	if l.Allow(spent, now) {
		t.Error("a key got another burst after a flood of others")
	}
	if l.Allow(key, now) {
		t.Error("a further key got a bucket of its own, want the shared one, which is empty")
	}
	later := now.Add(time.Minute)
	if !l.Allow(key, later) || l.Len() > MaxKeys/2 {
		t.Errorf("after a quiet minute %d keys are held, want the idle ones forgotten", l.Len())
	}
}

// Looking for idle keys costs a pass over all of them: a flood must not cause
// one each.
func TestSweepsSeldom(t *testing.T) {
	l, now := New[int](Rate{PerSecond: 1000, Burst: 1}), time.Unix(0, 0)
	for i := range MaxKeys {
		l.Allow(i, now)
	}
	l.Allow(MaxKeys, now) // looks, and finds none idle
	soon := now.Add(sweepEvery / 2)
	l.Allow(MaxKeys+1, soon)
	if n := l.Len(); n != MaxKeys {
		t.Errorf("%d keys held half a pause after the last look, want still %d", n, MaxKeys)
	}
	l.Allow(MaxKeys+2, now.Add(sweepEvery))
	if n := l.Len(); n != 1 {
		t.Errorf("%d keys held after another look, want the newest alone", n)
	}
}
