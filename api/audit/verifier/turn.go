package verifier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/api/store"
)

// mark is what was verified last.
type mark struct {
	Time time.Time  `json:"time"`
	By   string     `json:"by"` // name of the instance
	Head chain.Head `json:"head"`
}

const markKey = "last"

func marks() store.Collection[mark] { return store.NewCollection[mark]("audit/verified", 1) }

// lastVerified returns the mark in the store, the zero mark if there is none.
func lastVerified(ctx context.Context, r store.Reader) (mark, error) {
	rec, err := marks().Get(ctx, r, markKey)
	if errors.Is(err, store.ErrNotFound) {
		return mark{}, nil
	}
	return rec.Value, err
}

// holder is which instance verifies now.
type holder struct {
	Instance string    `json:"instance"`
	Since    time.Time `json:"since"`
}

const holderKey = "now"

func holders() store.Collection[holder] { return store.NewCollection[holder]("audit/verifying", 1) }

const (
	// turnTime is for how long a turn is kept without a sign of its holder.
	turnTime = time.Minute
	// turnEvery is how often the holder shows one.
	turnEvery = 15 * time.Second
)

// errTaken: another instance has the turn.
var errTaken = errors.New("another instance verifies the audit log now")

// turn is the right to verify now. The nil turn needs none.
type turn struct {
	store *store.Store
	lease store.Lease
	kept  time.Time
}

// take takes the turn. The error is errTaken while another instance has it.
func (v *Verifier) take(ctx context.Context) (*turn, error) {
	if !v.o.Shared {
		return nil, nil
	}
	if now, err := holders().Get(ctx, v.o.Store, holderKey); err == nil {
		return nil, fmt.Errorf("%w: %s, since %s", errTaken, now.Value.Instance, now.Value.Since.Format(time.RFC3339))
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	lease, err := v.o.Store.NewLease(ctx, turnTime)
	if err != nil {
		return nil, err
	}
	t := &turn{store: v.o.Store, lease: lease, kept: time.Now()}
	_, err = v.o.Store.Update(ctx, func(tx *store.Tx) error {
		switch _, err := holders().Get(ctx, tx, holderKey); {
		case err == nil:
			return errTaken
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		return holders().PutLeased(tx, holderKey, holder{v.o.Service, v.o.Now().UTC().Round(0)}, lease)
	})
	if err != nil {
		t.end(ctx)
		return nil, err
	}
	return t, nil
}

// keep shows, from time to time, that the turn is still used. Its error ends the walk: another instance may have the turn.
func (t *turn) keep(ctx context.Context) error {
	if t == nil || time.Since(t.kept) < turnEvery {
		return nil
	}
	if err := t.store.KeepAlive(ctx, t.lease); err != nil {
		return fmt.Errorf("keep the turn to verify the audit log: %w", err)
	}
	t.kept = time.Now()
	return nil
}

// end lets another instance have the turn. If that fails the turn ends by itself.
func (t *turn) end(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnEvery)
	defer cancel()
	_ = t.store.Revoke(ctx, t.lease)
}
