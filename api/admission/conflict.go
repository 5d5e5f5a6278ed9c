package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// dispute looks whether evidence that does not agree with inventory shows a GUID
// of another host. Then both hosts are held until an operator has looked: one of
// them has an adapter that is not its own, or one of them lies. A host that was
// admitted stays so, since it was seen at its place, and nobody's word takes a
// neighbour's partition away; but it is told of.
func (s *Service) dispute(ctx context.Context, host string, st *attest.Statement, no *attest.Refusal) *attest.Refusal {
	if st == nil {
		return no
	}
	owner, guid, err := s.ownerOf(ctx, host, st)
	if err != nil {
		s.o.Log.Error("it could not be found out whose GUIDs a host shows", "host", host, "err", err)
		return no
	}
	if owner == "" {
		return no
	}
	s.o.Log.Warn("two hosts claim one GUID", "guid", guid, "claims", host, "owns", owner)
	err = s.update(ctx, func(tx *store.Tx) error {
		return errors.Join(s.hold(ctx, tx, host, owner, guid), s.hold(ctx, tx, owner, host, guid))
	})
	if err != nil {
		s.o.Log.Error("a GUID that two hosts claim could not be recorded", "guid", guid, "claims", host, "owns", owner, "err", err)
	}
	return &attest.Refusal{
		Code:   ReasonConflict,
		Detail: fmt.Sprintf("GUID %v is that of host %s; %s", guid, owner, no.Detail),
	}
}

// ownerOf finds the first GUID of a statement that inventory has for another
// host.
func (s *Service) ownerOf(ctx context.Context, host string, st *attest.Statement) (owner string, guid ib.GUID, err error) {
	hosts, _, err := inventory.Hosts().List(ctx, s.o.Store, "")
	if err != nil {
		return "", 0, err
	}
	owners := map[ib.GUID]string{}
	for _, h := range hosts {
		if h.Key == host {
			continue
		}
		for _, a := range h.Value.HCAs {
			owners[a.NodeGUID] = h.Key
			for _, p := range a.Ports {
				owners[p.GUID] = h.Key
			}
		}
	}
	for _, g := range guidsOf(st) {
		if o, there := owners[g]; there {
			return o, g, nil
		}
	}
	return "", 0, nil
}

func guidsOf(st *attest.Statement) []ib.GUID {
	var out []ib.GUID
	for _, a := range st.HCAs {
		out = append(out, a.NodeGUID)
		for _, p := range a.Ports {
			out = append(out, p.GUID)
		}
	}
	return slices.DeleteFunc(out, func(g ib.GUID) bool { return g == 0 })
}

// hold notes the conflict with a host. A second one with the same host about the
// same GUID is no news.
func (s *Service) hold(ctx context.Context, tx *store.Tx, host, with string, guid ib.GUID) error {
	rec, err := optional(Records().Get(ctx, tx, host))
	if err != nil {
		return err
	}
	if c := rec.Conflict; c != nil && c.GUID == guid && c.With == with {
		return nil
	}
	rec.Conflict = &Dispute{Time: s.now(), GUID: guid, With: with}
	if err := errors.Join(
		Records().Put(tx, host, rec),
		s.log(ctx, tx, change{
			actor: service, action: "guid.conflict", object: "host/" + host, code: string(ReasonConflict),
			detail: fmt.Sprintf("GUID %v is claimed by host %s too", guid, with),
		}),
	); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, tx, host)
	return err
}
