package proving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"portcullis/api/isolation"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/isolation/remedy"
	"portcullis/api/isolation/standing"
	"portcullis/api/receipt"
	"portcullis/api/receipts"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/written"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/placekeys"
	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/reader"
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
	Topology func(ctx context.Context) (*topospec.Spec, error)
	// Configured returns the topology of the configuration, which counts before records; nil: there is none. As long as it stays, Topology
	// changes only with records.
	Configured func() *topospec.Spec
	// Sealed returns all facts that are stored, in which keys are sealed, and Root what opens them; nil: devices have no keys.
	Sealed func() ([]sm.Fact, error)
	Root   func() (vault.Root, error)
	// SealedIn is the collection of the store that Sealed returns; empty: it is elsewhere.
	SealedIn string
	// View returns what the Subnet Manager sees; nil: everything is read each time.
	View func() (*sm.View, error)
	// Remedy does what follows from drift while this instance leads; nil: nothing does.
	Remedy *remedy.Keeper
	// Ask has subnet administration answer questions as if they came from ports; nil: it answers no hosts. Prefix is the GID prefix of the
	// subnet; 0: the default one.
	Ask    Asked
	Prefix ib.Prefix
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

	told sync.Mutex
	kept kept
	// The newest reading, with and without v1.IsolationQuery.Membership; nil: nothing was read.
	membership, plain *reading

	recorded *outsiders.Found // what the store was given last, or another instance that led since has replaced
	standing *standing.Keeper // nil: this instance does not lead

	written *written.Log
	basis   *basis // nil: nothing was read
}

// New returns a Prover.
func New(o Options) *Prover {
	of := declaring()
	if o.SealedIn != "" {
		of = append(of, o.SealedIn)
	}
	return &Prover{Options: o, written: written.New(o.Store, of...)}
}

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
	out := &receipts.Examined{Detail: r.proven.Examine(q), Records: r.at, Epochs: slices.Clone(r.epochs)}
	if t := r.topology; t != nil {
		out.Topology = receipt.Topology{Revision: t.Revision().Number, Digest: t.Digest().String()}
	}
	p.note(r, out.Detail.Report, q, why)
	return out, nil
}

// reading is what was read at one time. Nothing of it changes.
type reading struct {
	declared
	q      v1.IsolationQuery // by whose assumptions was read
	epochs []receipt.Epoch
	found  *reader.Found
	// heard is what subnet administration answered at heardAt.
	heard   *isolation.Heard
	heardAt time.Time
	seen    *sm.View // before the first request; nil: not known
	when    isolation.Span
	proven  *isolation.Proven
	asked   time.Time // when it was asked for what was not read before
}

const (
	// shareFor is how long one reading serves requests that share it. It bounds what tenants can have the fabric read.
	shareFor = 5 * time.Minute
	// mostAgain is how often what was touched during a reading is read again before the reading counts, or is refused.
	mostAgain = 3
	// askEvery is after how long values that were not read are asked for again by a reading that builds on another one. Until then it
	// need not walk the fabric where only P_Key tables were touched.
	askEvery = time.Minute
)

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
	d, err := p.intent(ctx)
	if err != nil {
		return nil, err
	}
	if q.Tenant != "" && !slices.Contains(d.intent.Tenants(), q.Tenant) {
		return nil, &refusal.Error{
			Code: "tenant_unknown", Status: refusal.NotFound, Detail: fmt.Sprintf("no host belongs to a tenant %q", q.Tenant),
			Hint: "portcullis tenant list shows tenants, and host list their hosts",
		}
	}
	base := p.newest(q.Membership)
	if why != shared || base == nil || p.Now().Sub(base.when.Begun) >= shareFor {
		base = nil
	} else if d.intent.Equal(base.intent) {
		return base, nil
	}
	r, err := p.readWith(ctx, d, q, p.options(d.intent.Options(q), why, hurry), base)
	for range mostAgain {
		if err != nil {
			return nil, err
		}
		if d, err = p.current(ctx); err == nil && !p.isBehind(r, &d) {
			break
		}
		if err == nil {
			r, err = p.readWith(ctx, d, q, p.options(d.intent.Options(q), why, hurry), r)
		}
	}
	if err == nil {
		err = p.conclude(ctx, r, nil)
	}
	if err != nil {
		return nil, err
	}
	p.told.Lock()
	defer p.told.Unlock()
	*p.last(q.Membership) = r
	return r, nil
}

// isBehind reports whether something was declared or touched since a reading began that another one can still take in, or another
// reading began since: the one that counts is to be the newest.
func (p *Prover) isBehind(r *reading, d *declared) bool {
	now, newest := p.view(), p.newest(r.q.Membership)
	if r.seen == nil || now == nil {
		return false
	}
	return newest != nil && newest.when.Newest().After(r.when.Newest()) || !d.intent.Equal(r.intent) || !touched.Since(r.seen, now).IsEmpty()
}

// conclude proves what was read, if what is declared is still the same. It builds on the proof of another reading, if there is one that it can
// build on.
func (p *Prover) conclude(ctx context.Context, r, base *reading) error {
	after, err := p.current(ctx)
	if err != nil {
		return err
	}
	if !r.intent.Equal(after.intent) {
		return &refusal.Error{
			Code: "changed_meanwhile", Status: refusal.Conflict, Detail: "hosts or their tenants changed while the fabric was read, so what was read proves nothing",
			Hint: "ask again",
		}
	}
	ok := false
	if base != nil {
		r.proven, ok = base.proven.Again(r.intent, r.found, r.when)
	}
	if !ok {
		if r.proven, err = isolation.Prove(r.intent, r.found, r.when); err != nil {
			return err
		}
	}
	r.heard, r.heardAt = p.heardBy(ctx, r, base)
	r.proven.Hear(r.heard)
	return context.Cause(ctx)
}

// readWith reads the fabric, and proves nothing yet: everything, or what was touched since another reading began.
func (p *Prover) readWith(ctx context.Context, d declared, q v1.IsolationQuery, o readback.Options, base *reading) (*reading, error) {
	keys := d.keys
	if keys == nil {
		var err error
		if keys, err = placekeys.Open(p.Sealed, p.Root); err != nil {
			return nil, unreadable(err)
		}
		p.opened(&d, keys)
	}
	r := &reading{declared: d, q: q, epochs: keys.Epochs, seen: p.view(), when: isolation.Span{Begun: p.Now().UTC()}}
	if r.asked = r.when.Begun; base != nil && base.seen != nil && r.seen != nil {
		since := touched.Since(base.seen, r.seen)
		o.Reader.Earlier = &reader.Earlier{Found: base.found, Touched: since.Has}
		o.Reader.Window = 0
		r.when.Begun, r.when.Again = base.when.Begun, r.when.Begun
		if moved, known := d.intent.Moved(base.intent); known && (len(base.found.Unknown) == 0 || r.asked.Sub(base.asked) < askEvery) {
			o.Reader.Earlier.Only, o.Reader.Earlier.Moved, r.asked = since.Only(), moved, base.asked
		}
	}
	r.keys = nil // they are kept once
	port, err := p.Open(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	o.Reader.Key = func(at ib.Place) ib.MKey { return keys.At(at, port.GUID()) }
	if r.found, err = readback.Read(ctx, port, o); err != nil {
		return nil, unreadable(err)
	}
	r.when.Ended = p.Now().UTC()
	return r, nil
}

// view returns what the Subnet Manager sees now; nil: it does not say.
func (p *Prover) view() *sm.View {
	if p.View == nil {
		return nil
	}
	v, err := p.View()
	if err != nil {
		return nil
	}
	return v
}

// newest returns the newest reading under an assumption; nil: there is none.
func (p *Prover) newest(membership bool) *reading {
	p.told.Lock()
	defer p.told.Unlock()
	return *p.last(membership)
}

// last is the newest reading under an assumption. The caller holds the lock.
func (p *Prover) last(membership bool) **reading {
	if membership {
		return &p.membership
	}
	return &p.plain
}

// unreadable is the refusal where the fabric cannot be read.
func unreadable(err error) error {
	return &refusal.Error{
		Code: "fabric_unread", Status: refusal.Unavailable, Err: err, Detail: fmt.Sprintf("the fabric was not read: %v", err),
		Hint: "portcullis sm status shows how the Subnet Manager reaches the fabric; ask again when it does",
	}
}
