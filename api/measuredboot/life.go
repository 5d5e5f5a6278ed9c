package measuredboot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/fabricsm/topospec/approval"
)

// step changes a set.
func (s *Service) step(ctx context.Context, actor, action, class string, version uint64, change func(set *reference.Set) (detail string, err error)) (*v1.Reference, error) {
	var set reference.Set
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := get(ctx, tx, class, version)
		if err != nil {
			return err
		}
		set = *was
		detail, err := change(&set)
		if err != nil {
			return err
		}
		if err := set.Check(); err != nil {
			return invalid("reference_invalid", err)
		}
		return s.put(ctx, tx, was, &set, actor, action, detail)
	})
	if err != nil {
		return nil, explain(err)
	}
	return s.view(&set), nil
}

// Approve has a draft be in force from now on.
func (s *Service) Approve(ctx context.Context, actor, class string, version uint64, in v1.ReferenceApprove) (*v1.Reference, error) {
	why := strings.TrimSpace(in.Reason)
	if len(why) > maxText {
		return nil, refuse(refusal.Invalid, "reason_too_long", "say it in fewer words", "the reason has %d bytes, at most %d are kept", len(why), maxText)
	}
	return s.step(ctx, actor, "approve", class, version, func(set *reference.Set) (string, error) {
		now := s.now()
		if !in.Expires.IsZero() {
			if set.Waiver && in.Expires.After(set.Expires) {
				return "", refuse(refusal.Conflict, "waiver_longer", "have another waiver made", "the waiver was asked for until %s, and no longer", set.Expires.Format(time.RFC3339))
			}
			set.Expires = in.Expires.UTC().Round(0)
		}
		switch {
		case set.State != reference.Draft:
			return "", refuse(refusal.Conflict, "reference_state", "portcullis reference show "+set.Name(), "%s is %s, not a draft", set.Name(), set.State)
		case !s.o.Approval.Allows(approval.Person(set.Owner), approval.Person(actor)):
			return "", refuse(refusal.Conflict, "two_persons", "another operator must look at it: portcullis reference show "+set.Name(), "%s was made by %s, who may not approve it", set.Name(), actor)
		case !set.Expires.IsZero() && !now.Before(set.Expires):
			return "", refuse(refusal.Conflict, "reference_over", "name a later date, or make another", "%s would be over at once", set.Name())
		}
		set.State, set.Approver, set.Trusted = reference.Approved, actor, now
		detail := "of " + set.Owner + ": " + set.Reason
		if why != "" {
			detail += "; approved: " + why
		}
		return detail, nil
	})
}

// Expire ends a set now or at a date. A waiver can only be made shorter.
func (s *Service) Expire(ctx context.Context, actor, class string, version uint64, in v1.ReferenceExpire) (*v1.Reference, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	if in.Reason == "" || len(in.Reason) > maxText {
		return nil, noReason()
	}
	return s.step(ctx, actor, "expire", class, version, func(set *reference.Set) (string, error) {
		now, at := s.now(), in.At.UTC().Round(0)
		switch {
		case set.State == reference.Ended:
			return "", refuse(refusal.Conflict, "reference_state", "portcullis reference show "+set.Name(), "%s was ended before", set.Name())
		case in.At.IsZero() || !now.Before(at):
			set.State = reference.Ended
			if set.Expires.IsZero() || now.Before(set.Expires) {
				set.Expires = now
			}
			return in.Reason, nil
		case !set.Expires.IsZero() && at.After(set.Expires):
			return "", refuse(refusal.Conflict, "reference_longer", "have another one approved", "%s ends %s; its end can come earlier, not later", set.Name(), set.Expires.Format(time.RFC3339))
		}
		set.Expires = at
		return fmt.Sprintf("at %s: %s", at.Format(time.RFC3339), in.Reason), nil
	})
}

// DiffHost returns how the last boot of a host differs from a set.
func (s *Service) DiffHost(ctx context.Context, class string, version uint64, host string) (*v1.ReferenceDiff, error) {
	set, err := s.comparable(ctx, class, version)
	if err != nil {
		return nil, err
	}
	rec, err := bootRecord(ctx, s.o.Store, host)
	if err != nil {
		return nil, explain(err)
	}
	b := rec.Boot()
	out := &v1.ReferenceDiff{Reference: set.Name(), Other: host, Measured: rec.Time, Differences: differences(set.Compare(&b))}
	var at [eventlog.NumPCRs]int
	for i := range b.Log.Events {
		e := &b.Log.Events[i]
		at[e.PCR]++
		out.Events = append(out.Events, v1.ReferenceEvent{PCR: e.PCR, Position: at[e.PCR], Digest: e.Digest, Note: e.Describe()})
	}
	return out, nil
}

// Diff returns how another set of the class differs from a set.
func (s *Service) Diff(ctx context.Context, class string, version, with uint64) (*v1.ReferenceDiff, error) {
	set, err := s.comparable(ctx, class, version)
	if err != nil {
		return nil, err
	}
	other, err := s.comparable(ctx, class, with)
	if err != nil {
		return nil, err
	}
	return &v1.ReferenceDiff{Reference: set.Name(), Other: other.Name(), Differences: differences(set.CompareSet(other))}, nil
}

func (s *Service) comparable(ctx context.Context, class string, version uint64) (*reference.Set, error) {
	set, err := get(ctx, s.o.Store, class, version)
	if err == nil && set.Waiver {
		err = refuse(refusal.Conflict, "reference_waiver", "portcullis reference list", "%s is a waiver, which has no values", set.Name())
	}
	return set, explain(err)
}

func differences(d []reference.Difference) []reference.Difference {
	if d == nil {
		return []reference.Difference{}
	}
	return d
}

// Waivers counts the waivers in force, and those that ended by themselves and that no operator has ended since.
func (s *Service) Waivers(ctx context.Context) (inForce, expired int, err error) {
	list, _, err := attestation.References().List(ctx, s.o.Store, "")
	if err != nil {
		return 0, 0, err
	}
	now := s.now()
	waivers := slices.DeleteFunc(list, func(r store.Record[reference.Set]) bool {
		return !r.Value.Waiver || r.Value.State != reference.Approved
	})
	for i := range waivers {
		if waivers[i].Value.Valid(now) {
			inForce++
		}
	}
	return inForce, len(waivers) - inForce, nil
}
