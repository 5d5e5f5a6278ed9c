package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// ResolveGUID records that an operator has found out which host has the GUIDs that a host and others claim: none of them is
// held for these any longer. A host whose evidence still shows the conflict is held again by its next evidence.
func (s *Service) ResolveGUID(ctx context.Context, actor, host string, in v1.GUIDResolved) (*v1.Host, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say what was found", "no reason given")
	}
	var out *v1.Host
	err := s.update(ctx, func(tx *store.Tx) error {
		f, err := s.named(ctx, tx, host)
		if err != nil {
			return err
		}
		if err := f.rec.SameTenancy(ctx, f.host.ID); err != nil {
			return err
		}
		if len(f.rec.Conflicts) == 0 {
			return refusal.New(refusal.Conflict, "host_not_held", "", "no other host claims a GUID of host %s", host)
		}
		var others []string
		for _, c := range f.rec.Conflicts {
			others = insert(others, c.With)
		}
		for _, id := range others {
			if err := s.resolve(ctx, tx, actor, id, why, func(d hostrecord.Dispute) bool { return d.With == host }); err != nil {
				return err
			}
		}
		if err := s.resolve(ctx, tx, actor, host, why, func(hostrecord.Dispute) bool { return true }); err != nil {
			return err
		}
		f, d, err := s.settle(ctx, tx, host)
		if err != nil {
			return err
		}
		out = hostView(f, d)
		return withLabels(ctx, tx, out)
	})
	return out, err
}

// resolve takes conflicts off a host.
func (s *Service) resolve(ctx context.Context, tx *store.Tx, actor, host, why string, over func(hostrecord.Dispute) bool) error {
	was, err := store.Optional(hostrecord.Records().Get(ctx, tx, host))
	if err != nil || !slices.ContainsFunc(was.Conflicts, over) {
		return err
	}
	rec := was
	rec.Conflicts = nil
	var told []string
	for _, c := range was.Conflicts {
		if over(c) {
			told = append(told, fmt.Sprintf("%v with host %s", c.GUID, c.With))
		} else {
			rec.Conflicts = append(rec.Conflicts, c)
		}
	}
	if err := errors.Join(
		hostrecord.Records().Put(tx, host, rec),
		s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "guid.resolve", Object: "host/" + host, Before: was, After: rec,
			Detail: refusal.Some(told) + ": " + refusal.ClipTo(why, maxDetail),
		}),
	); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, tx, host)
	return err
}

// insert returns a sorted list with name in it.
func insert(list []string, name string) []string {
	i, there := slices.BinarySearch(list, name)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), i, name)
}
