package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec/approval"
)

// leastDigest is how many digits of a digest identify the content that an operator looked at.
const leastDigest = 12

// Repairs lists the changes of inventory that wait for a second person, by host.
func (s *Service) Repairs(ctx context.Context, q v1.PageQuery) (*v1.List[v1.Repair], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out, err := page.Walk(ctx, "repairs", q, page.Of(snap, Repairs(), ""), page.Each(func(r *store.Record[Repair]) (*v1.Repair, error) {
		return s.repairView(ctx, snap, &r.Value)
	}))
	return out, refusal.Explain(err)
}

// Repair returns the change of a host that waits for a second person.
func (s *Service) Repair(ctx context.Context, host string) (*v1.Repair, error) {
	r, err := getRepair(ctx, s.o.Store, host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	v, err := s.repairView(ctx, s.o.Store, r)
	return v, refusal.Explain(err)
}

func (s *Service) repairView(ctx context.Context, r store.Reader, rec *Repair) (*v1.Repair, error) {
	digest, err := audit.Digest(rec)
	if err != nil {
		return nil, err
	}
	back, err := inventory.DeniedEKs().Get(ctx, r, cmp.Or(rec.After.EK, inventory.NoEK))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	v := &v1.Repair{
		Host: rec.After.ID, Ticket: rec.Ticket, Reason: rec.Reason, By: rec.By, Staged: rec.Staged, Expires: rec.Expires,
		Expired: !s.now().Before(rec.Expires), EK: rec.After.EK, Fields: rec.fields(), Digest: digest, Denied: err == nil,
	}
	if rec.Before != nil {
		v.EKWas = rec.Before.EK
	}
	if v.Denied {
		v.DeniedBy = back.Value.Ticket
	}
	return v, nil
}

func getRepair(ctx context.Context, r store.Reader, host string) (*Repair, error) {
	unknown := refusal.New(refusal.NotFound, "repair_unknown", "portcullis inventory repair list", "no change of host %q waits for a second person", refusal.Clip(host))
	if !inventory.ValidHostID(host) {
		return nil, unknown
	}
	rec, err := Repairs().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	return &rec.Value, err
}

// ConfirmRepair puts a staged row into force. The EK that the host had is denied from now on, its evidence, its sessions
// and its orders for adapters are void, and its window is closed. The operator who staged the row cannot confirm it. The
// digest is that of the row that actor looked at.
func (s *Service) ConfirmRepair(ctx context.Context, actor, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	var out *v1.Repair
	err := s.update(ctx, func(tx *store.Tx) error {
		if _, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
			return err
		}
		r, err := getRepair(ctx, tx, host)
		if err != nil {
			return err
		}
		if out, err = s.repairView(ctx, tx, r); err != nil {
			return err
		}
		if err := s.mayConfirm(actor, r, out, in.Digest); err != nil {
			return err
		}
		plan, err := s.repairPlan(ctx, tx, r)
		if err != nil {
			return err
		}
		return s.replaceEK(ctx, tx, actor, strings.TrimSpace(in.Reason), r, plan)
	})
	if err != nil {
		return nil, err
	}
	s.o.Log.Warn("inventory has another EK of a host", "host", host, "ticket", out.Ticket, "staged_by", out.By, "actor", actor)
	return out, nil
}

func (s *Service) mayConfirm(actor string, r *Repair, v *v1.Repair, digest string) error {
	id := r.After.ID
	show := "portcullis inventory repair show " + id
	switch {
	case v.Expired:
		return refusal.New(refusal.Conflict, "repair_expired", "import it again", "the change of host %s was to be confirmed until %s", id, r.Expires.Format(time.RFC3339))
	case !s.o.Approval.Allows(approval.Person(r.By), approval.Person(actor)):
		return refusal.New(refusal.Conflict, "two_persons", "another operator must look at it: "+show, "the change of host %s was staged by %s, who may not confirm it", id, r.By)
	case len(digest) < leastDigest || !strings.HasPrefix(v.Digest, strings.ToLower(digest)):
		return refusal.New(refusal.Changed, "repair_changed", "look at it again: "+show, "the change of host %s is not the one with digest %.80q", id, digest)
	default:
		return nil
	}
}

// repairPlan is the plan of a row, if inventory is as it was when the row was staged.
func (s *Service) repairPlan(ctx context.Context, tx *store.Tx, r *Repair) (*inventory.Plan, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := inventory.Load(ctx, snap)
	if err != nil {
		return nil, err
	}
	var now *inventory.Host
	if i := slices.IndexFunc(stored.Hosts, func(h inventory.Host) bool { return h.ID == r.After.ID }); i >= 0 {
		now = &stored.Hosts[i]
	}
	if !same(now, r.Before) {
		return nil, refusal.New(refusal.Conflict, "repair_stale", "cancel it, and import the inventory again", "inventory has changed for host %s since its change was staged", r.After.ID)
	}
	plan, err := inventory.Replace(stored, &r.After, r.Ticket)
	if err != nil {
		return nil, invalidInventory(err)
	}
	grants, _, err := records.Grants().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	return plan, s.refuseLocked(ctx, tx, plan, grants)
}

func (s *Service) replaceEK(ctx context.Context, tx *store.Tx, actor, why string, r *Repair, p *inventory.Plan) error {
	id := r.After.ID
	detail := fmt.Sprintf("staged by %s: %s", r.By, strings.Join(r.fields(), "; "))
	if r.Before != nil && r.Before.EK != "" && r.Before.EK != r.After.EK {
		detail += "; the old EK is denied" // its digest is among the fields, and the audit log cuts long texts
		if err := inventory.DeniedEKs().Put(tx, r.Before.EK, inventory.DeniedEK{Time: s.now(), Host: id, Ticket: r.Ticket, By: actor}); err != nil {
			return err
		}
	}
	if why != "" {
		detail += "; confirmed: " + why
	}
	if r.After.EK != "" {
		inventory.DeniedEKs().Delete(tx, r.After.EK)
	}
	Repairs().Delete(tx, id)
	if err := errors.Join(
		inventory.Hosts().Put(tx, id, r.After),
		putEquipment(tx, p),
		inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: s.now(), Actor: actor, Hosts: p.Total}),
		s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "inventory.repair.confirm", Object: "host/" + id, Code: r.Ticket, Before: r.Before, After: r.After,
			Detail: refusal.ClipTo(detail, 2*maxDetail),
		}),
	); err != nil {
		return err
	}
	return s.o.Admission.Forget(ctx, tx, id)
}

// CancelRepair ends a change that waits for a second person.
func (s *Service) CancelRepair(ctx context.Context, actor, host string, in v1.RepairCancel) (*v1.Repair, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say it in a few words, for those who read it later", "no reason is given")
	}
	var out *v1.Repair
	err := s.update(ctx, func(tx *store.Tx) error {
		head, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey))
		if err != nil {
			return err
		}
		r, err := getRepair(ctx, tx, host)
		if err != nil {
			return err
		}
		if out, err = s.repairView(ctx, tx, r); err != nil {
			return err
		}
		Repairs().Delete(tx, host)
		return errors.Join(
			inventory.Heads().Put(tx, inventory.HeadKey, head),
			s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "inventory.repair.cancel", Object: "host/" + host, Code: r.Ticket, Before: r,
				Detail: refusal.ClipTo(why, maxDetail),
			}),
		)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
