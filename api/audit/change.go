package audit

import (
	"context"
	"time"

	"portcullis/api/store"
)

// Change describes a change, or a refused one, for an entry. Before and After are hashed, not kept.
type Change struct {
	Actor, Action, Object, Code, Detail string
	Before, After                       any
}

// Log appends a change that was made at now to the chain, in the transaction that makes it.
func Log(ctx context.Context, tx *store.Tx, now time.Time, c *Change) error {
	before, err := Digest(c.Before)
	if err != nil {
		return err
	}
	after, err := Digest(c.After)
	if err != nil {
		return err
	}
	return Append(ctx, tx, Entry{
		Time: now, Actor: c.Actor, Action: c.Action, Object: c.Object, Code: c.Code, Detail: c.Detail,
		Before: before, After: after,
	})
}
