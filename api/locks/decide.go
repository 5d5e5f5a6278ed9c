package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/hostrecord"
	"portcullis/api/locks/lockkey"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// List returns the locks of all adapters that were given an order, of one host if it is named, a page at a time, by GUID.
func (s *Service) List(ctx context.Context, q v1.LockQuery) (*v1.List[v1.Lock], error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, explain(err)
	}
	out, err := page.Walk(ctx, "locks", q.PageQuery, page.Of(snap, Records(), ""), page.Each(func(r *store.Record[Record]) (*v1.Lock, error) {
		if q.Host != "" && r.Value.Host != q.Host {
			return nil, nil
		}
		return s.view(&r.Value)
	}))
	return out, explain(err)
}

// Show returns one.
func (s *Service) Show(ctx context.Context, guid ib.GUID) (*v1.Lock, error) {
	rec, err := recordOf(ctx, s.o.Store, guid)
	if err != nil {
		return nil, explain(err)
	}
	return s.view(rec)
}

// Release decides that an adapter leaves (RMA): at its next provisioning it is opened permanently. A host that is in a
// partition keeps its locks.
func (s *Service) Release(ctx context.Context, actor string, guid ib.GUID, in v1.LockRelease) (*v1.Lock, error) {
	return s.decide(ctx, actor, guid, "lock.release", func(tx *store.Tx, rec *Record) (string, error) {
		reason := strings.TrimSpace(in.Reason)
		if reason == "" {
			return "", refuse(refusal.Invalid, "reason_missing", "say why the adapter leaves", "no reason is given")
		}
		if rec.Open != nil {
			return "", refuse(refusal.Conflict, "lock_opening", "", "%s decided so at %v: %s", rec.Open.By, rec.Open.Time, rec.Open.Reason)
		}
		host, err := hostrecord.Records().Get(ctx, tx, rec.Host)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		if host.Value.Granted {
			return "", refuse(refusal.Conflict, "host_in_use", "portcullis host release "+rec.Host, "host %s, which has the adapter, is in a partition", rec.Host)
		}
		rec.Open = &Decision{By: actor, Time: s.now(), Reason: reason}
		return reason, nil
	})
}

// Retain takes such a decision back.
func (s *Service) Retain(ctx context.Context, actor string, guid ib.GUID) (*v1.Lock, error) {
	return s.decide(ctx, actor, guid, "lock.retain", func(_ *store.Tx, rec *Record) (string, error) {
		if rec.Open == nil {
			return "", refuse(refusal.Conflict, "lock_not_opening", "", "no operator decided that adapter %v leaves", rec.GUID)
		}
		detail := fmt.Sprintf("decision of %s taken back: %s", rec.Open.By, rec.Open.Reason)
		rec.Open = nil
		return detail, nil
	})
}

func (s *Service) decide(ctx context.Context, actor string, guid ib.GUID, action string, do func(*store.Tx, *Record) (string, error)) (*v1.Lock, error) {
	var rec Record
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		found, err := recordOf(ctx, tx, guid)
		if err != nil {
			return err
		}
		was := *found
		rec = was
		detail, err := do(tx, &rec)
		if err != nil {
			return err
		}
		return s.put(ctx, tx, &was, &rec, change{actor, action, detail})
	})
	if err != nil {
		return nil, explain(err)
	}
	return s.view(&rec)
}

func recordOf(ctx context.Context, r store.Reader, guid ib.GUID) (*Record, error) {
	rec, err := Records().Get(ctx, r, guid.String())
	if errors.Is(err, store.ErrNotFound) {
		return nil, refuse(refusal.NotFound, "lock_unknown", "portcullis lock list", "no order was ever given for adapter %v", guid)
	}
	if err != nil {
		return nil, err
	}
	return &rec.Value, nil
}

func (s *Service) view(rec *Record) (*v1.Lock, error) {
	v := &v1.Lock{
		NodeGUID: rec.GUID, Host: rec.Host, State: "ordered", Epoch: uint32(rec.Epoch), Proven: uint32(rec.Proven),
		Ordered: rec.Ordered, Shown: rec.Shown, File: rec.File, Version: rec.Version,
	}
	if b := rec.Bound; b != nil {
		v.Bound = &v1.LockBinding{To: b.To, PSID: b.PSID, Device: b.Device, Challenge: b.Challenge, Less: b.Less}
	}
	if rec.Epoch > 0 {
		k, err := s.o.Root.Derive(rec.GUID, rec.Epoch)
		if err != nil {
			return nil, err
		}
		v.Check = lockkey.Check(k)
	}
	switch {
	case rec.Open != nil:
		v.State, v.OpenedBy, v.Reason = "opening", rec.Open.By, rec.Open.Reason
	case rec.Epoch > 0 && rec.Proven == rec.Epoch:
		v.State = "proven"
	}
	return v, nil
}
