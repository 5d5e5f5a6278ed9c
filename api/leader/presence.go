package leader

import (
	"context"
	"errors"
	"time"

	"portcullis/api/store"
)

// presentFor is for how many times the lease of a term a candidate counts as there after it
// reached the store last.
const presentFor = 3

// Presence says that a candidate runs.
type Presence struct {
	Since time.Time `json:"since"`
}

// candidates holds the instances that can lead, by role and instance. A lease of each ends its record.
func candidates() store.Collection[Presence] {
	return store.NewCollection[Presence]("leader/candidates", 1)
}

// Others returns the other instances that can lead, by name.
func (c *Candidate) Others(ctx context.Context) ([]string, error) {
	recs, _, err := candidates().List(ctx, c.o.Store, c.o.Role+"/")
	var out []string
	for _, r := range recs {
		if name := r.Key[len(c.o.Role)+1:]; name != c.o.Instance {
			out = append(out, name)
		}
	}
	return out, err
}

// present keeps the record that this instance can lead until ctx ends.
func (c *Candidate) present(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.appear(ctx); err != nil && ctx.Err() == nil {
			c.log.Debug("the store does not take that this instance can lead; trying again", "error", err)
			c.pause(ctx, c.o.TTL)
		}
	}
}

// appear writes the record and keeps its lease alive. It returns why that ended.
func (c *Candidate) appear(ctx context.Context) error {
	enter, cancel := context.WithTimeout(ctx, c.o.TTL)
	defer cancel()
	id, err := c.o.Store.NewLease(enter, presentFor*c.o.TTL)
	if err != nil {
		return err
	}
	defer func() {
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.TTL)
		defer cancel()
		_ = c.o.Store.Revoke(leave, id) // it ends by itself
	}()
	_, err = c.o.Store.Update(enter, func(tx *store.Tx) error {
		return candidates().PutLeased(tx, c.o.Role+"/"+c.o.Instance, Presence{Since: time.Now().UTC()}, id)
	})
	if err != nil {
		return err
	}
	tick := time.NewTicker(c.o.TTL)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := c.keepAlive(ctx, id); errors.Is(err, store.ErrLeaseEnded) {
			return err
		}
	}
}
