package client

import (
	"context"
	"iter"
	"time"

	v1 "portcullis/api/v1"
)

// History says of which times it is known how the fabric was.
func (g Fabric) History(ctx context.Context) (*v1.FabricHistory, error) {
	return ask[v1.FabricHistory](ctx, g.c, getHistory, nil)
}

// Past returns the fabric as it was at a time.
func (g Fabric) Past(ctx context.Context, at time.Time) (*v1.FabricPast, error) {
	v := query{}
	v.moment("at", at)
	return find[v1.FabricPast](ctx, g.c, getPast, nil, v)
}

// Changes returns what changed between two times, page by page. The sequence ends after the first error.
func (g Fabric) Changes(ctx context.Context, q v1.PastChangeQuery) iter.Seq2[*v1.PastChanges, error] {
	return func(yield func(*v1.PastChanges, error) bool) {
		for {
			v := query{}
			v.moment("from", q.From)
			v.moment("until", q.Until)
			page, err := find[v1.PastChanges](ctx, g.c, listChanges, nil, v.page(q.PageQuery))
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// moment sets a time, unless it is zero.
func (q query) moment(name string, at time.Time) {
	if !at.IsZero() {
		q.set(name, at.UTC().Format(time.RFC3339Nano))
	}
}
