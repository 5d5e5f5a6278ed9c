package sm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
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
	shows := func(when string, want ...sm.HealthState) {
		t.Helper()
		e.run(2 * time.Second)
		e.mustSettle(10 * time.Second)
		got := []sm.HealthState{}
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
		if d := cmp.Diff(append([]sm.HealthState{}, want...), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	shows("at first")

	bad := sm.HealthState{Place: h.place, GUID: h.node.GUID, Mark: sm.MarkUnhealthy, Unhealthy: true, Condition: sm.Marked, Action: sm.Isolate, Reason: "cable to be replaced"}
	good := sm.HealthState{Place: other.place, GUID: other.node.GUID, Mark: sm.MarkHealthy, Reason: "under test"}
	e.step(&sm.HealthMarked{Place: h.place, Mark: sm.MarkUnhealthy, Reason: "cable to be\x1b replaced"})
	bad.Reason = "cable to be? replaced"
	e.step(&sm.HealthMarked{Place: other.place, Mark: sm.MarkHealthy, Reason: "under test"})
	want := []sm.HealthState{bad, good}
	if other.place.Switch < h.place.Switch {
		want = []sm.HealthState{good, bad}
	}
	shows("marked", want...)
	e.start()
	e.want(e.intent)
	for i := range want {
		want[i].GUID = 0
	}
	bad.GUID = 0
	shows("after a restart", want...)

	e.step(&sm.HealthMarked{Place: other.place, Mark: sm.MarkNone})
	e.step(&sm.HealthMarked{Place: h.place, Mark: sm.MarkUnhealthy, Reason: strings.Repeat("\u00e9", 150)})
	bad.Reason = strings.Repeat("\u00e9", 100)
	shows("with another reason", bad)
	e.step(&sm.HealthMarked{Place: h.place, Mark: sm.MarkNone})
	shows("released")
	if !e.linked(h.place) {
		t.Error("released and still cut off")
	}

	e.flap(&h, 20)
	shows("flapping", sm.HealthState{
		Place: h.place, GUID: h.node.GUID, Unhealthy: true, Condition: sm.Flapping, Action: sm.Isolate,
		Reason: "12 times in 1m0s", Until: time.Time{}.Add(time.Minute),
	})
	e.start()
	e.want(e.intent)
	shows("flapping, after a restart", sm.HealthState{
		Place: h.place, Unhealthy: true, Condition: sm.Flapping, Action: sm.Isolate,
		Reason: "12 times in 1m0s", Until: time.Time{}.Add(time.Minute),
	})
	e.step(&sm.HealthMarked{Place: h.place, Mark: sm.MarkNone})
	shows("released from a rule")
	if !e.linked(h.place) {
		t.Error("released from a rule and still cut off")
	}
	e.step(&sm.HealthMarked{Place: ib.Place{Switch: 0x99, Port: 3}, Mark: sm.MarkNone})
	e.step(&sm.HealthMarked{Mark: sm.MarkUnhealthy})
	shows("marks that mean nothing")
}
