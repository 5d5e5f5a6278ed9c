package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/fabric/ledger"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// A host is known once evidence of it was accepted: from then on its EK says which
// machine it is, and what else is known of it hangs on that. So inventory gives a known
// host another EK, or none, only by two persons: an import stages the row, with the ticket
// of the repair, and somebody else confirms it. The same holds for an EK that was replaced
// before, whichever host is to have it. All else of inventory is one person's word, as is
// the EK of a host that was never accepted, since whoever registers hosts could register
// that one.

// Repair is a row of inventory that waits for a second person.
type Repair struct {
	Ticket  string          `json:"ticket"`
	Reason  string          `json:"reason"`
	By      string          `json:"by"`
	Staged  time.Time       `json:"staged"`
	Expires time.Time       `json:"expires"`
	Before  *inventory.Host `json:"before,omitempty"` // nil: not in inventory
	After   inventory.Host  `json:"after"`
}

// DeniedEK is an EK that was a known host's and was replaced.
type DeniedEK struct {
	Time   time.Time `json:"time"`
	Host   string    `json:"host"` // that had it
	Ticket string    `json:"ticket"`
	By     string    `json:"by"` // who confirmed it
}

const (
	repairLife = 7 * 24 * time.Hour
	// leastDigest is how many digits of a digest name what somebody looked at.
	leastDigest = 12
)

// Repairs holds what waits for a second person, by host.
func Repairs() store.Collection[Repair] { return store.NewCollection[Repair]("inventory/repairs", 1) }

// DeniedEKs holds the EKs that were replaced, by their digests.
func DeniedEKs() store.Collection[DeniedEK] {
	return store.NewCollection[DeniedEK]("inventory/denied", 1)
}

var ticketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckTicket refuses what is no name of a ticket: it is a key, and is shown in commands.
func CheckTicket(ticket string) error {
	if ticketForm.MatchString(ticket) {
		return nil
	}
	return refusal(Invalid, "ticket_invalid", "want letters, digits, '.', '_' and '-', at most 64", "ticket %.80q", ticket)
}

// staged is a row that an import does not take.
type staged struct {
	repair Repair
	fresh  bool // it is not in the store yet
	denied bool // its EK was replaced before
}

// stage finds the rows of a plan that need two persons. The plan's transaction has read
// the head of inventory, which everything that denies an EK, stages or confirms writes.
func (s *Service) stage(ctx context.Context, tx *store.Tx, p *inventory.Plan, actor string, t v1.RepairTicket, dryRun bool) ([]staged, error) {
	denied, err := deniedSet(ctx, tx)
	if err != nil {
		return nil, err
	}
	var out []staged
	add := func(before *inventory.Host, after *inventory.Host) {
		now := s.now()
		out = append(out, staged{fresh: true, denied: denied[after.EK], repair: Repair{
			Ticket: t.Ticket, Reason: strings.TrimSpace(t.Reason), By: actor, Staged: now, Expires: now.Add(repairLife), Before: before, After: *after,
		}})
	}
	for i := range p.Added {
		if h := &p.Added[i]; denied[h.EK] {
			add(nil, h)
		}
	}
	for i := range p.Changed {
		c := &p.Changed[i]
		if c.Before.EK == c.After.EK {
			continue
		}
		known := denied[c.After.EK]
		if !known {
			if known, err = isKnown(ctx, tx, c.Before.ID); err != nil {
				return nil, err
			}
		}
		if known {
			add(&c.Before, &c.After)
		}
	}
	if err := s.pending(ctx, tx, out); err != nil {
		return nil, err
	}
	return out, wantTicket(out, t, dryRun)
}

// isKnown reports whether evidence of the host was ever accepted.
func isKnown(ctx context.Context, r store.Reader, host string) (bool, error) {
	_, err := Verdicts().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func deniedSet(ctx context.Context, tx *store.Tx) (map[string]bool, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := DeniedEKs().List(ctx, snap, "")
	set := make(map[string]bool, len(list))
	for _, r := range list {
		set[r.Key] = true
	}
	return set, err
}

// pending takes rows that were staged before as they were, and refuses others for the
// same hosts.
func (s *Service) pending(ctx context.Context, tx *store.Tx, rows []staged) error {
	var problems []string
	for i := range rows {
		r := &rows[i]
		was, err := Repairs().Get(ctx, tx, r.repair.After.ID)
		if errors.Is(err, store.ErrNotFound) || err == nil && !s.now().Before(was.Value.Expires) {
			continue
		}
		if err != nil {
			return err
		}
		if !same(was.Value.Before, r.repair.Before) || !same(&was.Value.After, &r.repair.After) {
			problems = append(problems, fmt.Sprintf("host %s: %s of %s has another change of it", r.repair.After.ID, was.Value.Ticket, was.Value.By))
			continue
		}
		r.repair, r.fresh = was.Value, false
	}
	if problems == nil {
		return nil
	}
	return &Error{
		Code: "repair_open", Status: Conflict, Problems: problems,
		Detail: "changes of these hosts wait for a second person; nothing was imported",
		Hint:   "portcullis inventory repair list has them; cancel one to stage another",
	}
}

// same reports that two rows say the same.
func same(a, b *inventory.Host) bool {
	if a == nil || b == nil {
		return a == b
	}
	fields, _ := a.Diff(b)
	return a.ID == b.ID && len(fields) == 0
}

// wantTicket refuses to stage rows without a ticket and a reason.
func wantTicket(rows []staged, t v1.RepairTicket, dryRun bool) error {
	var problems []string
	for i := range rows {
		if rows[i].fresh {
			problems = append(problems, fmt.Sprintf("host %s: %s", rows[i].repair.After.ID, rows[i].why()))
		}
	}
	if problems == nil || dryRun {
		return nil
	}
	hint := "portcullis inventory import --ticket TICKET --reason TEXT stages them for another person to confirm"
	if t.Ticket == "" || strings.TrimSpace(t.Reason) == "" {
		return &Error{
			Code: "repair_needed", Status: Conflict, Problems: problems, Hint: hint,
			Detail: "that a host has another TPM is for two persons to say; nothing was imported",
		}
	}
	return CheckTicket(t.Ticket)
}

func (r *staged) why() string {
	if r.denied {
		return fmt.Sprintf("EK %s is on the deny list, since it was replaced", r.repair.After.EK)
	}
	return r.repair.fields()[0]
}

func (r *Repair) fields() []string {
	if r.Before == nil {
		return []string{"ek_sha256: was not set, now " + r.After.EK}
	}
	fields, _ := r.Before.Diff(&r.After)
	return fields
}

// setAside gives the plan without rows that are staged. Each of these must be such that
// it can be confirmed by itself once the rest of the import is in force.
func setAside(p *inventory.Plan, rows []staged) (*inventory.Plan, error) {
	var ids []string
	for i := range rows {
		ids = append(ids, rows[i].repair.After.ID)
	}
	rest, err := p.Without(ids...)
	if err != nil {
		return nil, invalidInventory(err)
	}
	hosts := rest.Hosts()
	for i := range rows {
		r := &rows[i].repair
		if _, err := inventory.Replace(hosts, &r.After, "host "+r.After.ID+", which is staged by itself"); err != nil {
			return nil, invalidInventory(err)
		}
	}
	return rest, nil
}

// putStaged writes the rows that are new.
func (s *Service) putStaged(ctx context.Context, tx *store.Tx, rows []staged) error {
	for i := range rows {
		if !rows[i].fresh {
			continue
		}
		r := &rows[i].repair
		s.o.Log.Warn("inventory is to have another EK of a host", "host", r.After.ID, "ticket", r.Ticket, "actor", r.By, "why", r.Reason)
		if err := errors.Join(
			Repairs().Put(tx, r.After.ID, *r),
			s.log(ctx, tx, change{
				actor: r.By, action: "inventory.repair.stage", object: "host/" + r.After.ID, code: r.Ticket, before: r.Before, after: r.After,
				detail: clipTo(strings.Join(r.fields(), "; ")+": "+r.Reason, maxDetail),
			}),
		); err != nil {
			return err
		}
	}
	return nil
}

// Repairs lists the changes of inventory that wait for a second person, by host.
func (s *Service) Repairs(ctx context.Context) ([]v1.Repair, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, explain(err)
	}
	list, _, err := Repairs().List(ctx, snap, "")
	if err != nil {
		return nil, explain(err)
	}
	out := make([]v1.Repair, 0, len(list))
	for i := range list {
		v, err := s.repairView(ctx, snap, &list[i].Value)
		if err != nil {
			return nil, explain(err)
		}
		out = append(out, *v)
	}
	return out, nil
}

// Repair gives the change of a host that waits for a second person.
func (s *Service) Repair(ctx context.Context, host string) (*v1.Repair, error) {
	r, err := getRepair(ctx, s.o.Store, host)
	if err != nil {
		return nil, explain(err)
	}
	v, err := s.repairView(ctx, s.o.Store, r)
	return v, explain(err)
}

func (s *Service) repairView(ctx context.Context, r store.Reader, rec *Repair) (*v1.Repair, error) {
	digest, err := audit.Digest(rec)
	if err != nil {
		return nil, err
	}
	back, err := DeniedEKs().Get(ctx, r, cmp.Or(rec.After.EK, noEK))
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
	unknown := refusal(NotFound, "repair_unknown", "portcullis inventory repair list", "no change of host %q waits for a second person", clip(host))
	if !inventory.ValidHostID(host) {
		return nil, unknown
	}
	rec, err := Repairs().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	return &rec.Value, err
}

// ConfirmRepair puts a staged row into force: the EK that the host had is denied from now
// on, its evidence, its sessions and its orders for adapters are void, and its window is
// closed. Who staged it may not, and the digest is that of what actor looked at.
func (s *Service) ConfirmRepair(ctx context.Context, actor, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	var out *v1.Repair
	err := s.update(ctx, func(tx *store.Tx) error {
		if _, err := optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
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
		return s.replaceEK(ctx, tx, actor, r, plan)
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
		return refusal(Conflict, "repair_expired", "import it again", "the change of host %s was to be confirmed until %s", id, r.Expires.Format(time.RFC3339))
	case actor == r.By && !s.o.Alone:
		return refusal(Conflict, "two_persons", "have somebody else look at it: "+show, "the change of host %s was staged by %s, who may not confirm it", id, r.By)
	case len(digest) < leastDigest || !strings.HasPrefix(v.Digest, strings.ToLower(digest)):
		return refusal(Changed, "repair_changed", "look at it again: "+show, "the change of host %s is not the one with digest %.80q", id, digest)
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
	recs, _, err := inventory.Hosts().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	var stored []inventory.Host
	var now *inventory.Host
	for i := range recs {
		stored = append(stored, recs[i].Value)
		if recs[i].Key == r.After.ID {
			now = &recs[i].Value
		}
	}
	if !same(now, r.Before) {
		return nil, refusal(Conflict, "repair_stale", "cancel it, and import the inventory again", "inventory has changed for host %s since its change was staged", r.After.ID)
	}
	plan, err := inventory.Replace(stored, &r.After, r.Ticket)
	if err != nil {
		return nil, invalidInventory(err)
	}
	grants, _, err := ledger.Grants().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	return plan, s.refuseLocked(ctx, tx, plan, grants)
}

func (s *Service) replaceEK(ctx context.Context, tx *store.Tx, actor string, r *Repair, p *inventory.Plan) error {
	id := r.After.ID
	detail := fmt.Sprintf("staged by %s: %s", r.By, strings.Join(r.fields(), "; "))
	if r.Before != nil && r.Before.EK != "" && r.Before.EK != r.After.EK {
		detail += "; EK " + r.Before.EK + " is denied"
		if err := DeniedEKs().Put(tx, r.Before.EK, DeniedEK{Time: s.now(), Host: id, Ticket: r.Ticket, By: actor}); err != nil {
			return err
		}
	}
	if r.After.EK != "" {
		DeniedEKs().Delete(tx, r.After.EK)
	}
	Repairs().Delete(tx, id)
	if err := errors.Join(
		inventory.Hosts().Put(tx, id, r.After),
		inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: s.now(), Actor: actor, Hosts: p.Total}),
		s.log(ctx, tx, change{
			actor: actor, action: "inventory.repair.confirm", object: "host/" + id, code: r.Ticket, before: r.Before, after: r.After,
			detail: clipTo(detail, 2*maxDetail),
		}),
	); err != nil {
		return err
	}
	return s.forget(ctx, tx, id)
}

// forget voids all that a host showed with another TPM: its evidence, its sessions, its
// seal, its tickets and its token. Its window closes.
func (s *Service) forget(ctx context.Context, tx *store.Tx, id string) error {
	rec, err := Records().Get(ctx, tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r := rec.Value
	if r.Token != "" {
		tokens().Delete(tx, r.Token)
	}
	r.unseal(tx)
	r.Evidence, r.Token, r.Window = nil, "", time.Time{}
	r.Epoch++ // of which sessions, seals and tickets are
	MeasuredBoots().Delete(tx, id)
	if err := errors.Join(dropSessions(ctx, tx, id), Records().Put(tx, id, r)); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, tx, id)
	return err
}

// CancelRepair ends a change that waits for a second person.
func (s *Service) CancelRepair(ctx context.Context, actor, host string, in v1.RepairCancel) (*v1.Repair, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refusal(Invalid, "reason_missing", "say it in a few words, for those who read it later", "no reason is given")
	}
	var out *v1.Repair
	err := s.update(ctx, func(tx *store.Tx) error {
		head, err := optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey))
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
			s.log(ctx, tx, change{
				actor: actor, action: "inventory.repair.cancel", object: "host/" + host, code: r.Ticket, before: r,
				detail: clipTo(why, maxDetail),
			}),
		)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeniedEKs lists the EKs that were replaced, the newest first.
func (s *Service) DeniedEKs(ctx context.Context) ([]v1.DeniedEK, error) {
	list, _, err := DeniedEKs().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, explain(err)
	}
	out := make([]v1.DeniedEK, 0, len(list))
	for _, r := range list {
		out = append(out, v1.DeniedEK{EK: r.Key, Time: r.Value.Time, Host: r.Value.Host, Ticket: r.Value.Ticket, By: r.Value.By})
	}
	slices.SortStableFunc(out, func(a, b v1.DeniedEK) int { return b.Time.Compare(a.Time) })
	return out, nil
}
