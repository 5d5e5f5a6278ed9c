package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// State is what is in force at a place that is unhealthy, or that an
// operator marked.
type State struct {
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

// Marking is what an operator says of a place. GUID is the node that is seen there, 0 if none.
type Marking struct {
	Place  ib.Place
	GUID   ib.GUID
	Mark   Mark
	Reason string // the operator's words, at most MaxReason bytes; more is cut off
}

// Mark takes the mark of an operator. It reports whether it changes anything.
func (h *Records) Mark(in *Marking) bool {
	r := h.at[in.Place]
	if r == nil && in.Mark != MarkNone && !in.Place.IsZero() {
		r = h.of(in.Place)
	}
	why := CleanReason(in.Reason)
	if r == nil || r.mark == in.Mark && (r.why == why && in.Mark != MarkNone || in.Mark == MarkNone && !r.sick) {
		return false
	}
	h.changed = true
	if r.guid == 0 {
		r.guid = in.GUID
	}
	r.mark, r.why, r.since = in.Mark, why, h.core.Now()
	h.noteMark(in.Place, in.Mark)
	switch {
	case in.Mark == MarkUnhealthy:
		r.sick = false // begin again, whatever it was
		h.drop(in.Place)
		a := h.config.Marked
		if h.core.IsProtected(in.Place) {
			a = Report
		}
		h.fallIll(in.Place, r, &Unhealthy{Place: in.Place, GUID: r.guid, Condition: Marked, Count: 1, Action: a, Reason: why})
	case r.sick:
		h.endQuarantine(in.Place, r)
	default:
		h.save(in.Place, r)
	}
	return true
}

// endQuarantine ends a quarantine at once: of a switch, also at the ports that were
// closed because of it.
func (h *Records) endQuarantine(pl ib.Place, r *record) {
	h.drop(pl)
	r.pause = 0
	h.recovered(pl, r)
	if pl.Port != 0 {
		return
	}
	for _, at := range slices.Clone(h.sick) {
		if o := h.at[at]; o.shun == pl.Switch && o.mark == MarkNone {
			h.drop(at)
			o.pause = 0
			h.recovered(at, o)
		}
	}
}

// noteMark keeps the list of places that are marked.
func (h *Records) noteMark(pl ib.Place, m Mark) {
	h.marks = slices.DeleteFunc(h.marks, func(o ib.Place) bool { return o == pl })
	if m != MarkNone {
		h.marks = append(h.marks, pl)
	}
}

// States returns all places that are unhealthy or marked, in order. The list is built again when something changed,
// and not written to afterwards.
func (h *Records) States() []State {
	if !h.changed {
		return h.states
	}
	h.changed = false
	h.states = make([]State, 0, len(h.sick)+len(h.marks))
	for _, pl := range h.sick {
		h.states = append(h.states, h.at[pl].state(pl))
	}
	for _, pl := range h.marks {
		if r := h.at[pl]; !r.sick {
			h.states = append(h.states, r.state(pl))
		}
	}
	slices.SortFunc(h.states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return h.states
}

func (r *record) state(pl ib.Place) State {
	s := State{Place: pl, GUID: r.guid, Mark: r.mark, Unhealthy: r.sick, Reason: r.why, Since: r.since.UTC().Round(0)}
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
