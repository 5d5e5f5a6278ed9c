package proving

import (
	"context"

	"portcullis/api/isolation"
	"portcullis/api/page"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// driftList names the list in cursors.
const driftList = "drift"

// Drift implements api.IsolationProver.
func (p *Prover) Drift(_ context.Context, q v1.DriftQuery) (*v1.DriftList, error) {
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	if now.found == nil {
		why := ""
		if now.failed != nil {
			why = now.failed.Error()
		}
		return nil, notExamined(why)
	}
	shown := make([]v1.Drift, 0, len(now.drift))
	for i := range now.drift {
		if d := &now.drift[i]; (q.Host == "" || d.Host == q.Host) && (q.Kind == "" || d.Kind == q.Kind) {
			shown = append(shown, *d)
		}
	}
	list, err := page.Cut(driftList, q.PageQuery, shown, isolation.DriftKey)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	b := &now.found.Bounds
	age, most := max(0, p.Now().Sub(b.Begun)), p.Pace.MaxAge()
	return &v1.DriftList{
		Begun: b.Begun, Again: b.Again, Age: age.Seconds(), MaxAge: most.Seconds(), Current: age <= most, Items: list.Items, Next: list.Next,
	}, nil
}
