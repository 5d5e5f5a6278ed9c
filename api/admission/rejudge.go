package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/reference"
)

// Lapse is why evidence that was accepted no longer meets policy.
type Lapse struct {
	Cause  string    `json:"cause"` // of attest.LapseCauses
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
}

// judging names what evidence is judged by, except for reference values: where it is equal, so is the outcome.
func (o *Options) judging() string {
	text, err := o.Policy.Judging()
	if err != nil || o.Policy.Check() != nil {
		return "" // judges no host; new evidence is refused
	}
	if o.Locks != nil {
		text += o.Locks.Version()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// references says of sets of reference values whose boots they trusted whether they
// still count: by name, "" or why not.
type references map[string]string

// standing returns why evidence that rests on a set no longer does.
func (r references) standing(name string) string {
	if name == "" {
		return "" // of before sets, or the judge needs none
	}
	why, known := r[name]
	if !known {
		return "reference values " + name + " are gone"
	}
	return why
}

// referencesNow judges sets, of one class or more, and returns when that changes by itself.
func referencesNow(sets []reference.Set, now time.Time) (references, time.Time) {
	out := references{}
	var next time.Time
	for i := range sets {
		s := &sets[i]
		if s.State == reference.Approved && now.Before(s.Expires) && (next.IsZero() || s.Expires.Before(next)) {
			next = s.Expires
		}
		out[s.Name()] = ""
		if s.Valid(now) || slices.ContainsFunc(sets, func(o reference.Set) bool { return o.Valid(now) && o.Covers(s) }) {
			continue
		}
		out[s.Name()] = fmt.Sprintf("reference values %s ended, and none in force have all boots that they had", s.Name())
		if !s.Expires.IsZero() {
			out[s.Name()] = fmt.Sprintf("reference values %s ended at %s, and none in force have all boots that they had", s.Name(), s.Expires.Format(time.RFC3339))
		}
	}
	return out, next
}

// allReferences judges all sets there are.
func allReferences(ctx context.Context, r store.Reader, now time.Time) (references, time.Time, error) {
	list, _, err := References().List(ctx, r, "")
	if err != nil {
		return nil, time.Time{}, err
	}
	sets := make([]reference.Set, 0, len(list))
	for i := range list {
		sets = append(sets, list[i].Value)
	}
	refs, next := referencesNow(sets, now)
	return refs, next, nil
}

// stale reports whether the evidence of a host was judged by other rules than those in force now.
func (s *Service) stale(rec *Record, refs references) bool {
	ev := rec.Evidence
	if ev == nil {
		return false
	}
	marked := ev.lapse(attest.LapseReference) != nil
	return s.judging != "" && ev.Judged != s.judging || (refs.standing(ev.Reference) != "") != marked && s.o.Judge.Matters(attest.ReasonReference)
}

// rejudgeBy returns the references that the evidence of a host is to be judged by again; nil
// where it need not be. refs are those that the service has followed. They can be older than the
// evidence, which then rests on a set that they do not know, so that those in the store decide.
func (s *Service) rejudgeBy(ctx context.Context, r store.Reader, rec *Record, refs references) (references, error) {
	if !s.stale(rec, refs) {
		return nil, nil
	}
	now, _, err := allReferences(ctx, r, s.now())
	if err != nil || !s.stale(rec, now) {
		return nil, err
	}
	return now, nil
}

func (e *Evidence) lapse(cause string) *Lapse {
	i := slices.IndexFunc(e.Lapses, func(l Lapse) bool { return l.Cause == cause })
	if i < 0 {
		return nil
	}
	return &e.Lapses[i]
}

// rejudge judges the evidence of a host by policy, profile and reference values as they are now, and records events of what
// changed by that. refs nil: the set it rests on is read in tx, so that a grant and the end of a set cannot both happen.
func (s *Service) rejudge(ctx context.Context, tx *store.Tx, f *facts, refs references) error {
	was := f.rec.Evidence
	if was == nil {
		return nil
	}
	if refs == nil {
		var err error
		if refs, err = s.referencesOf(ctx, tx, was.Reference); err != nil {
			return err
		}
	}
	var found []attest.Lapse
	ev := *was
	if s.judging == "" || ev.Judged == s.judging {
		found = was.knownLapses()
	} else {
		var err error
		switch found, err = s.lapses(ctx, tx, f.host.ID, was.Session); {
		case errors.Is(err, errNoVerdict):
			ev.Judged, found = "", unjudged(was.knownLapses())
		case err != nil:
			return err
		default:
			ev.Judged = s.judging
		}
	}
	if why := refs.standing(ev.Reference); why != "" && s.o.Judge.Matters(attest.ReasonReference) {
		found = append(found, attest.Lapse{Cause: attest.LapseReference, Reason: attest.ReasonReference, Detail: why})
	}
	ev.Lapses = nil
	for _, l := range found {
		kept := Lapse{l.Cause, refusal.ClipTo(l.Detail, maxDetail), f.now}
		if old := was.lapse(l.Cause); old != nil {
			kept.Since = old.Since
		} else if err := s.tellLapse(ctx, tx, f, events.EvidenceOutdated, &kept); err != nil {
			return err
		}
		ev.Lapses = append(ev.Lapses, kept)
	}
	for i := range was.Lapses {
		if ev.lapse(was.Lapses[i].Cause) == nil {
			if err := s.tellLapse(ctx, tx, f, events.EvidenceCurrent, &was.Lapses[i]); err != nil {
				return err
			}
		}
	}
	f.rec.Evidence = &ev
	return nil
}

// errNoVerdict: the facts that evidence showed are not known any more.
var errNoVerdict = errors.New("the verdict of the accepted evidence is gone")

// knownLapses returns all known lapses of evidence, except for the end of its references.
func (e *Evidence) knownLapses() []attest.Lapse {
	var out []attest.Lapse
	for _, l := range e.Lapses {
		if l.Cause != attest.LapseReference {
			out = append(out, attest.Lapse{Cause: l.Cause, Detail: l.Detail})
		}
	}
	return out
}

// unjudged adds to known lapses that the evidence cannot be judged by the present policy: the record does not say what its
// adapters were.
func unjudged(known []attest.Lapse) []attest.Lapse {
	if slices.ContainsFunc(known, func(l attest.Lapse) bool { return l.Cause == attest.LapseAdapter }) {
		return known
	}
	return append(known, attest.Lapse{Cause: attest.LapseAdapter, Reason: attest.ReasonStatement, Detail: errNoVerdict.Error() + ": it cannot be held against the policy of now"})
}

// referencesOf judges the set of a name: by itself where it counts, else by all of its
// class.
func (s *Service) referencesOf(ctx context.Context, r store.Reader, name string) (references, error) {
	if name == "" {
		return references{}, nil
	}
	class, key, err := referenceKeyOf(name)
	if err != nil {
		return references{}, nil // gone, as standing says
	}
	set, err := References().Get(ctx, r, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return references{}, nil
	case err != nil:
		return nil, err
	case set.Value.Valid(s.now()):
		return references{name: ""}, nil
	}
	sets, err := ReferencesOf(ctx, r, class)
	refs, _ := referencesNow(sets, s.now())
	return refs, err
}

// lapses holds the verdict of the evidence of a session against policy and profile.
// errNoVerdict: there is none, or it is of other evidence.
func (s *Service) lapses(ctx context.Context, tx *store.Tx, host, session string) ([]attest.Lapse, error) {
	v, err := Verdicts().Get(ctx, tx, host)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errNoVerdict
	case err != nil:
		return nil, err
	case !v.Value.OK || v.Value.Facts.Session != session:
		return nil, errNoVerdict
	}
	found := s.o.Policy.Lapses(&v.Value.Facts)
	if st := v.Value.Facts.Statement; st != nil && s.o.Locks != nil && s.o.Policy.RequireLock {
		if no := s.o.Locks.Judge(st); no != nil {
			found = append(found, attest.Lapse{Cause: attest.LapseLockProfile, Reason: no.Code, Detail: no.Detail})
		}
	}
	return slices.DeleteFunc(found, func(l attest.Lapse) bool { return !s.o.Judge.Matters(l.Reason) }), nil
}

// tellLapse records an event that a host's evidence has a lapse, or no longer has one.
func (s *Service) tellLapse(ctx context.Context, tx *store.Tx, f *facts, kind string, l *Lapse) error {
	e := v1.Event{Type: kind, By: events.ByService, Cause: l.Cause, Host: f.host.ID, Expected: "evidence of " + f.rec.Evidence.Time.Format(time.RFC3339) + " that meets policy", Seen: l.Detail}
	switch {
	case kind == events.EvidenceCurrent:
		e.Seen = "no longer so: " + l.Detail
	case !f.rec.Admitted:
		e.Do = "have the host attest again: it is not admitted with this evidence"
	case f.withdraw[l.Cause]:
		e.Do = "its memberships are withdrawn, as admission.withdraw says: release the host, assign it again, and have it attest"
	default:
		e.Do = "the host stays admitted: release it when its tenant can do without it, and have it attest at its next provisioning"
	}
	return events.Tell(ctx, tx, s.now(), e)
}

// lapsed says why the accepted evidence does not lead to a membership now: for a host
// that was admitted only causes count that the site wants memberships withdrawn for.
func (f *facts) lapsed() string {
	for _, l := range f.rec.Evidence.Lapses {
		if !f.rec.Admitted || f.withdraw[l.Cause] {
			return fmt.Sprintf("the accepted evidence no longer meets policy since %s: %s", l.Since.Format(time.RFC3339), l.Detail)
		}
	}
	return ""
}
