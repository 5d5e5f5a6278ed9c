package tamper

import (
	"context"
	"time"

	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Conditions are the parts of readiness that say whether state and clock are believed.
type Conditions struct {
	Clock     Halter
	Anchors   Anchors
	TellAfter time.Duration // for how long a sink may lack the head of the audit log before it is named
	Store     *store.Store
}

// All returns these parts. A review of a restored state is one, and no failure.
func (c *Conditions) All(ctx context.Context) []v1.Condition {
	all := []v1.Condition{clockCondition(c.Clock)}
	mark, err := review.Current(ctx, c.Store)
	switch {
	case err != nil:
		all = append(all, v1.Condition{Name: "review", Detail: "not known: " + err.Error()})
	case mark != nil:
		all = append(all, v1.Condition{Name: "review", OK: true, Detail: reviewDetail(mark)})
	}
	return append(all, anchorsCondition(c.Anchors, c.TellAfter, time.Now()))
}

// reviewDetail returns why a state is in review.
func reviewDetail(m *review.Mark) string {
	since, rest := "in review since "+m.Since.Format(time.RFC3339)+": ", "; only what it and the fabric agree on is granted; portcullis restore review"
	switch {
	case m.RolledBack != nil:
		return since + "the state was rolled back: " + m.RolledBack.String() + rest
	case len(m.Recovered) > 0:
		return since + m.From() + rest
	default:
		return since + "only what backup and fabric agree on is granted; portcullis restore review"
	}
}
