package fabric

import (
	"context"
	"slices"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// untold are events that the store does not have yet, in order.
type untold []v1.Event

// pending returns up to n writes.
func (u *untold) pending(n int) []write {
	if len(*u) == 0 || n <= 0 {
		return nil
	}
	told := slices.Clone(*u)
	return []write{{
		put: func(ctx context.Context, tx *store.Tx) error {
			for _, e := range told {
				if err := events.Record(ctx, tx, e.Last, e); err != nil {
					return err
				}
			}
			return nil
		},
		done: func() { *u = (*u)[len(told):] },
	}}
}
