package proving

import (
	"context"
	"errors"
	"sync"

	"portcullis/api/refusal"
)

// origin is why the fabric is read.
type origin uint8

const (
	asked  origin = iota // an operator asked
	shared               // a request that may share the reading of another one
	itself               // the service examines all tenants by itself
)

var (
	// errYielded is why the service ended a reading of its own.
	errYielded = errors.New("an operator has the fabric read")
	// errBusy is why the service began none.
	errBusy = errors.New("the fabric is being read for a request")
)

// turn is one reading under way.
type turn struct {
	origin origin
	end    context.CancelCauseFunc
	over   chan struct{} // is closed at the end
	hurry  func()        // has the rest read as fast as for a request; may be called again
}

// begin waits until no other reading is under way, or refuses to. An operator ends a reading that the service makes by itself;
// a request that may share one waits for it, so that tenants cannot keep the service from making any, and has it made as fast as for a request.
// The caller must call over.
func (p *Prover) begin(ctx context.Context, why origin) (_ context.Context, hurry <-chan struct{}, over func(), err error) {
	for {
		p.turns.Lock()
		now := p.now
		if now == nil {
			ctx, end := context.WithCancelCause(ctx)
			faster := make(chan struct{})
			t := &turn{why, end, make(chan struct{}), sync.OnceFunc(func() { close(faster) })}
			p.now = t
			p.turns.Unlock()
			return ctx, faster, func() {
				p.turns.Lock()
				p.now = nil
				p.turns.Unlock()
				end(nil)
				close(t.over)
			}, nil
		}
		p.turns.Unlock()
		switch {
		case why == itself:
			return nil, nil, nil, errBusy
		case now.origin != itself:
			return nil, nil, nil, &refusal.Error{
				Code: "verify_running", Status: refusal.Conflict, Detail: "the fabric is being read for another request", Hint: "ask again when that is over",
			}
		case why == asked:
			now.end(errYielded)
		default:
			now.hurry()
		}
		select {
		case <-now.over:
		case <-ctx.Done():
			return nil, nil, nil, context.Cause(ctx)
		}
	}
}
