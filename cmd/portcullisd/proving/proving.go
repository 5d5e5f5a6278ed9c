package proving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/isolation/standing"
	"portcullis/api/receipt"
	"portcullis/api/receipts"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/placekeys"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/readback"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/vault"
)

// Options are what a Prover is made of.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// Open attaches to the port, beside the Subnet Manager.
	Open func(ctx context.Context) (transport.Port, error)
	// Topology returns the declared topology that is in force, nil without one.
	Topology func(ctx context.Context) *topospec.Spec
	// Sealed returns all facts that are stored, in which keys are sealed, and Root what opens them; nil: devices have no keys.
	Sealed func() ([]sm.Fact, error)
	Root   func() (vault.Root, error)
	// Timeout is how long a device may take to answer.
	Timeout time.Duration
	// Pace says how the service examines all tenants by itself.
	Pace Pace
}

// Prover implements api.IsolationProver and receipts.Examiner.
type Prover struct {
	Options
	turns sync.Mutex
	now   *turn // nil: nothing reads the fabric
	// Of both assumptions, for the one whose turn it is; nil: nothing was read.
	last, lastMembership *reading

	told sync.Mutex
	kept kept

	recorded *outsiders.Found // what the store was given last, or another instance that led since has replaced
	standing *standing.Keeper // nil: this instance does not lead
}

// New returns a Prover.
func New(o Options) *Prover { return &Prover{Options: o} }

// Prove implements api.IsolationProver.
func (p *Prover) Prove(ctx context.Context, actor string, q v1.IsolationQuery) (*v1.Isolation, error) {
	r, err := p.reading(ctx, q, asked)
	if err != nil {
		p.Log.Warn("the isolation of tenants was not examined", "actor", cmp.Or(actor, "local socket"), "error", err)
		return nil, err
	}
	out := r.proven.Report(q)
	p.Log.Info("the isolation of tenants was examined", "actor", cmp.Or(actor, "local socket"), "tenant", q.Tenant, "verdict", out.Verdict, "reason", out.Reason,
		"isolated", out.Pairs.Isolated, "leaks", out.Pairs.Leaks, "unknown", out.Pairs.Unknown, "requests", out.Bounds.Requests)
	p.note(r, out, q, asked)
	return out, nil
}

// Examine implements receipts.Examiner.
func (p *Prover) Examine(ctx context.Context, q v1.IsolationQuery, share bool) (*receipts.Examined, error) {
	why := asked
	if share {
		why = shared
	}
	r, err := p.reading(ctx, q, why)
	if err != nil {
		return nil, err
	}
	out := &receipts.Examined{Detail: r.proven.Examine(q), Records: r.begun, Epochs: slices.Clone(r.epochs)}
	if t := r.topology; t != nil {
		out.Topology = receipt.Topology{Revision: t.Revision().Number, Digest: t.Digest().String()}
	}
	p.note(r, out.Detail.Report, q, why)
	return out, nil
}

// reading is what was read at one time. Nothing of it changes.
type reading struct {
	intent   *isolation.Intent
	topology *topospec.Spec
	epochs   []receipt.Epoch
	proven   *isolation.Proven
	begun    time.Time
}

// shareFor is how long one reading serves requests that share it. It bounds what tenants can have the fabric read.
const shareFor = 5 * time.Minute

// reading reads the fabric, or returns the last reading to a request that shares one, if what is declared is still the same.
func (p *Prover) reading(ctx context.Context, q v1.IsolationQuery, why origin) (*reading, error) {
	ctx, hurry, over, err := p.begin(ctx, why)
	if err != nil {
		return nil, err
	}
	defer over()
	r, err := p.read(ctx, q, why, hurry)
	if err != nil && errors.Is(context.Cause(ctx), errYielded) {
		return nil, errYielded
	}
	return r, err
}

// read is reading, for the one whose turn it is.
func (p *Prover) read(ctx context.Context, q v1.IsolationQuery, why origin, hurry <-chan struct{}) (*reading, error) {
	in, topology, err := p.intent(ctx)
	if err != nil {
		return nil, err
	}
	if q.Tenant != "" && !slices.Contains(in.Tenants(), q.Tenant) {
		return nil, &refusal.Error{
			Code: "tenant_unknown", Status: refusal.NotFound, Detail: fmt.Sprintf("no host belongs to a tenant %q", q.Tenant),
			Hint: "portcullis tenant list shows tenants, and host list their hosts",
		}
	}
	last := &p.last
	if q.Membership {
		last = &p.lastMembership
	}
	if why == shared && *last != nil && p.Now().Sub((*last).begun) < shareFor && reflect.DeepEqual(in, (*last).intent) {
		return *last, nil
	}
	keys, err := placekeys.Open(p.Sealed, p.Root)
	if err != nil {
		return nil, unreadable(err)
	}
	port, err := p.Open(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	o := p.options(in.Options(q), why)
	o.Hurry = hurry
	o.Reader.Key = func(at ib.Place) ib.MKey { return keys.At(at, port.GUID()) }
	when := isolation.Span{Begun: p.Now().UTC()}
	found, err := readback.Read(ctx, port, o)
	if err != nil {
		return nil, unreadable(err)
	}
	when.Ended = p.Now().UTC()
	after, _, err := p.intent(ctx)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(in, after) {
		return nil, &refusal.Error{
			Code: "changed_meanwhile", Status: refusal.Conflict, Detail: "hosts or their tenants changed while the fabric was read, so what was read proves nothing",
			Hint: "ask again",
		}
	}
	r := &reading{intent: in, topology: topology, epochs: keys.Epochs, begun: when.Begun}
	if r.proven, err = isolation.Prove(in, found, when); err != nil {
		return nil, err
	}
	*last = r
	return r, nil
}

// unreadable is the refusal where the fabric cannot be read.
func unreadable(err error) error {
	return &refusal.Error{
		Code: "fabric_unread", Status: refusal.Unavailable, Err: err, Detail: fmt.Sprintf("the fabric was not read: %v", err),
		Hint: "portcullis sm status shows how the Subnet Manager reaches the fabric; ask again when it does",
	}
}

// intent returns what is declared now, and the topology in force.
func (p *Prover) intent(ctx context.Context) (*isolation.Intent, *topospec.Spec, error) {
	r, err := p.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	in, err := isolation.NewIntent(r)
	return in, r.Topology, err
}

// records returns what an Intent is made of, as it is now.
func (p *Prover) records(ctx context.Context) (r isolation.Records, err error) {
	snap, err := p.Store.Snapshot(ctx)
	if err != nil {
		return r, err
	}
	r.Topology = p.Topology(ctx)
	if r.Inventory, err = inventory.Load(ctx, snap); err != nil {
		return r, err
	}
	r.Grants, _, err = records.Grants().List(ctx, snap, "")
	return r, err
}
