package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/hostlabel"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/inventory/register"
	"portcullis/api/lifecycle"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// RemoveHost removes a host that left permanently from inventory, so that its adapters, its EK and its switch ports can be
// those of other hosts. It is refused while the host is assigned, while a P_Key of it is not proven absent, while it is
// held, and while a change of it waits for a second person. The number of its last assignment stays, so that no command for
// one of them reaches a later host of the same id. Its EK stays too, because another one takes two persons also when the
// host comes back.
func (s *Service) RemoveHost(ctx context.Context, actor, host string, in v1.HostRemoval) error {
	what := audit.Change{Actor: actor, Action: "host.remove", Object: "host/" + refusal.Clip(host)}
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return refusal.New(refusal.Invalid, "reason_missing", "say why the host leaves", "no reason given")
	}
	return s.refusals.Note(ctx, what, s.update(ctx, func(tx *store.Tx) error {
		head, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey))
		if err != nil {
			return err
		}
		f, err := s.named(ctx, tx, host)
		if err != nil {
			return err
		}
		if err := errors.Join(f.rec.SameTenancy(ctx, f.host.ID), removable(f), register.NothingStaged(ctx, tx, host)); err != nil {
			return err
		}
		adopted, err := endAdopted(ctx, tx, f)
		if err != nil {
			return err
		}
		rec, now := f.rec, s.now()
		rec.DropToken(tx)
		rec.Unseal(tx)
		inventory.Hosts().Delete(tx, host)
		hostlabel.Records().Delete(tx, host)
		what.Before, what.After = []any{f.host, f.rec}, hostrecord.Record{
			Phase: v1.PhaseQuarantined, Since: now, Epoch: f.rec.Epoch, Removed: &hostrecord.Removal{Time: now, EK: f.host.EK},
		}
		what.Detail = refusal.ClipTo(fmt.Sprintf("with %d adapters, rack %q: %s", len(f.host.HCAs), f.host.Rack, why), maxDetail) + endedToo(adopted)
		return errors.Join(
			hostrecord.Records().Put(tx, host, what.After.(hostrecord.Record)),
			inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: now, Actor: actor, Hosts: max(head.Hosts-1, 0)}),
			s.log(ctx, tx, &what),
		)
	}))
}

// removable refuses to remove a host that has, or may have, anything.
func removable(f *facts) error {
	id := f.host.ID
	life := f.rec.Life(f.now)
	switch lifecycle.Refuses(&life, lifecycle.Asked{Command: lifecycle.Remove}) {
	case lifecycle.GuardAway:
		return refusal.New(refusal.Conflict, "host_assigned", "release the host first", "host %s is assigned to cluster %s (%s)", id, f.rec.Cluster, hostrecord.PhaseOf(f.rec))
	case lifecycle.GuardTraceless:
		var left []string
		for _, k := range f.sortedGrants() {
			where := "its adapter"
			if st := f.grants[k]; !st.Absent() {
				where = "switch port " + k.Place.String()
			}
			left = append(left, fmt.Sprintf("P_Key %v of port %v is not proven absent from %s", k.PKey, k.GUID, where))
		}
		return refusal.New(refusal.Conflict, "host_granted", "wait until it is; of an adapter that is gone permanently: portcullis fabric keys retire, or topospec rma",
			"host %s cannot be removed: %s", id, refusal.Some(left))
	case lifecycle.GuardNotHeld:
		return refusal.New(refusal.Conflict, "host_held", f.rec.Conflicts[0].Remedy(id), "host %s is held: %s", id, f.rec.Conflicts[0].Fact())
	default:
		return nil
	}
}
