package health

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// Saved is what survives a restart of a place.
type Saved struct {
	Place      ib.Place
	Mark       string
	Quarantine string // action, condition and pause in force; "": none
	Reason     string
	Since      time.Time
}

// save saves, for a restart, an action that cuts a device off, and the decision of an operator.
func (h *Records) save(pl ib.Place, r *record) {
	f := Saved{Place: pl, Mark: markNames[r.mark]}
	if f.Mark != "" || r.sick && r.action > Ignore {
		f.Since, f.Reason = r.since.UTC().Truncate(time.Second), r.why
	}
	if r.sick && r.action > Ignore {
		f.Quarantine = fmt.Sprintf("%d %d %d", r.action, r.worst, r.pause/time.Second)
	}
	was := r.saved
	if r.saved = f.Mark != "" || f.Quarantine != ""; r.saved || was {
		h.core.Save(f)
	}
}

// Load takes what was saved.
func (h *Records) Load(f *Saved) {
	pl := f.Place
	r := h.of(pl)
	if r == nil {
		return
	}
	r.saved = f.Mark != "" || f.Quarantine != ""
	r.mark = ParseMark(f.Mark)
	h.drop(pl)
	h.noteMark(pl, r.mark)
	r.sick, r.since, r.why, h.changed = false, f.Since, CleanReason(f.Reason), true
	var action, worst, pause int64
	if n, err := fmt.Sscanf(f.Quarantine, "%d %d %d", &action, &worst, &pause); err != nil || n != 3 {
		return
	}
	if action <= int64(Ignore) || action >= int64(numActions) || worst < 0 || worst >= int64(numConditions) || pause < 0 {
		return
	}
	r.sick, r.action, r.worst, r.last = true, Action(action), Condition(worst), h.core.Now()
	if r.since.IsZero() {
		r.since = h.core.Now()
	}
	r.pause = min(time.Duration(pause)*time.Second, max(h.config.Recover, h.config.RecoverMax))
	h.sick = append(h.sick, pl)
	h.faults.Set(illness(r.worst, pl), (&Unhealthy{Place: pl, Condition: r.worst, Action: r.action, Reason: r.why}).String())
	h.watch()
}

// IsMarked reports whether an operator has put a mark on a place.
func (h *Records) IsMarked(pl ib.Place, m Mark) bool {
	r := h.at[pl]
	return r != nil && r.mark == m
}

// MayConfine reports whether Confine can be called for a place: it is known, or may become so.
func (h *Records) MayConfine(pl ib.Place) bool { return h.of(pl) != nil }

// Confine puts an action into force at a place, for a reason that no rule has.
func (h *Records) Confine(e *Unhealthy) {
	r := h.of(e.Place)
	if e.Condition == Overgrown {
		if e.GUID != 0 {
			r.guid = e.GUID
		}
		e.GUID = r.guid
	}
	h.fallIll(e.Place, r, e)
}

// Sick returns the places that are unhealthy, in the order in which they fell ill. It must not be written to.
func (h *Records) Sick() []ib.Place { return h.sick }

// WorstAt returns the condition that the action in force at a sick place follows from.
func (h *Records) WorstAt(pl ib.Place) Condition { return h.at[pl].worst }

// Shun has a place be sick because of the switch behind it, for as long as that is sick. It returns the action that follows,
// and false if it does not fall ill.
func (h *Records) Shun(pl, sw ib.Place) (Action, bool) {
	r := h.of(pl)
	of := h.at[sw]
	if r == nil || of == nil || r.sick || r.mark == MarkHealthy {
		return Report, false
	}
	r.guid, r.sick, r.worst, r.action, r.last, r.pause = sw.Switch, true, of.worst, of.action, h.core.Now(), of.pause
	r.since, r.shun, h.changed = h.core.Now(), sw.Switch, true
	h.sick = append(h.sick, pl)
	return r.action, true
}
