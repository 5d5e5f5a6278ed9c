// Package inputs brings to a running Subnet Manager what operators and the configuration want, and waits until it is in force.
package inputs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/keyops"
	"portcullis/api/fabric/query"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// Operator takes what operators say of the health of ports and switches to the
// subnet manager. It implements api.FabricOperator.
type Operator struct {
	*keyops.Ops // what they do with keys

	seen   *query.Observer
	log    *slog.Logger
	Inputs chan sm.Input // taken by the driver, one at a time
	// note puts into the audit log what is about to be done; nil: there is none.
	Record func(ctx context.Context, actor string, pl ib.Place, m *v1.HealthMark) error

	Told topologySaid

	Attached atomic.Bool // a driver takes inputs

	mu      sync.Mutex
	renewed chan struct{} // closed when a view comes; nil: no caller waits
}

// New returns what acts on the Subnet Manager that o observes. A driver takes its inputs.
func New(o *query.Observer, log *slog.Logger) *Operator {
	k := &Operator{seen: o, log: log, Inputs: make(chan sm.Input)}
	k.Ops = &keyops.Ops{Seen: o, Log: log, Now: time.Now, Apply: k.applied}
	return k
}

// MaxWait bounds how long the subnet manager may take to apply a mark.
const MaxWait = 5 * time.Second

// MarkHealth implements api.FabricOperator.
func (k *Operator) MarkHealth(ctx context.Context, actor string, m v1.HealthMark) (*v1.FabricHealth, error) {
	m.Reason = health.CleanReason(strings.TrimSpace(m.Reason))
	in := &sm.HealthMarked{Reason: m.Reason}
	switch m.Mark {
	case v1.MarkUnhealthy:
		in.Mark = health.MarkUnhealthy
	case v1.MarkHealthy:
		in.Mark = health.MarkHealthy
	case v1.MarkNone:
		in.Mark, in.Reason = health.MarkNone, ""
	}
	if in.Mark == health.MarkUnhealthy && in.Reason == "" {
		return nil, &refusal.Error{
			Code: "reason_missing", Status: refusal.Invalid,
			Detail: "no reason is given why it is unhealthy", Hint: "say it in a few words, for those who find the port closed",
		}
	}
	var err error
	if in.Place, err = k.seen.PlaceOf(m.Place); err != nil {
		return nil, err
	}
	if k.Record != nil {
		if err := k.Record(ctx, actor, in.Place, &m); err != nil {
			return nil, err
		}
	}
	k.log.Warn("an operator says how healthy a place is", "place", in.Place, "mark", m.Mark, "reason", m.Reason, "actor", cmp.Or(actor, "local socket"))
	return k.apply(ctx, in)
}

// apply has the subnet manager do it, and returns what is in force then.
func (k *Operator) apply(ctx context.Context, in *sm.HealthMarked) (*v1.FabricHealth, error) {
	var row v1.FabricHealth
	err := k.applied(ctx, in, func() (bool, error) {
		var listed bool
		var err error
		row, listed, err = k.seen.HealthAt(in.Place)
		return row.Mark == in.Mark.String() && (row.Reason == in.Reason || !listed), err
	})
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// applied has the subnet manager do something, and waits until a view shows it and
// it is saved.
func (k *Operator) applied(ctx context.Context, in sm.Input, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	// An input is taken only after the facts of the one before are saved, and one may be on its way.
	for _, in := range []sm.Input{in, &sm.Woken{}, &sm.Woken{}} {
		if err := k.Pass(ctx, in); err != nil {
			return err
		}
	}
	for {
		next := k.next()
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return notTaken("it does not show it in force")
		}
	}
}

// Suspect has the Subnet Manager read ports again that may not have what was written to them.
func (k *Operator) Suspect(ctx context.Context, places []ib.Place) error {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	return k.Pass(ctx, &sm.Suspected{Places: places})
}

// Pass has the Subnet Manager take an input, or returns an error when ctx ends before.
func (k *Operator) Pass(ctx context.Context, in sm.Input) error {
	select {
	case k.Inputs <- in:
		return nil
	case <-ctx.Done():
		return notTaken("it is not attached to the fabric, or busy")
	}
}

// Alive returns an error where the Subnet Manager is attached and takes nothing. The store may be away while the fabric is
// served.
func (k *Operator) Alive(ctx context.Context) error {
	if !k.Attached.Load() {
		return nil
	}
	if err := k.Pass(ctx, &sm.Woken{}); err != nil {
		return fmt.Errorf("the subnet manager's loop stands still: %w", err)
	}
	return nil
}

func notTaken(why string) error {
	return refusal.New(refusal.Unavailable, "mark_not_taken", "portcullis sm status shows how it is; then ask again",
		"the subnet manager did not take this within %v: %s", MaxWait, why)
}

// next returns a channel that is closed when the next view comes.
func (k *Operator) next() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewed == nil {
		k.renewed = make(chan struct{})
	}
	return k.renewed
}

// OnView notifies waiting callers that there is a new view.
func (k *Operator) OnView() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewed != nil {
		close(k.renewed)
		k.renewed = nil
	}
}
