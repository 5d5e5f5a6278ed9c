package locks

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/locks/lockkey"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// AwaitsOrders refuses a ticket that is unknown or used, as Orders would.
func (s *Service) AwaitsOrders(ctx context.Context, ticket string) error {
	return attestation.AwaitsLockTicket(ctx, s.o.Store, ticket)
}

// Orders returns the orders to the agent of a host about its adapters. ticket is what evidence of the host's boot earned
// (attestation.Service.SubmitEvidence); it is used up, also where orders are refused. Each adapter must be the host's by
// inventory, and in that evidence, as what it is there. An adapter that is locked and shall draw a challenge first is only
// ordered to be opened.
//
// The epoch of each key is durable before the key is in the answer.
func (s *Service) Orders(ctx context.Context, ticket string, in v1.LockRequest) (*v1.LockOrders, error) {
	out := &v1.LockOrders{Profile: s.o.Site, Report: rand.Text()}
	var lease store.Lease // only cleans up
	host := ""
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		out.Orders, host = nil, ""
		of, err := attestation.UseLockTicket(ctx, tx, ticket, s.now())
		if err != nil {
			return err
		}
		host = of.Host.ID
		if err := s.check(of, in.Adapters); err != nil {
			return err
		}
		if lease == 0 {
			if lease, err = s.o.Store.NewLease(ctx, reportLife+time.Minute); err != nil {
				return err
			}
		}
		await := reportRecord{Host: host, Expires: s.now().Add(reportLife), Adapters: map[ib.GUID]awaited{}}
		for i := range in.Adapters {
			if await.Adapters[in.Adapters[i].NodeGUID], err = s.await(ctx, tx, in.Adapters[i].NodeGUID); err != nil {
				return err
			}
			order, err := s.order(ctx, tx, of, &in.Adapters[i])
			if err != nil {
				return err
			}
			out.Orders = append(out.Orders, *order)
		}
		return reports().PutLeased(tx, hash(out.Report), await, lease)
	})
	if err != nil {
		if no, ok := errors.AsType[*refusal.Error](err); ok && host != "" {
			s.note(ctx, ticket, host, no)
		}
		return nil, explain(err)
	}
	return out, nil
}

// maxDetail bounds what is kept of why an order was refused, which may repeat what the
// agent said.
const maxDetail = 512

// note records for operators, in the host's status and in the audit log, why an order was refused. The host does not learn
// the reason. note uses the ticket up, so that there is one entry for each evidence. If it cannot be written, the answer
// stays the same.
func (s *Service) note(ctx context.Context, ticket, host string, no *refusal.Error) {
	detail := strings.ToValidUTF8(no.Detail[:min(len(no.Detail), maxDetail)], "")
	_, _ = s.o.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := attestation.UseLockTicket(ctx, tx, ticket, s.now()); err != nil {
			return err
		}
		rec, err := hostrecord.Records().Get(ctx, tx, host)
		if err != nil {
			return err
		}
		rec.Value.Deny(v1.Denial{Time: s.now(), Code: no.Code, Detail: detail})
		if err := hostrecord.Records().Put(tx, host, rec.Value); err != nil {
			return err
		}
		return audit.Append(ctx, tx, audit.Entry{
			Time: s.now(), Actor: "agent:" + host, Action: "lock.refuse", Object: "host/" + host, Code: no.Code, Detail: detail,
		})
	})
}

// check requires each adapter once, and all of them the host's and as attested.
func (s *Service) check(t *attestation.LockTicket, adapters []v1.LockAdapter) error {
	host := t.Host
	for i, a := range adapters {
		attested := attestedOf(t, a.NodeGUID)
		at := slices.IndexFunc(host.HCAs, func(h inventory.HCA) bool { return h.NodeGUID == a.NodeGUID })
		switch {
		case at < 0:
			return refuse(refusal.Refused, "lock_adapter", "correct the inventory, or find out whose adapter it is", "adapter %v is not of host %s by inventory", a.NodeGUID, host.ID)
		case slices.ContainsFunc(adapters[:i], func(b v1.LockAdapter) bool { return b.NodeGUID == a.NodeGUID }):
			return refuse(refusal.Invalid, "lock_adapter", "name each adapter once", "adapter %v is named twice", a.NodeGUID)
		case a.Ports != len(host.HCAs[at].Ports):
			return refuse(refusal.Refused, "lock_adapter", "correct the inventory, or find out whose adapter it is", "adapter %v has %d ports by inventory, not %d", a.NodeGUID, len(host.HCAs[at].Ports), a.Ports)
		case attested == nil: // inventory has changed since
			return refuse(refusal.Refused, "lock_adapter", "attest again", "adapter %v is not in the evidence that the ticket is of", a.NodeGUID)
		case a.PSID != attested.PSID:
			return refuse(refusal.Refused, "lock_adapter", "attest again; if it stays, find out whose adapter it is", "adapter %v has PSID %q by the evidence, not %q", a.NodeGUID, attested.PSID, a.PSID)
		}
	}
	return nil
}

// attestedOf returns an adapter as evidence had it; nil: it had not.
func attestedOf(t *attestation.LockTicket, guid ib.GUID) *attestation.AttestedAdapter {
	for i := range t.Adapters {
		if t.Adapters[i].NodeGUID == guid {
			return &t.Adapters[i]
		}
	}
	return nil
}

// order decides on one adapter and writes it down.
func (s *Service) order(ctx context.Context, tx *store.Tx, t *attestation.LockTicket, a *v1.LockAdapter) (*v1.LockOrder, error) {
	rec, err := optional(Records().Get(ctx, tx, a.NodeGUID.String()))
	if err != nil {
		return nil, err
	}
	was := rec
	host := t.Host
	rec.GUID, rec.Host, rec.Ordered = a.NodeGUID, host.ID, s.now()
	order := &v1.LockOrder{NodeGUID: a.NodeGUID, Action: v1.ActionLock}
	if order.Held, err = s.keys(a.NodeGUID, rec.held()); err != nil {
		return nil, err
	}
	switch {
	case rec.Open != nil:
		order.Action = v1.ActionUnlock
		if err := s.tellGiven(ctx, tx, &rec); err != nil {
			return nil, err
		}
		rec.Proven, rec.Opened, rec.Held = 0, true, nil
	case s.Draws() && a.Locked && a.Challenge == nil:
		order.Action, rec.Drawing = v1.ActionOpen, true
	default:
		if err := s.tellSkipped(ctx, tx, &rec); err != nil {
			return nil, err
		}
		if err := s.lock(ctx, tx, &rec, order, a, attestedOf(t, a.NodeGUID)); err != nil {
			return nil, err
		}
	}
	detail := fmt.Sprintf("%s adapter %v of host %s, epoch %d", order.Action, a.NodeGUID, host.ID, rec.Epoch)
	if order.File != nil {
		detail += fmt.Sprintf(", settings file %d, SHA-256 %s, bound to %v", rec.Version, rec.File, rec.Bound)
	}
	return order, s.put(ctx, tx, &was, &rec, change{"agent:" + host.ID, "lock.order", detail})
}

// lock fills in key and file.
func (s *Service) lock(ctx context.Context, tx *store.Tx, rec *Record, order *v1.LockOrder, a *v1.LockAdapter, attested *attestation.AttestedAdapter) error {
	rec.Epoch, rec.Opened, rec.Drawing = rec.next(), false, false
	key, err := s.keys(a.NodeGUID, []lockkey.Epoch{rec.Epoch})
	if err != nil {
		return err
	}
	order.Lock = key[0]
	rec.File, rec.Bound = "", nil
	if s.o.Signer == nil {
		return nil
	}
	card, err := factoryCard(a)
	if err != nil {
		return err
	}
	of, err := readOffer(a, attested)
	if err != nil {
		return err
	}
	rec.Version++
	file := profile.Order{Card: card, Version: rec.Version, Time: rec.Ordered, Key: s.o.Key, Signer: s.o.Signer}
	if err := s.bind(ctx, tx, rec, a, of, &file); err != nil {
		return err
	}
	order.File, _, err = s.profile.File(file)
	if err != nil {
		return refuse(refusal.Refused, "lock_file", "see the profile of settings, and what the adapter is", "%v", err)
	}
	sum := sha256.Sum256(order.File)
	rec.File = hex.EncodeToString(sum[:])
	return nil
}

// keys derives keys of one adapter.
func (s *Service) keys(guid ib.GUID, epochs []lockkey.Epoch) ([]v1.LockKey, error) {
	var out []v1.LockKey
	for _, e := range epochs {
		k, err := s.o.Root.Derive(guid, e)
		if err != nil {
			return nil, err
		}
		out = append(out, v1.LockKey{Epoch: uint32(e), Key: v1.LockKeySecret{Key: k}})
	}
	return out, nil
}

// factoryCard returns an adapter as a file is made for it: what it knows, and its values of the factory.
func factoryCard(a *v1.LockAdapter) (profile.Card, error) {
	c := profile.Card{PSID: a.PSID, Ports: a.Ports, Functions: 1, Readings: []profile.Reading{}}
	for _, set := range a.Settings {
		r := profile.Reading{Address: nvconfig.Address(set.Address)}
		switch {
		case set.Supported == nil:
		case *set.Supported:
			r.Support = profile.Supported
		default:
			r.Support = profile.NotSupported
		}
		if len(set.Default) > 0 {
			item, rest, err := nvconfig.ParseItem(bytes.Clone(set.Default))
			if err != nil || len(rest) != 0 {
				return c, refuse(refusal.Invalid, "lock_setting", "", "adapter %v: the factory's value of %v is no item: %v", a.NodeGUID, r.Address, err)
			}
			r.Default = profile.Answer{State: profile.Read, Item: item}
		}
		c.Readings = append(c.Readings, r)
	}
	return c, nil
}

// change is what the audit log records.
type change struct{ actor, action, detail string }

// put writes a record and the change that made it.
func (s *Service) put(ctx context.Context, tx *store.Tx, was, rec *Record, c change) error {
	before, err := audit.Digest(was)
	if err != nil {
		return err
	}
	after, err := audit.Digest(rec)
	if err != nil {
		return err
	}
	if err := Records().Put(tx, rec.GUID.String(), *rec); err != nil {
		return err
	}
	return audit.Append(ctx, tx, audit.Entry{
		Time: s.now(), Actor: c.actor, Action: c.action, Object: "lock/" + rec.GUID.String(), Code: "ok",
		Detail: c.detail, Before: before, After: after,
	})
}
