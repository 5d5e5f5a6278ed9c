package standing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// day is how long bad news counts for the pause before good news.
	day = 24 * time.Hour
	// firstHold and lastHold bound how long good news must have lasted where bad news was reported before on the same day.
	firstHold, lastHold = time.Hour, 8 * time.Hour
	// mostWorse bounds the times that are kept.
	mostWorse = 16
)

// record is what the store has.
type record struct {
	Watched  time.Time `json:"watched"`            // since when leaders keep the record
	Newest   finding   `json:"newest,omitzero"`    // examination
	Proven   time.Time `json:"proven,omitzero"`    // begin of the newest examination that found all tenants isolated
	Reported string    `json:"reported,omitempty"` // state of the last event, or one that needed none
	Since    time.Time `json:"since,omitzero"`     // when that was
	// Better is the begin of the first of an unbroken row of examinations that found a better state than Reported.
	Better time.Time   `json:"better,omitzero"`
	Worse  []time.Time `json:"worse,omitempty"` // when bad news was reported, within a day
	// Disclosed is when a disclosure by subnet administration was reported that an examination found again since; zero: there is none.
	Disclosed time.Time `json:"disclosed,omitzero"`
	// DisclosedLast is when one was reported last.
	DisclosedLast time.Time `json:"disclosed_last,omitzero"`
}

// disclosedHold is how long no further event of a disclosure is recorded after one: where it comes and goes there are a few a day.
const disclosedHold = 4 * time.Hour

const key = "now"

func records() store.Collection[record] { return store.NewCollection[record]("isolation/standing", 1) }

// input is what an instance knows.
type input struct {
	now    time.Time
	newest *v1.Isolation // that it found; nil: nothing
	maxAge time.Duration
	ages   bool   // an examination that is too old counts as such
	never  bool   // also if there was never one
	why    string // no newer examination has a result; empty: not known
}

// rank orders states, the best first.
func rank(state string) int {
	switch state {
	case v1.IsolationUnknown:
		return 1
	case v1.Leaks:
		return 2
	default:
		return 0 // isolated, nothing to isolate, nothing known
	}
}

// after returns the record that follows, and the events of changes.
func (r record) after(in *input) (record, []*v1.Event) {
	var told []*v1.Event
	next, e := r.next(in)
	if e != nil {
		told = append(told, e)
	}
	if next, e = next.disclosed(in); e != nil {
		told = append(told, e)
	}
	return next, told
}

// next returns the record that follows, and the event of a change; nil: there is none to report.
func (r record) next(in *input) (record, *v1.Event) {
	if r.Watched.IsZero() {
		r.Watched = in.now
	}
	if in.newest != nil && (in.newest.Bounds.Newest().After(r.Newest.newest()) || r.Newest.newest().After(in.now)) {
		r.Newest = findingOf(in.newest)
		if r.Newest.State == v1.Isolated {
			r.Proven = r.Newest.Begun
		}
	}
	state, e := r.now(in)
	if e == nil {
		return r, nil
	}
	return r.turn(in, state, e)
}

// disclosed returns the record that follows of what subnet administration disclosed, and the event of it; nil: there is none to report.
// An examination in which nothing was asked changes nothing.
func (r record) disclosed(in *input) (record, *v1.Event) {
	f := &r.Newest
	switch {
	case !f.Asked || f.Begun.IsZero():
		return r, nil
	case f.Disclosed == 0:
		r.Disclosed = time.Time{}
		return r, nil
	case !r.Disclosed.IsZero():
		return r, nil
	}
	if since := in.now.Sub(r.DisclosedLast); since >= 0 && since < disclosedHold {
		return r, nil
	}
	r.Disclosed, r.DisclosedLast = in.now, in.now
	e := &v1.Event{
		Type: events.IsolationDisclosed, Cause: "name", By: events.ByService, Seen: f.First.Seen, Do: f.First.Do,
		Expected: "without its key, subnet administration names no port and no partition of others, and shows no key",
	}
	if f.First.Key {
		e.Cause = "key"
	}
	return r, e
}

// now returns the state, and the event that reports it; nil: nothing is known.
func (r *record) now(in *input) (string, *v1.Event) {
	e := &v1.Event{By: events.ByService, Expected: "no packet passes between tenants, and that is proven", Seen: r.Newest.Seen, Do: r.Newest.Do}
	from := r.Newest.Begun
	if from.IsZero() && in.never {
		from = r.Watched
	}
	old := in.ages && !from.IsZero() && in.now.Sub(from) > in.maxAge
	switch {
	case rank(r.Newest.State) < rank(v1.IsolationUnknown) && old:
		e.Type, e.Cause, e.Do = events.IsolationUnproven, "old", ""
		e.Expected = fmt.Sprintf("an examination of all tenants that is at most %v old", in.maxAge)
		e.Seen = fmt.Sprintf("the newest began at %s", stamp(from))
		if r.Newest.Begun.IsZero() {
			e.Seen = fmt.Sprintf("none since %s", stamp(from))
		}
		if in.why != "" {
			e.Seen += ": " + in.why
		}
		return v1.IsolationUnknown, e
	case r.Newest.Begun.IsZero():
		return "", nil
	case r.Newest.State == v1.Leaks:
		e.Type, e.Cause = events.IsolationLost, "leak"
	case r.Newest.State == v1.IsolationUnknown:
		e.Type, e.Cause = events.IsolationUnproven, "unknown"
	case r.Newest.State == nothing:
		e.Type, e.Cause = events.IsolationRegained, "no-tenants"
	default:
		e.Type, e.Cause = events.IsolationRegained, "proven"
	}
	return r.Newest.State, e
}

// turn takes a state that is known now. Bad news is reported at once. Good news is, too, but where bad news was reported before on the same day, it
// must have lasted: so a verdict that changes all the time does not cause events all the time. An examination that is too old is no good news.
func (r record) turn(in *input, state string, e *v1.Event) (record, *v1.Event) {
	now := in.now
	r.Worse = slices.DeleteFunc(slices.Clone(r.Worse), func(at time.Time) bool { return now.Sub(at) >= day || at.After(now) })
	switch was := rank(r.Reported); {
	case rank(state) == was:
		r.Reported, r.Better = state, time.Time{}
		if r.Since.IsZero() {
			r.Since = now
		}
		return r, nil
	case rank(state) > was:
		if len(r.Worse) < mostWorse {
			r.Worse = append(r.Worse, now)
		}
	default:
		if r.Better.IsZero() {
			r.Better = r.Newest.newest()
		}
		if r.Newest.newest().Sub(r.Better) < hold(len(r.Worse)) || now.Sub(r.Newest.Begun) > in.maxAge {
			return r, nil
		}
	}
	if r.Reported != "" && !r.Since.IsZero() {
		e.Seen += fmt.Sprintf("; before: %s since %s", r.Reported, stamp(r.Since))
	}
	if !r.Proven.IsZero() && rank(state) > 0 {
		e.Seen += "; last proven at " + stamp(r.Proven)
	}
	r.Reported, r.Since, r.Better = state, now, time.Time{}
	return r, e
}

// hold returns how long good news must have lasted after so much bad news within a day.
func hold(worse int) time.Duration {
	if worse < 2 {
		return 0
	}
	return min(firstHold<<min(worse-2, 8), lastHold)
}

func (r *record) same(o *record) bool {
	return r.Watched.Equal(o.Watched) && r.Newest == o.Newest && r.Proven.Equal(o.Proven) && r.Reported == o.Reported && r.Since.Equal(o.Since) &&
		r.Better.Equal(o.Better) && r.Disclosed.Equal(o.Disclosed) && r.DisclosedLast.Equal(o.DisclosedLast) && slices.EqualFunc(r.Worse, o.Worse, time.Time.Equal)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Standing is how the isolation of all tenants stands, by what the instances found that led.
type Standing struct {
	Verdict  string    // of v1.Isolation, by the newest examination
	Reason   string    // in one line
	Counts   Counts    // of that
	Examined time.Time // begin of the newest examination; zero: there was none, and no verdict either
	Proven   time.Time // begin of the newest that found all tenants isolated; zero: none did
	MaxAge   time.Duration
}

func (r *record) standing(maxAge time.Duration) Standing {
	s := Standing{
		Verdict: cmp.Or(r.Newest.State, v1.IsolationUnknown), Reason: r.Newest.Seen, Counts: r.Newest.Counts,
		Examined: r.Newest.Begun, Proven: r.Proven, MaxAge: maxAge,
	}
	if s.Verdict == nothing {
		s.Verdict = v1.IsolationUnknown
	}
	return s
}
