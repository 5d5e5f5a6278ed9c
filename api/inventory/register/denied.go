package register

import (
	"context"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// deniedSet returns the EKs that were replaced.
func deniedSet(ctx context.Context, tx *store.Tx) (map[string]bool, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := inventory.DeniedEKs().List(ctx, snap, "")
	set := make(map[string]bool, len(list))
	for _, r := range list {
		set[r.Key] = true
	}
	return set, err
}

// DeniedEKs lists the EKs that were replaced, the newest first.
func (s *Service) DeniedEKs(ctx context.Context, q v1.PageQuery) (*v1.List[v1.DeniedEK], error) {
	list, _, err := inventory.DeniedEKs().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	all := make([]v1.DeniedEK, 0, len(list))
	for _, r := range list {
		all = append(all, v1.DeniedEK{EK: r.Key, Time: r.Value.Time, Host: r.Value.Host, Ticket: r.Value.Ticket, By: r.Value.By})
	}
	return page.Newest("denied", q, all, func(d *v1.DeniedEK) (time.Time, string) { return d.Time, d.EK })
}
