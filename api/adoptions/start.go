package adoptions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/adoption"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/approval"
)

// maxProblems bounds how many problems a refusal lists.
const maxProblems = 50

// Start stages an adoption. Nothing is kept before another person confirms it.
func (s *Service) Start(ctx context.Context, actor string, in *v1.NewAdoption) (*v1.Adoption, error) {
	why, err := reasonOf(in.Reason)
	if err != nil {
		return nil, err
	}
	ports := portsOf(in.Ports)
	var out v1.Adoption
	err = s.update(ctx, func(tx *store.Tx) error {
		now := s.now()
		rec := Record{State: v1.AdoptionStaged, Reason: why, By: actor, Staged: now, Deadline: in.Deadline.UTC().Round(0), Ports: ports}
		rec.Memberships = len(adoption.Memberships(ports))
		if problem := adoption.CheckTime(now, rec.Deadline); problem != "" {
			return refusal.New(refusal.Invalid, "deadline_invalid", "name another one", "%s", problem)
		}
		if err := s.check(ctx, tx, ports); err != nil {
			return err
		}
		if err := confirmed(rec.Memberships, in.Confirm); err != nil {
			return err
		}
		id, err := nextID(ctx, tx)
		if err != nil {
			return err
		}
		if rec.Digest, err = audit.Digest(rec); err != nil {
			return err
		}
		out = rec.view(id)
		return errors.Join(Records().Put(tx, id, rec), s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "adoption.stage", Object: "adoption/" + id, After: rec,
			Detail: fmt.Sprintf("%d memberships of %d ports until %s: %s", rec.Memberships, len(ports), rec.Deadline.Format("2006-01-02T15:04:05Z"), why),
		}))
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// check refuses ports that cannot be adopted. Reading the inventory's head through tx makes it conflict with imports.
func (s *Service) check(ctx context.Context, tx *store.Tx, ports []adoption.Port) error {
	if err := s.o.Store.Room(); err != nil {
		return refusal.New(refusal.Unavailable, v1.CodeUnavailable, "free space first", "nothing new is granted: %v", err)
	}
	if err := s.halted(); err != nil {
		return refusal.New(refusal.Unavailable, v1.CodeUnavailable, "portcullis clock show", "nothing new is granted: %v", err)
	}
	if _, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
		return err
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return err
	}
	site, err := s.site(ctx, snap)
	if err != nil {
		return err
	}
	problems := adoption.Check(ports, site)
	if len(problems) == 0 {
		return nil
	}
	return &refusal.Error{
		Code: "not_adoptable", Status: refusal.Conflict, Problems: problems[:min(len(problems), maxProblems)],
		Detail: fmt.Sprintf("problems in the list of ports: %d; nothing was adopted", len(problems)),
		Hint:   "correct the list: portcullis adopt plan",
	}
}

// site reads what is recorded of the site.
func (s *Service) site(ctx context.Context, snap store.Snapshot) (*adoption.Site, error) {
	out := &adoption.Site{Owned: map[ib.PKey]string{}, Cables: map[ib.GUID]adoption.Cable{}, Behind: map[ib.Place]ib.GUID{}}
	for _, k := range s.o.Reserved {
		out.Reserved = append(out.Reserved, k.Base())
	}
	keys, _, err := tenancy.PKeys().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	for i := range keys {
		k, err := ib.ParsePKey(keys[i].Key)
		if err != nil {
			return nil, err
		}
		switch r := &keys[i].Value; r.State {
		case tenancy.PKeyUsed:
			out.Owned[k.Base()] = "cluster " + r.Cluster + " has it"
		case tenancy.PKeyQuarantined:
			out.Owned[k.Base()] = "cluster " + r.Cluster + " had it, and it is not proven absent"
		case tenancy.PKeyAbsent, tenancy.PKeyAdopted:
		default:
			out.Owned[k.Base()] = "its state is not known"
		}
	}
	hosts, _, err := inventory.Hosts().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		for _, p := range hosts[i].Value.Ports() {
			out.Cables[p.GUID] = adoption.Cable{Host: hosts[i].Key, Place: p.Cable}
			if !p.Cable.IsZero() {
				out.Behind[p.Cable] = p.GUID
			}
		}
	}
	return out, ledger(ctx, snap, out)
}

// ledger reads which memberships there are.
func ledger(ctx context.Context, r store.Reader, out *adoption.Site) error {
	grants, _, err := records.Grants().List(ctx, r, "")
	if err != nil {
		return err
	}
	for i := range grants {
		k, err := records.ParseKey(grants[i].Key)
		if err != nil {
			return err
		}
		owner := "host " + grants[i].Value.Host
		if id := grants[i].Value.Adopted; id != "" {
			owner = id
		}
		out.Ledger = append(out.Ledger, adoption.Entry{GUID: k.GUID, PKey: k.PKey, Place: k.Place, Owner: owner})
	}
	return nil
}

// Confirm puts a staged adoption into force. The person who staged it cannot, unless the site says so.
func (s *Service) Confirm(ctx context.Context, actor, id string, in v1.AdoptionConfirm) (*v1.Adoption, error) {
	var out v1.Adoption
	err := s.update(ctx, func(tx *store.Tx) error {
		rec, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		was := rec
		if rec.State == v1.AdoptionFound {
			done, err := s.decide(ctx, tx, actor, id, &rec, &in)
			if err != nil {
				return err
			}
			if !done {
				out = rec.view(id)
				return s.propose(ctx, tx, actor, id, &was, &rec)
			}
		} else {
			if err := s.mayConfirm(actor, id, &rec, &in); err != nil {
				return err
			}
			if err := s.check(ctx, tx, rec.Ports); err != nil {
				return err
			}
			if err := s.grant(ctx, tx, id, rec.Ports); err != nil {
				return err
			}
		}
		rec.State, rec.ConfirmedBy, rec.Confirmed, rec.Ports = v1.AdoptionKept, actor, s.now(), nil
		out = rec.view(id)
		return errors.Join(
			Records().Put(tx, id, rec),
			s.log(ctx, tx, &audit.Change{
				Actor: actor, Action: "adoption.confirm", Object: "adoption/" + id, Before: was, After: rec,
				Detail: fmt.Sprintf("%d memberships are kept without proof until %s, staged by %s: %s", rec.Memberships, rec.Deadline.Format("2006-01-02T15:04:05Z"), rec.By, rec.Reason),
			}),
			events.Record(ctx, tx, s.now(), v1.Event{
				Type: events.AdoptionBegan, By: events.ByService, Cause: "confirmed", Expected: "hosts are members when they have proved what they are",
				Seen: fmt.Sprintf("%s confirmed that %d memberships of %s are kept without proof until %s", actor, rec.Memberships, id, rec.Deadline.Format("2006-01-02T15:04:05Z")),
			}),
		)
	})
	if err != nil {
		return nil, err
	}
	if out.State != v1.AdoptionKept {
		return &out, nil
	}
	s.o.Log.Warn("memberships are kept without proof of their hosts", "adoption", id, "memberships", out.Memberships, "deadline", out.Deadline, "staged_by", out.By, "actor", actor)
	return &out, nil
}

func (s *Service) mayConfirm(actor, id string, rec *Record, in *v1.AdoptionConfirm) error {
	show := "portcullis adopt show " + id
	switch {
	case !in.Deadline.IsZero():
		return refusal.New(refusal.Invalid, "deadline_known", show, "the deadline of %s was named when it was staged", id)
	case rec.State != v1.AdoptionStaged:
		return refusal.New(refusal.Conflict, "adoption_not_staged", show, "%s does not wait to be confirmed: it is %s", id, rec.State)
	case !s.o.Approval.Allows(approval.Person(rec.By), approval.Person(actor)):
		return refusal.New(refusal.Conflict, "two_persons", "another person must look at it: "+show, "%s was staged by %s, who may not confirm it", id, rec.By)
	case len(in.Digest) < leastDigest || !strings.HasPrefix(rec.Digest, strings.ToLower(in.Digest)):
		return refusal.New(refusal.Changed, "adoption_changed", "look at it again: "+show, "%s is not the one with digest %.80q", id, in.Digest)
	case !s.now().Before(rec.Deadline):
		return refusal.New(refusal.Conflict, "adoption_late", "end it, and stage another one", "the deadline of %s has passed", id)
	default:
		return confirmed(rec.Memberships, in.Confirm)
	}
}

// grant puts the memberships into the ledger. That none of them is there is a condition of the commit.
func (s *Service) grant(ctx context.Context, tx *store.Tx, id string, ports []adoption.Port) error {
	now, adopted := s.now(), map[ib.PKey]bool{}
	for i := range ports {
		p := &ports[i]
		for _, pkey := range p.PKeys {
			if k := pkey.Base(); !adopted[k] {
				adopted[k] = true
				if err := s.o.PKeys.AdoptPKey(ctx, tx, k); err != nil {
					return err
				}
			}
			k := records.Key{PKey: pkey.Base(), GUID: p.GUID, Place: p.Place}.String()
			records.Grants().Expect(tx, k, 0)
			if err := errors.Join(
				records.Grants().Put(tx, k, records.Grant{Adopted: id, Limited: !pkey.IsFull(), Since: now}),
				records.Adoptions().Put(tx, k, records.Adopted{Adoption: id, Device: p.Device}),
			); err != nil {
				return err
			}
		}
	}
	return nil
}
