package remedy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Options are what a Keeper is made of. All are required.
type Options struct {
	Store  *store.Store
	Log    *slog.Logger
	Now    func() time.Time
	Policy Policy
	// Settled reports whether the Subnet Manager has nothing left to write: what it has not written yet is no drift.
	Settled func() bool
	// Correct has the Subnet Manager read ports again, and write what differs.
	Correct func(context.Context, []ib.Place) error
	Fencer  Fencer
}

// Fencer takes hosts off the fabric.
type Fencer interface {
	// MayFence reports in a transaction whether a host may be fenced because of drift, or a brake keeps it.
	MayFence(ctx context.Context, tx *store.Tx, host, cause string, together []string) (bool, error)
	// NotFenced notes that a host has no drift any more because of which a brake kept it from being fenced.
	NotFenced(ctx context.Context, tx *store.Tx, host string) error
	// Fence ends the assignment of a host and shuts its ports. A host that has none is no error.
	Fence(ctx context.Context, host, reason string) error
}

// Keeper does what a policy wants while this instance leads.
type Keeper struct{ o Options }

// New returns a Keeper.
func New(o Options) *Keeper { return &Keeper{o} }

// Look does what follows from the drift of the newest reading, of which bounds says when it was. It returns an error if the store
// does not take what happened; all that is left is done when it is called again.
func (k *Keeper) Look(ctx context.Context, drift []v1.Drift, bounds *v1.IsolationBounds) error {
	for k.o.Settled() {
		s, err := k.step(ctx, drift, bounds)
		if err != nil {
			return err
		}
		if len(s.correct) > 0 {
			if err := k.o.Correct(ctx, s.correct); err != nil && ctx.Err() == nil {
				k.o.Log.Warn("the Subnet Manager was not asked to correct drift", "ports", len(s.correct), "error", err)
			}
		}
		if err := k.fence(ctx, s.fence); err != nil {
			return err
		}
		if !s.more {
			return nil
		}
	}
	return nil
}

// step records what follows, and returns what is to be done.
func (k *Keeper) step(ctx context.Context, drift []v1.Drift, bounds *v1.IsolationBounds) (step, error) {
	in := &input{now: k.o.Now().UTC().Round(0), begun: bounds.Begun, read: bounds.Newest(), drift: drift, policy: k.o.Policy}
	was, err := store.Optional(records().Get(ctx, k.o.Store, key))
	if err != nil {
		return step{}, err
	}
	if _, s := was.next(in); s.isEmpty() {
		return s, nil
	}
	var s step
	_, err = k.o.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := store.Optional(records().Get(ctx, tx, key))
		if err != nil {
			return err
		}
		var next record
		next, s = was.next(in)
		return errors.Join(k.record(ctx, tx, in, &s, &next), records().Put(tx, key, next))
	})
	return s, err
}

// record records events of what began and what ended.
func (k *Keeper) record(ctx context.Context, tx *store.Tx, in *input, s *step, next *record) error {
	for i := range s.found {
		if err := events.Record(ctx, tx, in.now, found(&s.found[i].Drift)); err != nil {
			return err
		}
	}
	for i := range s.ended {
		x := &s.ended[i]
		if x.Host == "" {
			continue
		}
		if err := events.Record(ctx, tx, in.now, ended(x)); err != nil {
			return err
		}
		if !x.Fencing.IsZero() && !next.isFencing(x.Host) {
			s.free = append(s.free, x.Host)
		}
	}
	for _, host := range s.free {
		if err := k.o.Fencer.NotFenced(ctx, tx, host); err != nil {
			return err
		}
	}
	return nil
}

// isFencing reports whether a row wants a host fenced.
func (r *record) isFencing(host string) bool {
	for i := range r.Rows {
		if r.Rows[i].Host == host && !r.Rows[i].Fencing.IsZero() {
			return true
		}
	}
	return false
}

// fence fences the hosts of rows, unless a brake keeps them.
func (k *Keeper) fence(ctx context.Context, rows []row) error {
	hosts := make([]string, 0, len(rows))
	for i := range rows {
		hosts = append(hosts, rows[i].Host)
	}
	for i := range rows {
		x := &rows[i]
		may := false
		_, err := k.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
			may, err = k.o.Fencer.MayFence(ctx, tx, x.Host, text(&x.Drift), hosts)
			return err
		})
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		if err := k.o.Fencer.Fence(ctx, x.Host, text(&x.Drift)); err != nil {
			k.o.Log.Error("a host with drift was not fenced", "host", x.Host, "drift", text(&x.Drift), "error", err)
			continue
		}
		if err := k.fenced(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// fenced records that the host of a row was fenced.
func (k *Keeper) fenced(ctx context.Context, x *row) error {
	now := k.o.Now().UTC().Round(0)
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error {
		r, err := store.Optional(records().Get(ctx, tx, key))
		if err != nil {
			return err
		}
		for i := range r.Rows {
			if r.Rows[i].Host == x.Host && !r.Rows[i].Fencing.IsZero() {
				r.Rows[i].Fenced = now
			}
		}
		return errors.Join(events.Record(ctx, tx, now, v1.Event{
			Type: events.DriftFenced, By: events.ByService, Cause: x.Kind, Host: x.Host, Adapter: x.GUID,
			Expected: expected(&x.Drift), Seen: fmt.Sprintf("%s; it stayed for %v after it was to be corrected, and the host was fenced", text(&x.Drift), now.Sub(x.Reported).Round(time.Second)),
		}), records().Put(tx, key, r))
	})
	return err
}
