package leader

import (
	"context"
	"errors"
	"time"

	"portcullis/api/store"
)

// lease is the lease of a term.
type lease struct{ id store.Lease }

// campaign waits until this instance leads. Its error is that of ctx.
func (c *Candidate) campaign(ctx context.Context) (*Term, *lease, error) {
	told := ""
	for {
		t, l, err := c.take(ctx)
		if err == nil {
			return t, l, nil
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		led, taken := errors.AsType[*errLed](err)
		if taken {
			c.set(State{Leader: led.Instance, Epoch: led.Epoch})
		} else {
			c.set(State{Epoch: c.lastEpoch()})
		}
		if reason := err.Error(); reason != told {
			told = reason
			if taken {
				c.log.Info("this instance stands by", "leader", led.Instance, "epoch", led.Epoch)
			} else {
				c.log.Error("the store does not say who leads; asking again", "error", err)
			}
		}
		if !taken {
			c.pause(ctx, c.o.TTL/4)
			continue
		}
		c.awaitEnd(ctx)
	}
}

func (c *Candidate) lastEpoch() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Epoch
}

func (c *Candidate) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// awaitEnd returns when the record of the leader may be gone: when it is, or after the
// time of a lease, since a watch may be cut off without a sign.
func (c *Candidate) awaitEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL)
	defer cancel()
	seen, from, err := leaders().List(ctx, c.o.Store, c.o.Role)
	if err != nil || len(seen) == 0 {
		return
	}
	for ev := range leaders().Watch(ctx, c.o.Store, from) {
		if ev.Err != nil {
			c.pause(ctx, c.o.TTL/4)
			return
		}
		if ev.Key == c.o.Role && ev.Deleted {
			return
		}
	}
}

// take takes the lease, unless another instance has it.
func (c *Candidate) take(ctx context.Context) (*Term, *lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL)
	defer cancel()
	// Do not grant leases in vain.
	if now, err := leaders().Get(ctx, c.o.Store, c.o.Role); err == nil {
		return nil, nil, &errLed{now.Value}
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, nil, err
	}
	sent := c.o.Clock() // before the store can have begun to count
	id, err := c.o.Store.NewLease(ctx, c.o.TTL)
	if err != nil {
		return nil, nil, err
	}
	l := &lease{id}
	t := &Term{Instance: c.o.Instance, role: c.o.Role, clock: c.o.Clock, ttl: c.o.TTL, margin: c.o.Margin}
	revision, err := c.o.Store.Update(ctx, func(tx *store.Tx) error { return c.enter(ctx, tx, t, l) })
	if err != nil {
		c.giveBack(ctx, l)
		return nil, nil, err
	}
	t.revision.Store(revision)
	t.until.Store(lapsed)
	t.kept(sent)
	return t, l, nil
}

// enter writes the record of a new term, with the next epoch.
func (c *Candidate) enter(ctx context.Context, tx *store.Tx, t *Term, l *lease) error {
	switch now, err := leaders().Get(ctx, tx, c.o.Role); {
	case err == nil:
		return &errLed{now.Value}
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	last, err := epochs().Get(ctx, tx, c.o.Role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	t.Epoch = last.Value.Epoch + 1
	return errors.Join(
		epochs().Put(tx, c.o.Role, Epoch{t.Epoch}),
		leaders().PutLeased(tx, c.o.Role, Record{Instance: c.o.Instance, Epoch: t.Epoch, Since: time.Now().UTC()}, l.id))
}

// keep keeps the lease alive until ctx ends, and ends the term when the store says that
// the lease has ended, or when an operator asked for it.
func (c *Candidate) keep(ctx context.Context, t *Term, l *lease, step <-chan struct{}, end context.CancelCauseFunc) {
	tick := time.NewTicker(c.o.TTL / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-step:
			end(ErrSteppedDown)
			return
		case <-tick.C:
		}
		sent := c.o.Clock()
		switch err := c.keepAlive(ctx, l.id); {
		case err == nil:
			t.kept(sent)
		case errors.Is(err, store.ErrLeaseEnded):
			t.over()
			end(ErrDeposed)
			return
		}
	}
}

func (c *Candidate) keepAlive(ctx context.Context, id store.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.TTL/2)
	defer cancel()
	return c.o.Store.KeepAlive(ctx, id)
}
