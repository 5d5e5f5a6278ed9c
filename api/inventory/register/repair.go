package register

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// A host is known once evidence of it was accepted: from then on its EK says which machine it is, and all other knowledge
// of it depends on that. So a known host gets another EK in inventory, or none, only by two persons. An import stages the
// row, with the ticket of the repair, and a second person confirms it. The same holds for an EK that was replaced before,
// whichever host is to have it. All else of inventory is one person's word. So is the EK of a host that was never accepted,
// since an operator who registers hosts could register that one.

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

const repairLife = 7 * 24 * time.Hour

// Repairs holds what waits for a second person, by host.
func Repairs() store.Collection[Repair] { return store.NewCollection[Repair]("inventory/repairs", 1) }

var ticketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckTicket refuses what is no name of a ticket: it is a key, and is shown in commands.
func CheckTicket(ticket string) error {
	if ticketForm.MatchString(ticket) {
		return nil
	}
	return refusal.New(refusal.Invalid, "ticket_invalid", "want letters, digits, '.', '_' and '-', at most 64", "ticket %.80q", ticket)
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
	_, err := hostrecord.Verdicts().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
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
	return &refusal.Error{
		Code: "repair_open", Status: refusal.Conflict, Problems: problems,
		Detail: "changes of these hosts wait for a second person; nothing was imported",
		Hint:   "portcullis inventory repair list has them; cancel one to stage another",
	}
}

// same reports whether two rows say the same.
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
		return &refusal.Error{
			Code: "repair_needed", Status: refusal.Conflict, Problems: problems, Hint: hint,
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

// setAside returns the plan without rows that are staged. Each of these must be such that
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
	all := rest.Contents()
	for i := range rows {
		r := &rows[i].repair
		if _, err := inventory.Replace(all, &r.After, "host "+r.After.ID+", which is staged by itself"); err != nil {
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
			s.log(ctx, tx, &audit.Change{
				Actor: r.By, Action: "inventory.repair.stage", Object: "host/" + r.After.ID, Code: r.Ticket, Before: r.Before, After: r.After,
				Detail: refusal.ClipTo(strings.Join(r.fields(), "; ")+": "+r.Reason, maxDetail),
			}),
		); err != nil {
			return err
		}
	}
	return nil
}
