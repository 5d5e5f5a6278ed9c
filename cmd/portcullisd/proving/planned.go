package proving

import (
	"context"
	"fmt"
	"strings"
	"time"

	"portcullis/api/isolation"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
)

// Opens refuses a declared topology under which packets would pass that do not pass now, by the newest examination of all tenants. If there
// is none, or it is too old to count, it refuses nothing: the examination after the change is the first to show what passes.
func (p *Prover) Opens(ctx context.Context, next *topospec.Spec) error {
	p.told.Lock()
	r := p.kept.reading
	p.told.Unlock()
	if r == nil || p.Now().Sub(r.when.Begun) > p.Pace.MaxAge() {
		return nil
	}
	records, _, err := p.records(ctx)
	if err != nil {
		return err
	}
	records.Topology = next
	planned, err := isolation.NewIntent(records)
	if err != nil {
		return err
	}
	examples, total, err := r.proven.Opened(planned)
	if err != nil || total == 0 {
		return err
	}
	out := &refusal.Error{
		Code: v1.CodeOpensPath, Status: refusal.Conflict,
		Detail: fmt.Sprintf("under this topology packets would pass between %d pairs of parties, by the tables that were read at %s", total, r.when.Begun.UTC().Format(time.RFC3339)),
		Hint:   "declare what is behind the ports that are named, or have their P_Keys removed; portcullis verify reads the tables again",
	}
	for i := range examples {
		out.Problems = append(out.Problems, line(&examples[i]))
	}
	return out
}

// line returns a packet and its way in one line.
func line(e *v1.IsolationExample) string {
	var b strings.Builder
	what := fmt.Sprintf("a packet with P_Key %v", e.PKey)
	if e.Raw {
		what = "a raw packet"
	}
	fmt.Fprintf(&b, "%s passes from %s to %s", what, e.From, e.To)
	for _, h := range e.Hops {
		fmt.Fprintf(&b, "; %s", h.Device)
		if h.In != 0 {
			fmt.Fprintf(&b, " in by port %d", h.In)
		}
		if h.Out != 0 {
			fmt.Fprintf(&b, " out by port %d", h.Out)
		}
		if len(h.Passed) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(h.Passed, ", "))
		}
	}
	return b.String()
}
