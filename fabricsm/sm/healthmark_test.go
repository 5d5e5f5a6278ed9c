package sm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// TestHealthStates follows what views say of the health of a place through marks,
// a rule, a restart and releases.
func TestHealthStates(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h, other := hosts(l)[3], hosts(l)[5]
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	shows := func(when string, want ...health.State) {
		t.Helper()
		e.run(2 * time.Second)
		e.mustSettle(10 * time.Second)
		got := []health.State{}
		for _, s := range e.view.Health {
			if s.Since.Before(epoch) || s.Since.After(e.now) {
				t.Errorf("%s: %v since %v", when, s.Place, s.Since)
			}
			if !s.Until.IsZero() {
				s.Until = time.Time{}.Add(s.Until.Sub(s.Since).Round(time.Minute))
			}
			s.Since = time.Time{}
			got = append(got, s)
		}
		if d := cmp.Diff(append([]health.State{}, want...), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	shows("at first")

	bad := health.State{Place: h.place, GUID: h.node.GUID, Mark: health.MarkUnhealthy, Unhealthy: true, Condition: health.Marked, Action: health.Isolate, Reason: "cable to be replaced"}
	good := health.State{Place: other.place, GUID: other.node.GUID, Mark: health.MarkHealthy, Reason: "under test"}
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkUnhealthy, Reason: "cable to be\x1b replaced"})
	bad.Reason = "cable to be? replaced"
	e.step(&sm.HealthMarked{Place: other.place, Mark: health.MarkHealthy, Reason: "under test"})
	want := []health.State{bad, good}
	if other.place.Switch < h.place.Switch {
		want = []health.State{good, bad}
	}
	shows("marked", want...)
	e.start()
	e.want(e.intent)
	for i := range want {
		want[i].GUID = 0
	}
	bad.GUID = 0
	shows("after a restart", want...)

	e.step(&sm.HealthMarked{Place: other.place, Mark: health.MarkNone})
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkUnhealthy, Reason: strings.Repeat("\u00e9", 150)})
	bad.Reason = strings.Repeat("\u00e9", 100)
	shows("with another reason", bad)
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkNone})
	shows("released")
	if !e.linked(h.place) {
		t.Error("released and still cut off")
	}

	e.flap(&h, 20)
	shows("flapping", health.State{
		Place: h.place, GUID: h.node.GUID, Unhealthy: true, Condition: health.Flapping, Action: health.Isolate,
		Reason: "12 times in 1m0s", Until: time.Time{}.Add(time.Minute),
	})
	e.start()
	e.want(e.intent)
	shows("flapping, after a restart", health.State{
		Place: h.place, Unhealthy: true, Condition: health.Flapping, Action: health.Isolate,
		Reason: "12 times in 1m0s", Until: time.Time{}.Add(time.Minute),
	})
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkNone})
	shows("released from a rule")
	if !e.linked(h.place) {
		t.Error("released from a rule and still cut off")
	}
	e.step(&sm.HealthMarked{Place: ib.Place{Switch: 0x99, Port: 3}, Mark: health.MarkNone})
	e.step(&sm.HealthMarked{Mark: health.MarkUnhealthy})
	shows("marks that mean nothing")
}
