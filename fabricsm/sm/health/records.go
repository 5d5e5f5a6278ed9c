package health

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
)

// Core is what Records ask of the core.
type Core interface {
	// Now returns the time of the step.
	Now() time.Time
	// IsProtected reports whether no action may be taken at a place.
	IsProtected(ib.Place) bool
	// Apply puts an action into force at a place, or out of it.
	Apply(ib.Place, Action)
	// Report has an event sent.
	Report(fault.Event)
	// Save makes something survive a restart.
	Save(Saved)
	// TickLater has Recover called after a time.
	TickLater(time.Duration)
}

// New returns the records of a fabric in which nothing ever misbehaved.
func New(core Core, config *Config, faults *fault.List) *Records {
	return &Records{core: core, config: config, faults: faults, at: make(map[ib.Place]*record)}
}

// record is what is known of the health of a place.
type record struct {
	guid    ib.GUID
	strikes [numConditions]struct {
		since time.Time
		n     int
	}
	sick   bool
	worst  Condition // the one that the action in force follows from
	action Action    // in force while sick
	last   time.Time // when it last misbehaved, or recovered
	pause  time.Duration
	mark   Mark
	since  time.Time // of the mark, or when it fell ill
	why    string    // the operator's words, or what the rule counted
	shun   ib.GUID   // the unhealthy switch behind it that it is sick for, if it is
	saved  bool      // a fact says something of it
}

// steadyFor is how many times its last pause a place has to be well before the next fault counts as its first.
const steadyFor = 4

// maxRecords bounds the places whose health is known.
const maxRecords = 1 << 14

// Records is the health of all places that ever misbehaved, and the list of sick ones. Use New.
type Records struct {
	core   Core
	config *Config
	faults *fault.List

	at      map[ib.Place]*record
	sick    []ib.Place // in the order in which they fell ill
	marks   []ib.Place // that an operator marked
	states  []State
	changed bool // since states was made
	ticking bool
}

// of returns the record of a place, nil if there are too many.
func (h *Records) of(pl ib.Place) *record {
	if r := h.at[pl]; r != nil {
		return r
	}
	if len(h.at) >= maxRecords {
		return nil
	}
	r := &record{}
	h.at[pl] = r
	return r
}

func (h *Records) drop(pl ib.Place) {
	h.sick = slices.DeleteFunc(h.sick, func(o ib.Place) bool { return o == pl })
}

// ActionAt returns the action in force at a place.
func (h *Records) ActionAt(pl ib.Place) Action {
	if len(h.sick) == 0 {
		return Report
	}
	if r := h.at[pl]; r != nil && r.sick {
		return r.action
	}
	return Report
}

// Tick is how often the sick are looked after.
const Tick = time.Second

func (h *Records) watch() {
	if !h.ticking {
		h.ticking = true
		h.core.TickLater(Tick)
	}
}

// Recover lets those recover that have not misbehaved for long enough, and forgets
// those that have been well for long.
func (h *Records) Recover() {
	h.ticking = false
	for _, pl := range slices.Clone(h.sick) {
		if r := h.at[pl]; r.mark == MarkNone && h.core.Now().Sub(r.last) >= r.pause {
			h.drop(pl)
			h.recovered(pl, r)
		}
	}
	if len(h.at) > maxRecords/2 {
		h.forgetIdle()
	}
	if len(h.sick) > 0 {
		h.watch()
	}
}

// forgetIdle removes the records of places without a fault for an hour.
func (h *Records) forgetIdle() {
	for pl, r := range h.at {
		idle := !r.sick && r.mark == MarkNone && h.core.Now().Sub(r.last) > h.config.RecoverMax
		for i := range r.strikes {
			idle = idle && h.core.Now().Sub(r.strikes[i].since) > time.Hour
		}
		if idle {
			delete(h.at, pl)
		}
	}
}

// Strike records that the device at a place misbehaved.
func (h *Records) Strike(pl ib.Place, guid ib.GUID, cond Condition) {
	h.strikeBy(h.config.rule(cond), pl, guid, cond)
}

// StrikeUnproven records a condition that is only claimed, or that was caused under the name of the node: it is reported,
// and nothing else follows.
func (h *Records) StrikeUnproven(pl ib.Place, guid ib.GUID, cond Condition) {
	rule := h.config.rule(cond)
	if rule.Action != Ignore {
		rule.Action = Report
	}
	h.strikeBy(rule, pl, guid, cond)
}

func (h *Records) strikeBy(rule Rule, pl ib.Place, guid ib.GUID, cond Condition) {
	if pl.IsZero() || rule.Action == Ignore {
		return
	}
	r := h.of(pl)
	if r == nil || r.mark != MarkNone {
		return
	}
	if guid != 0 {
		r.guid = guid
	}
	s := &r.strikes[cond]
	if s.n == 0 || h.core.Now().Sub(s.since) > rule.Window {
		s.since, s.n = h.core.Now(), 0
	}
	s.n++
	if r.sick && r.worst == cond {
		r.last = h.core.Now()
		h.changed = true // it lasts longer
	}
	if s.n < rule.Count || r.sick && rule.Action <= r.action {
		return
	}
	count := s.n
	s.n = 0
	if h.core.IsProtected(pl) {
		rule.Action = Report
	}
	h.fallIll(pl, r, &Unhealthy{Place: pl, GUID: r.guid, Condition: cond, Count: count, Window: rule.Window, Action: rule.Action})
}

// fallIll puts an action into force.
func (h *Records) fallIll(pl ib.Place, r *record, e *Unhealthy) {
	if !r.sick {
		if r.pause > 0 && h.core.Now().Sub(r.last) > steadyFor*r.pause {
			r.pause = 0
		}
		r.pause = min(max(2*r.pause, h.config.Recover), max(h.config.Recover, h.config.RecoverMax))
		h.sick = append(h.sick, pl)
		r.since = h.core.Now()
	} else if illness(r.worst, pl) != illness(e.Condition, pl) {
		h.faults.Clear(illness(r.worst, pl))
	}
	r.sick, r.worst, r.action, r.last = true, e.Condition, e.Action, h.core.Now()
	r.why, r.shun, h.changed = e.cause(), 0, true
	h.watch()
	if h.faults.Set(illness(e.Condition, pl), e.String()) {
		h.core.Report(e)
	}
	h.save(pl, r)
	h.core.Apply(pl, r.action)
}

// recovered takes an action out of force.
func (h *Records) recovered(pl ib.Place, r *record) {
	r.sick, r.action, r.last, r.shun = false, Report, h.core.Now(), 0
	if r.mark == MarkNone {
		r.why = ""
	}
	h.changed = true
	h.faults.Clear(illness(r.worst, pl))
	h.core.Report(&Healthy{Place: pl, GUID: r.guid})
	h.save(pl, r)
	h.core.Apply(pl, Report)
}

// illness names the problem that a condition is.
func illness(cond Condition, pl ib.Place) fault.Key {
	if cond == Overgrown {
		return fault.Key{Kind: fault.TooManyNodes, Place: pl}
	}
	return fault.Key{Kind: fault.Unhealthy, Place: pl}
}
