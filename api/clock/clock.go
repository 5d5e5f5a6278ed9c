// Package clock keeps the time that decisions rest on: it never goes back, also over a restart, and it says when
// the clock of the machine is not to be believed. It is pure; package keeper reads clocks and the store.
package clock

import (
	"slices"
	"time"
)

const (
	// Tolerance is how far the clocks of instances may be apart, and how far one may be set, before that is a jump.
	Tolerance = time.Minute
	// Every is how often the highest time is recorded.
	Every = time.Minute
	// Wait is how long an instance that is far ahead of the recorded time waits for others to contradict it.
	Wait = 3 * time.Minute

	// settle is how often the even course of the clock is compared from again: a clock that drifts makes no jump.
	settle = 10 * time.Minute
	// backlog is how long what other instances recorded before may arrive late, all at once.
	backlog = 5 * time.Second
	// maxJumps bounds what is kept for Jumps.
	maxJumps = 16
)

// Reading is what a process reads of its clocks at one moment.
type Reading struct {
	Wall    time.Time     // what the machine takes the time for
	Elapsed time.Duration // since some moment of the process, by a clock that is never set
}

// Mark is the highest time that any instance has seen, as it is recorded.
type Mark struct {
	Highest time.Time `json:"highest"`
	By      string    `json:"by,omitempty"`     // instance that saw it; empty: the only one
	Resets  int64     `json:"resets,omitempty"` // how often an operator set it
}

// State says whether the clock of the machine is believed.
type State uint8

// States of a Water.
const (
	Steady  State = iota
	Behind        // it is behind the highest time seen
	Waiting       // it is far ahead of that; whether other instances contradict is not known yet
	Ahead         // it is far ahead of that, and another instance contradicts
)

// String returns the state in a word.
func (s State) String() string {
	return [...]string{"steady", "behind", "waiting", "ahead"}[s]
}

// Jump says that the clock of the machine began, or ceased, not to be believed.
type Jump struct {
	Now   State     // Steady: it is believed again, or it was set ahead and is believed
	Ahead bool      // the clock was set ahead
	Wall  time.Time // what it showed
	Time  time.Time // what the time was, as far as known
	By    string    // instance that recorded the highest time
}

// Water is the high-water mark of time. It is not safe for concurrent use.
type Water struct {
	instance string
	mark     Mark
	known    bool          // mark was read
	taken    time.Duration // when the mark was taken in

	high  time.Time // highest time that was believed
	state State
	since time.Time // when state began

	// even is a moment of which time and elapsed time are known; begun: there is one.
	even  Reading
	begun bool

	waits time.Duration // when the wait began
	leap  bool          // the clock was set while the process ran, which is why it waits
	heard time.Duration // when another instance raised the mark last
	other bool          // one did
	open  bool          // a jump was reported, and not its end
	jumps []Jump
}

// New returns a Water of an instance; an empty name is that of the only one.
func New(instance string) *Water { return &Water{instance: instance} }

// Take takes in what is recorded; a zero Mark says that nothing is.
func (w *Water) Take(m Mark, r Reading) {
	m.Highest = plain(m.Highest)
	switch {
	case !w.known:
		w.mark, w.known, w.taken = m, true, r.Elapsed
		w.high = m.Highest
	case m.Resets > w.mark.Resets:
		w.mark, w.taken, w.other = m, r.Elapsed, false
		w.high = m.Highest
		w.even, w.begun = Reading{m.Highest, r.Elapsed}, true
	case m.Resets == w.mark.Resets && m.Highest.After(w.mark.Highest):
		w.mark, w.taken = m, r.Elapsed
		w.high = later(w.high, m.Highest)
		if m.By != w.instance {
			w.heard, w.other = r.Elapsed, true
			w.even, w.begun = Reading{m.Highest, r.Elapsed}, true
		}
	}
}

// Now returns the time, which is never before a time that it returned, unless an operator has set the mark.
func (w *Water) Now(r Reading) time.Time {
	r.Wall = plain(r.Wall)
	leapt := w.leapt(r)
	switch {
	case r.Wall.Before(w.high.Add(-Tolerance)):
		w.enter(Behind, r)
	case w.instance == "" || !leapt && !w.unproven(r):
		w.believe(r, leapt)
	default:
		w.doubt(r, leapt)
	}
	return w.high
}

// believe has the time be what the machine shows. leapt: although it was set ahead.
func (w *Water) believe(r Reading, leapt bool) {
	if leapt {
		w.tell(Jump{Now: Steady, Ahead: true, Wall: r.Wall, Time: w.expected(r), By: w.mark.By})
	}
	w.high = later(w.high, r.Wall)
	if leapt || !w.begun || r.Elapsed-w.even.Elapsed >= settle {
		w.even, w.begun = r, true
	}
	w.enter(Steady, r)
}

// doubt has the time go on evenly, until another instance has contradicted the machine's clock or none did for long
// enough.
func (w *Water) doubt(r Reading, leapt bool) {
	if w.state != Waiting && w.state != Ahead {
		w.waits, w.leap = r.Elapsed, leapt
		w.enter(Waiting, r)
	}
	if w.other && w.heard >= w.waits+backlog {
		w.enter(Ahead, r)
	}
	if w.state == Waiting && r.Elapsed-w.waits >= Wait {
		w.believe(r, w.leap)
		w.even, w.begun = r, true
		return
	}
	w.high = later(w.high, w.expected(r))
}

// enter begins a state, and notes a jump where that is the beginning or the end of one.
func (w *Water) enter(s State, r Reading) {
	if s == w.state {
		return
	}
	w.state, w.since = s, w.high
	if s == Behind || s == Ahead || s == Steady && w.open {
		w.tell(Jump{Now: s, Ahead: s == Ahead, Wall: r.Wall, Time: w.high, By: w.mark.By})
	}
}

func (w *Water) tell(j Jump) {
	w.open = j.Now != Steady
	if len(w.jumps) < maxJumps {
		w.jumps = append(w.jumps, j)
	}
}

// expected returns what the time should be if it went evenly from the last moment that is known.
func (w *Water) expected(r Reading) time.Time {
	if w.begun {
		return w.even.Wall.Add(r.Elapsed - w.even.Elapsed)
	}
	return w.mark.Highest.Add(r.Elapsed - w.taken)
}

// leapt reports whether the clock shows more than has passed.
func (w *Water) leapt(r Reading) bool {
	return w.begun && r.Wall.After(w.expected(r).Add(Tolerance))
}

// unproven reports whether the first time that the machine shows is far ahead of what instances recorded.
func (w *Water) unproven(r Reading) bool {
	return !w.begun && !w.mark.Highest.IsZero() && r.Wall.After(w.expected(r).Add(Tolerance+Every))
}

// Due returns what is to be recorded now, and whether that is so; always: also before [Every] has passed.
func (w *Water) Due(r Reading, always bool) (Mark, bool) {
	now := w.Now(r)
	ahead := now.Sub(w.mark.Highest)
	return Mark{Highest: now, By: w.instance, Resets: w.mark.Resets}, w.known && w.state == Steady && (ahead >= Every || always && ahead > 0)
}

// Jumps returns what happened since the last call.
func (w *Water) Jumps() []Jump {
	out := slices.Clone(w.jumps)
	w.jumps = nil
	return out
}

// Standing is how the clock of the machine is.
type Standing struct {
	State State
	Since time.Time // of State
	Time  time.Time // that decisions rest on
	Wall  time.Time // that the machine shows
	Mark  Mark
}

// Off returns how far the machine's clock is from the time, less than 0 if it is behind.
func (s *Standing) Off() time.Duration { return s.Wall.Sub(s.Time) }

// Standing returns how the clock is now.
func (w *Water) Standing(r Reading) Standing {
	now := w.Now(r)
	return Standing{State: w.state, Since: w.since, Time: now, Wall: plain(r.Wall), Mark: w.mark}
}

func plain(t time.Time) time.Time { return t.UTC().Round(0) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
