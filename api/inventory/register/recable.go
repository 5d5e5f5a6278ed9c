package register

import (
	"context"
	"errors"
	"fmt"

	"portcullis/api/audit"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// MoveCables changes inventory so that the cables at one switch are at another, port by port, and the other switch stands
// where the one stood. It is for a switch that was replaced; the caller knows that the old one is gone. It returns the number of hosts concerned. Evidence stays: it says
// what is in a host, not where its cables end. Grants follow: those at the old switch are withdrawn, and those at the new
// one are made when the fabric shows each host there.
func (s *Service) MoveCables(ctx context.Context, actor string, from, to ib.GUID, why string) (hosts int, err error) {
	err = s.update(ctx, func(tx *store.Tx) error {
		hosts = 0
		if _, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
			return err
		}
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		recs, _, err := inventory.Hosts().List(ctx, snap, "")
		if err != nil {
			return err
		}
		moved, err := recabled(recs, from, to)
		if err != nil {
			return err
		}
		replaced, err := replaceSwitch(ctx, tx, snap, from, to)
		if hosts = len(moved); err != nil || hosts == 0 && !replaced {
			return err
		}
		return s.putMoved(ctx, tx, actor, moved, len(recs), fmt.Sprintf("%d hosts from switch %v to %v, %s", hosts, from, to, why))
	})
	return hosts, err
}

// recabled returns the hosts that have cables at a switch, with these cables moved to another.
func recabled(recs []store.Record[inventory.Host], from, to ib.GUID) ([]inventory.Host, error) {
	var moved []inventory.Host
	at := map[ib.Place]string{}
	for i := range recs {
		h := &recs[i].Value
		if h.MoveCables(from, to) {
			moved = append(moved, *h)
		}
		for _, p := range h.Ports() {
			if other, taken := at[p.Cable]; taken && !p.Cable.IsZero() {
				return nil, refusal.New(refusal.Conflict, "place_taken", "correct the inventory first", "inventory would have hosts %s and %s at %v", other, h.ID, p.Cable)
			}
			at[p.Cable] = h.ID
		}
	}
	return moved, nil
}

// putMoved writes hosts whose cables were moved, and settles each.
func (s *Service) putMoved(ctx context.Context, tx *store.Tx, actor string, moved []inventory.Host, total int, detail string) error {
	for _, h := range moved {
		if err := inventory.Hosts().Put(tx, h.ID, h); err != nil {
			return err
		}
	}
	err := errors.Join(
		inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: s.now(), Actor: actor, Hosts: total}),
		s.log(ctx, tx, &audit.Change{Actor: actor, Action: "inventory.recable", Object: "inventory", After: moved, Detail: detail}),
	)
	if err != nil {
		return err
	}
	for _, h := range moved {
		if err := s.o.Admission.Settle(ctx, tx, h.ID); err != nil {
			return err
		}
	}
	return nil
}
