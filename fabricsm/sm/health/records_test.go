package health

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
)

// core notes what records have it do.
type core struct {
	now       time.Time
	protected ib.Place
	action    map[ib.Place]Action
	events    []fault.Event
	saved     []Saved
	ticks     int
}

func (c *core) Now() time.Time               { return c.now }
func (c *core) IsProtected(at ib.Place) bool { return at == c.protected }
func (c *core) Apply(at ib.Place, a Action)  { c.action[at] = a }
func (c *core) Report(e fault.Event)         { c.events = append(c.events, e) }
func (c *core) Save(s Saved)                 { c.saved = append(c.saved, s) }
func (c *core) TickLater(time.Duration)      { c.ticks++ }
func (c *core) after(d time.Duration) *core  { c.now = c.now.Add(d); return c }

var (
	here  = ib.Place{Switch: 0x10, Port: 1}
	there = ib.Place{Switch: 0x10, Port: 2}
)

func newRecords() (*core, *Records, *fault.List) {
	c := &core{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), action: make(map[ib.Place]Action), protected: there}
	config := &Config{}
	config.SetDefaults()
	faults := fault.New()
	return c, New(c, config, &faults), &faults
}

// TestFlappingPort has a port flap until it is isolated, and checks that it recovers, is saved, and that a protected port is
// only reported.
func TestFlappingPort(t *testing.T) {
	c, h, faults := newRecords()
	for range 11 {
		h.Strike(here, 0x20, Flapping)
	}
	if len(c.events) != 0 || h.ActionAt(here) != Report {
		t.Fatalf("after 11 times: %v, %v", c.events, h.ActionAt(here))
	}
	h.Strike(here, 0x20, Flapping)
	if c.action[here] != Isolate || len(c.events) != 1 || !faults.Has(illness(Flapping, here)) || c.ticks != 1 {
		t.Fatalf("after 12 times: action %v, events %v, %d ticks", c.action[here], c.events, c.ticks)
	}
	last := c.saved[len(c.saved)-1]
	_, again, _ := newRecords()
	if again.Load(&last); again.ActionAt(here) != Isolate || again.WorstAt(here) != Flapping {
		t.Errorf("after a restart: %v for %v", again.ActionAt(here), again.WorstAt(here))
	}
	c.after(59 * time.Second)
	if h.Recover(); c.action[here] != Isolate {
		t.Error("it recovered too soon")
	}
	c.after(time.Second)
	if h.Recover(); c.action[here] != Report || faults.Has(illness(Flapping, here)) || len(h.Sick()) != 0 {
		t.Errorf("after a minute: action %v, sick %v", c.action[here], h.Sick())
	}
	for range 12 {
		h.Strike(there, 0x21, Flapping)
	}
	if c.action[there] != Report || !slices.Equal(h.Sick(), []ib.Place{there}) {
		t.Errorf("a protected port: action %v, sick %v", c.action[there], h.Sick())
	}
}

// TestMarks checks that an operator's mark comes before the rules, and that taking it back ends a quarantine.
func TestMarks(t *testing.T) {
	c, h, _ := newRecords()
	if !h.Mark(&Marking{Place: here, Mark: MarkUnhealthy, Reason: "burnt"}) || c.action[here] != Isolate {
		t.Fatalf("marked unhealthy: action %v", c.action[here])
	}
	if h.Mark(&Marking{Place: here, Mark: MarkUnhealthy, Reason: "burnt"}) {
		t.Error("the same mark changes something")
	}
	if s := h.States(); len(s) != 1 || s[0].Reason != "burnt" || s[0].Condition != Marked || !s[0].Until.IsZero() {
		t.Errorf("states %+v", s)
	}
	c.after(time.Hour)
	if h.Recover(); c.action[here] != Isolate {
		t.Error("a mark ended by itself")
	}
	if !h.Mark(&Marking{Place: here}) || c.action[here] != Report || len(h.States()) != 0 {
		t.Errorf("without a mark: action %v, states %v", c.action[here], h.States())
	}
	h.Mark(&Marking{Place: here, Mark: MarkHealthy})
	for range 20 {
		h.Strike(here, 0x20, Flapping)
	}
	if c.action[here] != Report || !h.IsMarked(here, MarkHealthy) {
		t.Errorf("marked healthy: action %v", c.action[here])
	}
}
