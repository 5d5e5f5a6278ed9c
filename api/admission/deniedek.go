package admission

import (
	"context"
	"time"

	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// DeniedEK is an EK that was a known host's and was replaced.
type DeniedEK struct {
	Time   time.Time `json:"time"`
	Host   string    `json:"host"` // that had it
	Ticket string    `json:"ticket"`
	By     string    `json:"by"` // who confirmed it
}

// DeniedEKs holds the EKs that were replaced, by their digests.
func DeniedEKs() store.Collection[DeniedEK] {
	return store.NewCollection[DeniedEK]("inventory/denied", 1)
}

// deniedSet returns the EKs that were replaced.
func deniedSet(ctx context.Context, tx *store.Tx) (map[string]bool, error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := DeniedEKs().List(ctx, snap, "")
	set := make(map[string]bool, len(list))
	for _, r := range list {
		set[r.Key] = true
	}
	return set, err
}

// DeniedEKs lists the EKs that were replaced, the newest first.
func (s *Service) DeniedEKs(ctx context.Context, q v1.PageQuery) (*v1.List[v1.DeniedEK], error) {
	list, _, err := DeniedEKs().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	all := make([]v1.DeniedEK, 0, len(list))
	for _, r := range list {
		all = append(all, v1.DeniedEK{EK: r.Key, Time: r.Value.Time, Host: r.Value.Host, Ticket: r.Value.Ticket, By: r.Value.By})
	}
	return page.Newest("denied", q, all, func(d *v1.DeniedEK) (time.Time, string) { return d.Time, d.EK })
}
