package api

import (
	"net/netip"
	"testing"
	"time"
)

func TestSourceOf(t *testing.T) {
	for _, tt := range []struct{ remote, want string }{
		{"192.0.2.1:4711", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:4711", "192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::"},
		{"[fe80::1%eth0]:4711", "fe80::"},
		{"@", "invalid IP"},
		{"", "invalid IP"},
	} {
		if got := sourceOf(tt.remote).String(); got != tt.want {
			t.Errorf("sourceOf(%q) = %s, want %s", tt.remote, got, tt.want)
		}
	}
}

func TestLimiterRefills(t *testing.T) {
	l, now := newLimiter(Rate{PerSecond: 1, Burst: 2}), time.Unix(0, 0)
	a := netip.MustParseAddr("192.0.2.1")
	for i, want := range []bool{true, true, false} {
		if got := l.allow(a, now); got != want {
			t.Errorf("request %d: %v, want %v", i, got, want)
		}
	}
	if !l.allow(a, now.Add(time.Second)) {
		t.Error("a second later: refused, want allowed")
	}
}

// A flood from many addresses must neither grow memory nor shut out a source
// that is already known.
func TestLimiterIsBounded(t *testing.T) {
	l, now := newLimiter(Rate{PerSecond: 1, Burst: 2}), time.Unix(0, 0)
	known := netip.MustParseAddr("192.0.2.1")
	l.allow(known, now)
	addr := netip.MustParseAddr("10.0.0.0")
	for range maxSources + 100 {
		addr = addr.Next()
		l.allow(addr, now)
	}
	if len(l.sources) > maxSources {
		t.Errorf("%d sources held, want at most %d", len(l.sources), maxSources)
	}
	if !l.allow(known, now) {
		t.Error("a known source was shut out")
	}
	if l.allow(addr.Next(), now) {
		t.Error("a further source got a bucket of its own, want the shared one, which is empty")
	}
	later := now.Add(time.Minute)
	if !l.allow(addr.Next(), later) || len(l.sources) > maxSources/2 {
		t.Errorf("after a quiet minute %d sources are held, want the idle ones forgotten", len(l.sources))
	}
}
