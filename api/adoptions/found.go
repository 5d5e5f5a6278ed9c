package adoptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/adoption"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec/approval"
)

const (
	foundReason = "a takeover found them, and no record explains them"
	// maxFoundAtOnce bounds the memberships of one transaction, unless one port has more.
	maxFoundAtOnce = 40
)

// keepFound records what a takeover found as adoptions about which no person has decided. It reports whether there was anything.
func (s *Service) keepFound(ctx context.Context, snap store.Snapshot) (any bool, err error) {
	finds, _, err := records.Finds().List(ctx, snap, "")
	if err != nil || len(finds) == 0 {
		return false, err
	}
	site, err := s.site(ctx, snap)
	if err != nil {
		return false, err
	}
	all := make([]adoption.Port, len(finds))
	for i := range finds {
		f := &finds[i].Value
		all[i] = adoption.Port{GUID: f.GUID, Place: f.Place, PKeys: f.PKeys, Device: refusal.Clip(f.Device)}
	}
	kept, problems := adoption.Keepable(all, site)
	at := map[string]adoption.Port{}
	for _, p := range kept {
		at[(&records.Found{GUID: p.GUID, Place: p.Place}).Key()] = p
	}
	head, err := store.Optional(inventory.Heads().Get(ctx, snap, inventory.HeadKey))
	if err != nil {
		return false, err
	}
	told := &findings{ports: len(kept), memberships: len(adoption.Memberships(kept)), problems: problems}
	for len(finds) > 0 {
		n, size := 0, 0
		for n < len(finds) && (n == 0 || size+len(at[finds[n].Key].PKeys) <= maxFoundAtOnce && n < maxFoundAtOnce) {
			size += len(at[finds[n].Key].PKeys)
			n++
		}
		err := s.update(ctx, func(tx *store.Tx) error {
			// Reading the head through tx makes it conflict with imports.
			if now, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
				return err
			} else if now != head {
				return errImported
			}
			return s.record(ctx, tx, finds[:n], at, told)
		})
		if err != nil {
			return true, err
		}
		finds, told = finds[n:], nil
	}
	return true, nil
}

// errImported ends a look at what was found.
var errImported = errors.New("the inventory was imported meanwhile")

// findings are what one look at what was found says.
type findings struct {
	ports, memberships int
	problems           []string
}

func (f *findings) event() v1.Event {
	seen := fmt.Sprintf("%d memberships of %d ports are kept without proof until a person decides", f.memberships, f.ports)
	if n := len(f.problems); n > 0 {
		seen += fmt.Sprintf("; not kept, %d: %s", n, strings.Join(f.problems[:min(n, 3)], "; "))
	}
	return v1.Event{
		Type: events.AdoptionFound, By: events.ByService, Cause: "takeover", Expected: "hosts are members when they have proved what they are", Seen: seen,
	}
}

// record keeps some of what was found, and drops the rest of it. says is what an event reports with it; nil: there is none.
func (s *Service) record(ctx context.Context, tx *store.Tx, finds []store.Record[records.Found], at map[string]adoption.Port, says *findings) error {
	var ports []adoption.Port
	for i := range finds {
		if p, kept := at[finds[i].Key]; kept {
			ports = append(ports, p)
		}
		records.Finds().Expect(tx, finds[i].Key, finds[i].Modified)
		records.Finds().Delete(tx, finds[i].Key)
	}
	if says != nil && says.memberships+len(says.problems) > 0 {
		if err := events.Record(ctx, tx, s.now(), says.event()); err != nil {
			return err
		}
	}
	if len(ports) == 0 {
		return nil
	}
	n := len(adoption.Memberships(ports))
	id, rec, err := s.undecided(ctx, tx, n)
	if err != nil {
		return err
	}
	was := rec
	rec.Memberships += n
	return errors.Join(
		s.grant(ctx, tx, id, ports),
		Records().Put(tx, id, rec),
		s.log(ctx, tx, &audit.Change{
			Actor: service, Action: "adoption.found", Object: "adoption/" + id, Before: was, After: rec,
			Detail: fmt.Sprintf("%d memberships of %d ports are kept: %s", n, len(ports), foundReason),
		}),
	)
}

// undecided returns the adoption about which no person has decided and that has room, or a new one.
func (s *Service) undecided(ctx context.Context, tx *store.Tx, n int) (id string, rec Record, err error) {
	all, _, err := Records().List(ctx, tx, "")
	if err != nil {
		return "", rec, err
	}
	for i := range all {
		if r := &all[i].Value; r.State == v1.AdoptionFound && r.Deadline.IsZero() && r.Memberships+n <= adoption.MaxMemberships {
			return all[i].Key, *r, nil
		}
	}
	id, err = nextID(ctx, tx)
	return id, Record{State: v1.AdoptionFound, Reason: foundReason, By: service, Staged: s.now()}, err
}

// digestOf returns the digest of what a found adoption keeps, and how many memberships that are.
func digestOf(items []item) (digest string, n int, err error) {
	var kept []string
	for i := range items {
		if items[i].kept() {
			kept = append(kept, fmt.Sprintf("%v %t", items[i].key, items[i].grant.Limited))
		}
	}
	slices.Sort(kept)
	digest, err = audit.Digest(kept)
	return digest, len(kept), err
}

// decide takes the decision to keep what was found until a deadline: of the first person, who names it, or of the second one. It
// reports whether the adoption is confirmed.
func (s *Service) decide(ctx context.Context, tx *store.Tx, actor, id string, rec *Record, in *v1.AdoptionConfirm) (done bool, err error) {
	show := "portcullis adopt show " + id
	if t, err := store.Optional(records.Takeovers().Get(ctx, tx, records.Master)); err != nil {
		return false, err
	} else if t.State == records.TakeoverOpen {
		return false, refusal.New(refusal.Conflict, "takeover_open", "wait until the fabric is settled: portcullis sm status", "the takeover is not over yet, and more may be found")
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	items, err := stockOf(ctx, snap, id)
	if err != nil {
		return false, err
	}
	digest, n, err := digestOf(items)
	if err != nil {
		return false, err
	}
	first := !in.Deadline.IsZero()
	deadline := cmp.Or(in.Deadline.UTC().Round(0), rec.Deadline)
	switch {
	case len(in.Digest) < leastDigest || !strings.HasPrefix(digest, strings.ToLower(in.Digest)):
		return false, refusal.New(refusal.Changed, "adoption_changed", "look at it again: "+show, "%s is not the one with digest %.80q", id, in.Digest)
	case deadline.IsZero():
		return false, refusal.New(refusal.Invalid, "deadline_missing", "name a time: --within 336h", "no deadline was named by which the hosts must attest")
	case !first && !s.o.Approval.Allows(approval.Person(rec.By), approval.Person(actor)):
		return false, refusal.New(refusal.Conflict, "two_persons", "another person must look at it: "+show, "the deadline of %s was named by %s, who may not confirm it", id, rec.By)
	case !first && digest != rec.Digest:
		return false, refusal.New(refusal.Changed, "adoption_changed", "name the deadline again: portcullis adopt confirm "+id+" --within TIME", "%s keeps something else than when %s named its deadline", id, rec.By)
	}
	if err := confirmed(n, in.Confirm); err != nil {
		return false, err
	}
	if problem := adoption.CheckTime(s.now(), deadline); problem != "" {
		return false, refusal.New(refusal.Invalid, "deadline_invalid", "name another one", "%s", problem)
	}
	if first {
		rec.By, rec.Staged, rec.Deadline = actor, s.now(), deadline
	}
	rec.Digest, rec.Memberships = digest, n
	return !first || s.o.Approval.Allows(approval.Person(actor), approval.Person(actor)), nil
}

// propose records that a person named the deadline of what was found. Another one confirms it.
func (s *Service) propose(ctx context.Context, tx *store.Tx, actor, id string, was, rec *Record) error {
	return errors.Join(Records().Put(tx, id, *rec), s.log(ctx, tx, &audit.Change{
		Actor: actor, Action: "adoption.propose", Object: "adoption/" + id, Before: *was, After: *rec,
		Detail: fmt.Sprintf("%d memberships are to be kept without proof until %s; another person confirms it", rec.Memberships, rec.Deadline.Format("2006-01-02T15:04:05Z")),
	}))
}
