package main

import (
	"context"
	"time"

	"portcullis/api/review"
	v1 "portcullis/api/v1"
)

// conditions returns every part, and whether a restored state is in review, which is no failure.
func (s *service) conditions(ctx context.Context) []v1.Condition {
	all := append(warned(s.status.Conditions(ctx), s.storeHealth.Now().Warning), s.clockCondition())
	mark, err := review.Current(ctx, s.store)
	switch {
	case err != nil:
		all = append(all, v1.Condition{Name: "review", Detail: "not known: " + err.Error()})
	case mark != nil:
		all = append(all, v1.Condition{
			Name: "review", OK: true,
			Detail: reviewDetail(mark),
		})
	}
	return append(all, s.anchorsCondition(time.Now())...)
}
