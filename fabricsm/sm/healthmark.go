package sm

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// HealthState is what is in force at a place that is unhealthy, or that an
// operator marked.
type HealthState struct {
	Place     ib.Place // port 0: the switch itself
	GUID      ib.GUID  // node that was seen there last, 0 if none
	Mark      Mark
	Unhealthy bool
	Condition Condition // if Unhealthy: the one that Action follows from
	Action    Action    // if Unhealthy: the action in force
	Reason    string    // the operator's words, or what was counted
	Since     time.Time
	Until     time.Time // if it holds still; zero: until an operator says otherwise
}

// MaxReason is how many bytes of an operator's reason are kept.
const MaxReason = 200

// marked takes the mark of an operator.
func (c *Core) marked(in *HealthMarked) {
	if in.Mark == MarkNone {
		c.releaseMarked(in)
	}
	r := c.health.at[in.Place]
	if r == nil && in.Mark != MarkNone && !in.Place.IsZero() {
		r = c.health.of(in.Place)
	}
	why := CleanReason(in.Reason)
	if r == nil || r.mark == in.Mark && (r.why == why && in.Mark != MarkNone || in.Mark == MarkNone && !r.sick) {
		return
	}
	c.viewDue, c.health.changed = true, true
	if p := c.topo.SwitchPortAt(in.Place); r.guid == 0 && p != topo.None && c.topo.Peer(p) != topo.None {
		r.guid = c.topo.NodeGUID(c.ports[c.topo.Peer(p)].node)
	}
	r.mark, r.why, r.since = in.Mark, why, c.now
	c.health.noteMark(in.Place, in.Mark)
	switch {
	case in.Mark == MarkUnhealthy:
		r.sick = false // begin again, whatever it was
		c.health.drop(in.Place)
		a := c.cfg.Health.Marked
		if c.untouchable(in.Place) {
			a = Report
		}
		c.fallIll(in.Place, r, &Unhealthy{Place: in.Place, GUID: r.guid, Condition: Marked, Count: 1, Action: a, Reason: why})
	case r.sick:
		c.endQuarantine(in.Place, r)
	default:
		c.saveHealth(in.Place, r)
	}
}

// endQuarantine ends a quarantine at once: of a switch, also at the ports that were
// closed because of it.
func (c *Core) endQuarantine(pl ib.Place, r *record) {
	c.health.drop(pl)
	r.pause = 0
	c.recovered(pl, r)
	if pl.Port != 0 {
		return
	}
	for _, at := range slices.Clone(c.health.sick) {
		if o := c.health.at[at]; o.shun == pl.Switch && o.mark == MarkNone {
			c.health.drop(at)
			o.pause = 0
			c.recovered(at, o)
		}
	}
}

// noteMark keeps the list of places that are marked.
func (h *records) noteMark(pl ib.Place, m Mark) {
	h.marks = slices.DeleteFunc(h.marks, func(o ib.Place) bool { return o == pl })
	if m != MarkNone {
		h.marks = append(h.marks, pl)
	}
}

// CleanReason returns the part of an operator's words that is kept: what can be printed, at most MaxReason bytes.
func CleanReason(words string) string {
	words = cleanText([]byte(words))
	if len(words) > MaxReason {
		n := MaxReason
		for !utf8.RuneStart(words[n]) {
			n--
		}
		words = words[:n]
	}
	return words
}

// cause is why a place counts as unhealthy, beside its condition.
func (e *Unhealthy) cause() string {
	switch {
	case e.Condition == Marked:
		return e.Reason
	case e.Condition == Overgrown, e.Count == 0:
		return ""
	default:
		return fmt.Sprintf("%d times in %v", e.Count, e.Window)
	}
}

// healthStates returns all places that are unhealthy or marked, in order. The list is built again when something changed,
// and not written to afterwards.
func (c *Core) healthStates() []HealthState {
	h := &c.health
	if !h.changed {
		return h.states
	}
	h.changed = false
	h.states = make([]HealthState, 0, len(h.sick)+len(h.marks))
	for _, pl := range h.sick {
		h.states = append(h.states, h.at[pl].state(pl))
	}
	for _, pl := range h.marks {
		if r := h.at[pl]; !r.sick {
			h.states = append(h.states, r.state(pl))
		}
	}
	slices.SortFunc(h.states, func(a, b HealthState) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return h.states
}

func (r *record) state(pl ib.Place) HealthState {
	s := HealthState{Place: pl, GUID: r.guid, Mark: r.mark, Unhealthy: r.sick, Reason: r.why, Since: r.since.UTC().Round(0)}
	if !r.sick {
		return s
	}
	s.Condition, s.Action = r.worst, r.action
	if r.shun != 0 {
		s.Reason = fmt.Sprintf("switch %v behind it is unhealthy", r.shun)
	}
	if r.mark == MarkNone {
		s.Until = r.last.Add(r.pause).UTC().Round(0)
	}
	return s
}
