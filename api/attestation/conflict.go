package attestation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/attestation/session"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// maxDisputes bounds the conflicts of one host, and with them how many others a host
// that lies can have held.
const maxDisputes = 16

// claimed is a GUID of a statement that inventory has for another host.
type claimed struct {
	guid  ib.GUID
	owner inventory.Host
}

// dispute checks whether evidence that does not agree with inventory shows GUIDs of other hosts. Then all of them are held
// until an operator has looked: one of them has an adapter of another host, or lies. A host that is held
//
//   - is not admitted: nothing is granted to it, and what was granted before it was
//     reported admitted is withdrawn. It may attest and be handed over, which is kept
//     for when it is held no longer;
//   - is not assigned, neither to another cluster nor again to its own;
//   - gets no orders for its adapters, because their keys are only for the rightful host;
//   - proves nothing to a replacement of an adapter.
//
// It can be released, since no host is to be kept in a partition, and its inventory can be corrected. ConflictRule decides
// about a host that was already admitted.
//
// A session that outlived its window or its assignment holds no host. If only a waiver let the boot pass, only the claiming
// host is held, since any agent may have run there.
func (s *Service) dispute(ctx context.Context, ses *session.Session, host *inventory.Host, v *attest.Verdict, no *attest.Refusal) *attest.Refusal {
	st := v.Facts.Statement
	if st == nil {
		return no
	}
	claims, err := s.claimsOf(ctx, host.ID, st)
	if err != nil {
		s.o.Log.Error("it could not be found out whose GUIDs a host shows", "host", host.ID, "err", err)
		return no
	}
	if len(claims) == 0 {
		return no
	}
	for _, c := range claims {
		s.o.Log.Warn("two hosts claim one GUID", "guid", c.guid, "claims", host.ID, "owns", c.owner.ID)
	}
	late := false
	err = s.update(ctx, func(tx *store.Tx) error {
		rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, host.ID))
		if err != nil {
			return err
		}
		if late = rec.Epoch != ses.Epoch || !s.now().Before(rec.Window); late {
			return nil
		}
		for i := range claims {
			if err := s.hold(ctx, tx, host, &claims[i], v.AnyBoot); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.o.Log.Error("GUIDs that two hosts claim could not be recorded", "claims", host.ID, "first", claims[0].guid, "owns", claims[0].owner.ID, "err", err)
	}
	if late {
		return no
	}
	return &attest.Refusal{
		Code:   ReasonConflict,
		Detail: fmt.Sprintf("GUID %v is that of host %s; %s", claims[0].guid, claims[0].owner.ID, no.Detail),
	}
}

// claimsOf finds the GUIDs of a statement that inventory has for other hosts: the first
// of each, as the statement has them, and at most maxDisputes.
func (s *Service) claimsOf(ctx context.Context, host string, st *attest.Statement) ([]claimed, error) {
	hosts, _, err := inventory.Hosts().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, err
	}
	owners := map[ib.GUID]*inventory.Host{}
	for i := range hosts {
		if h := &hosts[i].Value; hosts[i].Key != host {
			for _, a := range h.HCAs {
				owners[a.NodeGUID] = h
				for _, p := range a.Ports {
					owners[p.GUID] = h
				}
			}
		}
	}
	var out []claimed
	for _, g := range guidsOf(st) {
		o := owners[g]
		if o == nil || slices.ContainsFunc(out, func(c claimed) bool { return c.owner.ID == o.ID }) {
			continue
		}
		if out = append(out, claimed{g, *o}); len(out) == maxDisputes {
			break
		}
	}
	return out, nil
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

// hold notes a conflict with both hosts, or with the one that claims alone. A host that has
// as many as it may brings no further one into it.
func (s *Service) hold(ctx context.Context, tx *store.Tx, host *inventory.Host, c *claimed, alone bool) error {
	e, err := conflictOf(ctx, tx, host, c)
	if err != nil {
		return err
	}
	e.Cause, e.Do = "claims", "both are held: "
	if alone {
		e.Do = "it is held, and the other is not, since only a waiver let its boot pass: "
	}
	held, err := s.holdOne(ctx, tx, host.ID, hostrecord.Dispute{Time: s.now(), GUID: c.guid, With: c.owner.ID}, e)
	if err != nil || !held || alone {
		return err
	}
	e.Cause = "claimed"
	_, err = s.holdOne(ctx, tx, c.owner.ID, hostrecord.Dispute{Time: s.now(), GUID: c.guid, With: host.ID}, e)
	return err
}

// holdOne records a conflict with a host and its event, and reports whether the host has it now. A conflict that it had
// before makes no event.
func (s *Service) holdOne(ctx context.Context, tx *store.Tx, host string, d hostrecord.Dispute, e v1.Event) (bool, error) {
	rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, host))
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(rec.Conflicts, func(c hostrecord.Dispute) bool { return c.GUID == d.GUID && c.With == d.With }) {
		return true, nil
	}
	if len(rec.Conflicts) >= maxDisputes {
		s.o.Log.Warn("a host has more conflicts than are kept", "host", host, "guid", d.GUID, "with", d.With)
		return false, nil
	}
	rec.Conflicts = append(slices.Clone(rec.Conflicts), d)
	e.Host, e.Do = host, e.Do+d.Remedy(host)
	if err := errors.Join(hostrecord.Records().Put(tx, host, rec), events.Record(ctx, tx, s.now(), e)); err != nil {
		return false, err
	}
	_, err = s.o.Admission.Settle(ctx, tx, host)
	return err == nil, err
}

// conflictOf returns an event that names the hosts that claim a GUID, and where each of them is.
func conflictOf(ctx context.Context, tx *store.Tx, host *inventory.Host, c *claimed) (v1.Event, error) {
	owns, err := placesOf(ctx, tx, &c.owner)
	if err != nil {
		return v1.Event{}, err
	}
	claims, err := placesOf(ctx, tx, host)
	return v1.Event{
		Type: events.GUIDConflict, By: events.ByEvidence,
		Expected: fmt.Sprintf("GUID %v in host %s alone, as inventory has it (%s)", c.guid, c.owner.ID, owns),
		Seen:     fmt.Sprintf("in evidence of host %s (%s)", host.ID, claims),
	}, err
}

// placesOf says where the ports of a host are cabled, and where they are seen if that is
// elsewhere.
func placesOf(ctx context.Context, tx *store.Tx, h *inventory.Host) (string, error) {
	var out []string
	for _, p := range h.Ports() {
		seen, err := store.Optional(records.Ports().Get(ctx, tx, p.GUID.String()))
		if err != nil {
			return "", err
		}
		switch {
		case seen.Place.IsZero():
			out = append(out, fmt.Sprintf("port %v cabled to %v, not seen", p.GUID, p.Cable))
		case seen.Place != p.Cable:
			out = append(out, fmt.Sprintf("port %v cabled to %v, seen at %v", p.GUID, p.Cable, seen.Place))
		default:
			out = append(out, fmt.Sprintf("port %v seen at %v, as cabled", p.GUID, p.Cable))
		}
	}
	return cmp.Or(refusal.Some(out), "without ports"), nil
}
