package settling_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/settling"
)

// TestCause checks that work is put down to what began it, and work without a cause of its own to a trap shortly before.
func TestCause(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		why   settling.Cause
		trap  time.Duration // how long before; 0: none
		audit bool
		want  string
	}{
		{name: "nothing", want: "retry"},
		{name: "an intent", why: settling.ByIntent(7), want: "intent 7"},
		{name: "a request", why: settling.ByRequest(), want: "another subnet manager"},
		{name: "an audit", why: settling.ByIntent(7), audit: true, want: "audit"},
		{name: "a trap just now", trap: time.Second, want: "trap 128 (link state change) from LID 5"},
		{name: "a trap long ago", trap: 2 * time.Second, want: "retry"},
		{name: "an intent after a trap", why: settling.ByIntent(8), trap: time.Second, want: "intent 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c settling.Tally
			now := start
			c.Begin(settling.ByStart())
			c.Start(now, settling.Sent{})
			if s := c.Settle(now.Add(time.Second), settling.Sent{All: 9, Sets: 2}); s.Cause.String() != "start" || s.Work != 9 || s.Took != time.Second {
				t.Errorf("the start: %+v", s)
			}
			now = now.Add(time.Minute)
			if tt.trap != 0 {
				c.NoteTrap(now.Add(-tt.trap), ib.LID(5), mad.TrapLinkStateChange)
			}
			c.Begin(tt.why)
			if !c.Disturb(now, settling.Sent{All: 10, Sets: 2}, tt.audit) || c.Disturb(now, settling.Sent{All: 11}, true) || c.IsSettled() {
				t.Error("the fabric is to be disturbed once")
			}
			c.Repeated++
			s := c.Settle(now.Add(3*time.Second), settling.Sent{All: 19, Sets: 5})
			if got := s.Cause.String(); got != tt.want {
				t.Errorf("caused by %q, want %q", got, tt.want)
			}
			if s.Since != 62*time.Second || s.Took != 3*time.Second || s.Work != 9 || s.Sent != (settling.Sent{All: 10, Sets: 3}) || s.Repeated != 1 {
				t.Errorf("work %+v", s)
			}
		})
	}
}

// TestPhase checks that phases come in the order of a bring-up.
func TestPhase(t *testing.T) {
	for _, tt := range []struct {
		at   settling.Stage
		want settling.Phase
	}{
		{settling.Stage{State: ib.SMDiscovering}, settling.Discovery},
		{settling.Stage{State: ib.SMMaster}, settling.Routing},
		{settling.Stage{State: ib.SMMaster, Routed: true, Routing: true}, settling.Routing},
		{settling.Stage{State: ib.SMMaster, Routed: true, Forwarding: true, Waiting: true}, settling.Forwarding},
		{settling.Stage{State: ib.SMMaster, Routed: true, Waiting: true}, settling.Ports},
		{settling.Stage{State: ib.SMMaster, Routed: true}, settling.Settling},
		{settling.Stage{State: ib.SMMaster, Settled: true}, settling.Done},
		{settling.Stage{State: ib.SMStandby, Settled: true}, settling.Standing},
	} {
		if got := tt.at.Phase(); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.at, got, tt.want)
		}
	}
}
