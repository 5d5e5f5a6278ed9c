package adoptions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/adoption"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// End ends the adoption of memberships: the ports lose them. A staged adoption is dropped.
func (s *Service) End(ctx context.Context, actor, id string, in *v1.AdoptionEnd) (*v1.Adoption, error) {
	why, err := reasonOf(in.Reason)
	if err != nil {
		return nil, err
	}
	if in.All == (len(in.Ports)+len(in.PKeys) > 0) {
		return nil, refusal.New(refusal.Invalid, "ports_missing", "name ports or P_Keys, or all", "want ports, P_Keys or all, and not both")
	}
	var out v1.Adoption
	err = s.update(ctx, func(tx *store.Tx) error {
		rec, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		was := rec
		switch {
		case rec.State == v1.AdoptionOver:
			return refusal.New(refusal.Conflict, "adoption_over", "portcullis adopt list", "%s is over", id)
		case rec.State == v1.AdoptionStaged && !in.All:
			return refusal.New(refusal.Conflict, "adoption_staged", "end it, and stage another one", "%s is not confirmed yet, and ends as a whole", id)
		case rec.State == v1.AdoptionStaged:
			if err := confirmed(0, in.Confirm); err != nil {
				return err
			}
			rec.State, rec.Ended, rec.Ports = v1.AdoptionOver, s.now(), nil
			out = rec.view(id)
			return errors.Join(Records().Put(tx, id, rec), s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "adoption.end", Object: "adoption/" + id, Before: was, After: rec, Detail: "it was not confirmed: " + why,
			}))
		}
		keys, err := s.chosen(ctx, tx, id, in)
		if err != nil {
			return err
		}
		if err := confirmed(len(keys), in.Confirm); err != nil {
			return err
		}
		if err := s.withdraw(ctx, tx, id, keys, adoption.Ended); err != nil {
			return err
		}
		out = rec.view(id)
		return s.ended(ctx, tx, actor, id, keys, adoption.Ended, why)
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// chosen returns the memberships of an adoption that are kept and named, sorted.
func (s *Service) chosen(ctx context.Context, tx *store.Tx, id string, in *v1.AdoptionEnd) ([]records.Key, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	all, err := stockOf(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	ports, pkeys := map[ib.GUID]bool{}, map[ib.PKey]bool{}
	for _, g := range in.Ports {
		ports[g] = false
	}
	for _, k := range in.PKeys {
		pkeys[k.Base()] = false
	}
	var out []records.Key
	for i := range all {
		m := &all[i]
		_, port := ports[m.key.GUID]
		_, pkey := pkeys[m.key.PKey]
		if !m.kept() || len(ports) > 0 && !port || len(pkeys) > 0 && !pkey {
			continue
		}
		if port {
			ports[m.key.GUID] = true
		}
		if pkey {
			pkeys[m.key.PKey] = true
		}
		out = append(out, m.key)
	}
	for _, g := range in.Ports {
		if !ports[g] {
			return nil, refusal.New(refusal.Conflict, "port_not_adopted", "portcullis adopt show "+id, "%s keeps none of these memberships of port %v", id, g)
		}
	}
	for _, k := range in.PKeys {
		if !pkeys[k.Base()] {
			return nil, refusal.New(refusal.Conflict, "p_key_not_adopted", "portcullis adopt show "+id, "%s keeps P_Key %v of none of these ports", id, k)
		}
	}
	return out, nil
}

// withdraw has memberships proven absent. Those that another writer changed meanwhile are left alone.
func (s *Service) withdraw(ctx context.Context, tx *store.Tx, id string, keys []records.Key, cause adoption.Cause) error {
	for _, k := range keys {
		g, err := store.Optional(records.Grants().Get(ctx, tx, k.String()))
		if err != nil {
			return err
		}
		if g.Adopted != id || g.Withdrawn {
			continue
		}
		m, err := records.Adoptions().Get(ctx, tx, k.String())
		if err != nil {
			return err
		}
		g.Withdrawn, g.Since, m.Value.Cause = true, s.now(), string(cause)
		if err := errors.Join(records.Grants().Put(tx, k.String(), g), records.Adoptions().Put(tx, k.String(), m.Value)); err != nil {
			return err
		}
	}
	return nil
}

// ended records that the adoption of memberships ended.
func (s *Service) ended(ctx context.Context, tx *store.Tx, actor, id string, keys []records.Key, cause adoption.Cause, why string) error {
	ports := make([]string, 0, len(keys))
	for _, k := range keys {
		ports = append(ports, fmt.Sprintf("%v %v", k.GUID, k.PKey))
	}
	slices.Sort(ports)
	what := fmt.Sprintf("the adoption of %d memberships ended (%s): %s", len(keys), refusal.Some(ports), why)
	return errors.Join(
		s.log(ctx, tx, &audit.Change{Actor: actor, Action: "adoption.end", Object: "adoption/" + id, Code: string(cause), Detail: what}),
		events.Record(ctx, tx, s.now(), v1.Event{
			Type: events.AdoptionEnded, By: events.ByService, Cause: string(cause), Expected: "adopted memberships stay until the deadline of " + id, Seen: id + ": " + what,
		}),
	)
}
