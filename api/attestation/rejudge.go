package attestation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/events"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/reference"
)

// Trust says of sets of reference values whose boots they trusted whether they
// still count: by name, "" or why not.
type Trust map[string]string

// Standing returns why evidence that rests on a set no longer does.
func (r Trust) Standing(name string) string {
	if name == "" {
		return "" // of before sets, or the judge needs none
	}
	why, known := r[name]
	if !known {
		return "reference values " + name + " are gone"
	}
	return why
}

// trustNow judges sets, of one class or more, and returns when that changes by itself.
func trustNow(sets []reference.Set, now time.Time) (Trust, time.Time) {
	out := Trust{}
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

// Trusted judges all sets there are, and returns when that changes by itself.
func (s *Service) Trusted(ctx context.Context, r store.Reader) (Trust, time.Time, error) {
	list, _, err := References().List(ctx, r, "")
	if err != nil {
		return nil, time.Time{}, err
	}
	sets := make([]reference.Set, 0, len(list))
	for i := range list {
		sets = append(sets, list[i].Value)
	}
	refs, next := trustNow(sets, s.now())
	return refs, next, nil
}

// Stale reports whether evidence was judged by other rules than those in force now.
func (s *Service) Stale(ev *hostrecord.Evidence, refs Trust) bool {
	if ev == nil {
		return false
	}
	marked := ev.Lapse(attest.LapseReference) != nil
	return s.judging != "" && ev.Judged != s.judging || (refs.Standing(ev.Reference) != "") != marked && s.o.Judge.Matters(attest.ReasonReference)
}

// RejudgeBy returns the sets that evidence is to be judged by again; nil
// where it need not be. refs are those that the service has followed. They can be older than the
// evidence, which then rests on a set that they do not know, so that those in the store decide.
func (s *Service) RejudgeBy(ctx context.Context, r store.Reader, ev *hostrecord.Evidence, refs Trust) (Trust, error) {
	if !s.Stale(ev, refs) {
		return nil, nil
	}
	now, _, err := s.Trusted(ctx, r)
	if err != nil || !s.Stale(ev, now) {
		return nil, err
	}
	return now, nil
}

// Rejudge judges the evidence of a host by policy, profile and reference values as they are now, and records events of what
// changed by that. refs nil: the set it rests on is read in tx, so that a grant and the end of a set cannot both happen.
func (s *Service) Rejudge(ctx context.Context, tx *store.Tx, host string, rec *hostrecord.Record, refs Trust) error {
	was := rec.Evidence
	if was == nil {
		return nil
	}
	if refs == nil {
		var err error
		if refs, err = s.referencesOf(ctx, tx, was.Reference); err != nil {
			return err
		}
	}
	now := s.now()
	var found []attest.Lapse
	ev := *was
	if s.judging == "" || ev.Judged == s.judging {
		found = knownLapses(was)
	} else {
		var err error
		switch found, err = s.lapses(ctx, tx, host, was.Session); {
		case errors.Is(err, errNoVerdict):
			ev.Judged, found = "", unjudged(knownLapses(was))
		case err != nil:
			return err
		default:
			ev.Judged = s.judging
		}
	}
	if why := refs.Standing(ev.Reference); why != "" && s.o.Judge.Matters(attest.ReasonReference) {
		found = append(found, attest.Lapse{Cause: attest.LapseReference, Reason: attest.ReasonReference, Detail: why})
	}
	ev.Lapses = nil
	for _, l := range found {
		kept := hostrecord.Lapse{Cause: l.Cause, Detail: refusal.ClipTo(l.Detail, maxDetail), Since: now}
		if old := was.Lapse(l.Cause); old != nil {
			kept.Since = old.Since
		} else if err := s.tellLapse(ctx, tx, host, rec, events.EvidenceOutdated, &kept); err != nil {
			return err
		}
		ev.Lapses = append(ev.Lapses, kept)
	}
	for i := range was.Lapses {
		if ev.Lapse(was.Lapses[i].Cause) == nil {
			if err := s.tellLapse(ctx, tx, host, rec, events.EvidenceCurrent, &was.Lapses[i]); err != nil {
				return err
			}
		}
	}
	rec.Evidence = &ev
	return nil
}

// errNoVerdict: the facts that evidence showed are not known any more.
var errNoVerdict = errors.New("the verdict of the accepted evidence is gone")

// knownLapses returns all known lapses of evidence, except for the end of its references.
func knownLapses(e *hostrecord.Evidence) []attest.Lapse {
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
	return append(known, attest.Lapse{Cause: attest.LapseAdapter, Reason: attest.ReasonStatement, Detail: errNoVerdict.Error() + ": it cannot be judged by the policy of now"})
}

// referencesOf judges the set of a name: by itself where it counts, else by all of its
// class.
func (s *Service) referencesOf(ctx context.Context, r store.Reader, name string) (Trust, error) {
	if name == "" {
		return Trust{}, nil
	}
	class, key, err := referenceKeyOf(name)
	if err != nil {
		return Trust{}, nil // gone, as Standing says
	}
	set, err := References().Get(ctx, r, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Trust{}, nil
	case err != nil:
		return nil, err
	case set.Value.Valid(s.now()):
		return Trust{name: ""}, nil
	}
	sets, err := ReferencesOf(ctx, r, class)
	refs, _ := trustNow(sets, s.now())
	return refs, err
}

// lapses holds the verdict of the evidence of a session against policy and profile.
// errNoVerdict: there is none, or it is of other evidence.
func (s *Service) lapses(ctx context.Context, tx *store.Tx, host, session string) ([]attest.Lapse, error) {
	v, err := hostrecord.Verdicts().Get(ctx, tx, host)
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

// DropEvidence takes accepted evidence from a record, which the caller writes. What of it did not meet policy is over, and events say so.
func DropEvidence(ctx context.Context, tx *store.Tx, now time.Time, host string, rec *hostrecord.Record) error {
	was := rec.Evidence
	if was == nil {
		return nil
	}
	rec.Evidence = nil
	for i := range was.Lapses {
		l := &was.Lapses[i]
		if err := events.Record(ctx, tx, now, v1.Event{
			Type: events.EvidenceCurrent, By: events.ByService, Cause: l.Cause, Host: host,
			Expected: "evidence that meets policy", Seen: "the evidence of " + was.Time.Format(time.RFC3339) + " counts no more; of it: " + l.Detail,
		}); err != nil {
			return err
		}
	}
	return nil
}

// tellLapse records an event that a host's evidence has a lapse, or no longer has one.
func (s *Service) tellLapse(ctx context.Context, tx *store.Tx, host string, rec *hostrecord.Record, kind string, l *hostrecord.Lapse) error {
	e := v1.Event{Type: kind, By: events.ByService, Cause: l.Cause, Host: host, Expected: "evidence of " + rec.Evidence.Time.Format(time.RFC3339) + " that meets policy", Seen: l.Detail}
	switch {
	case kind == events.EvidenceCurrent:
		e.Seen = "no longer so: " + l.Detail
	case !rec.Admitted:
		e.Do = "have the host attest again: it is not admitted with this evidence"
	case s.o.Withdraw[l.Cause]:
		e.Do = "its memberships are withdrawn, as admission.withdraw says: release the host, assign it again, and have it attest"
	default:
		e.Do = "the host stays admitted: release it when its tenant can do without it, and have it attest at its next provisioning"
	}
	return events.Record(ctx, tx, s.now(), e)
}
