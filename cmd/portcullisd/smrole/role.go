// Package smrole is the role sm of the service: it attaches to the fabric and runs the Subnet Manager, again and again. Where
// several instances share the fabric it does so while this one leads.
package smrole

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/mirror"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

const (
	// retryMin and retryMax bound the doubling pause between attempts to
	// reach the fabric.
	retryMin = time.Second
	retryMax = 30 * time.Second

	// steady is how long an attachment must have held for the pause to start again from its first value.
	steady = time.Minute

	// aheadWait is how long a new leader waits for its copies of the store. They are there at once unless the watch is interrupted.
	aheadWait = 500 * time.Millisecond
)

// Declared is the declared topology.
type Declared interface {
	// With returns a configuration with the topology that is wanted in force.
	With(ctx context.Context, c sm.Config) sm.Config
	SetRules(r topology.Rules)
	OnEvent(e sm.Event)
	OnView()
}

// Options are what a Role is made of. All but Candidate and Name are required.
type Options struct {
	Config *config.Config // as the service was started with
	InUse  *config.InUse
	Store  *store.Store
	Log    *slog.Logger
	Now    func() time.Time // the time that decisions rest on
	Open   Open             // attaches to the port

	State    *readiness.Fabric
	Keys     func(detail string) // called with why this machine does not open the keys of devices
	Link     *Link
	Observer *query.Observer
	Marks    *inputs.Operator
	Owed     *owed.Keeper
	Declared Declared

	Administration *administration.Keeper
	Asker          *driver.Asker // has it answer questions that come by no port; nil: there are none

	// Beside, where it is set, is called in a goroutine of its own when this instance begins to manage the fabric, with a
	// context that ends when it does not any more.
	Beside func(ctx context.Context)

	Candidate leadership.Candidate // nil: this instance is the only one
	Name      string               // of this instance, where it is not the only one

	// Hurry, where it is set, is called with true when this instance begins to manage the fabric, and with false once it has
	// settled it, after half a minute at most.
	Hurry func(bool)
}

// Open attaches to the port that the configuration names, for what core does there.
type Open func(ctx context.Context, core *sm.Config) (transport.Port, error)

// Role runs the Subnet Manager.
type Role struct {
	Options
	yielder leadership.Yielder
	former  former
	ahead   *mirror.Mirror // of what an attachment reads first, while another instance leads
	took    *mirror.Copies // of that, for the first attachment of a term
	ends    func() bool    // reports whether the service ends
	hurry   hurry
	beside  sync.WaitGroup
}

// New returns a role that has attached to nothing.
func New(o Options) *Role {
	return &Role{Options: o, ahead: mirror.New(o.Store, o.Log, fabric.Ahead()...), yielder: leadership.Yielder{Candidate: o.Candidate, Lease: o.Config.Lease, Log: o.Log}, hurry: hurry{tell: o.Hurry}}
}

// Run runs the Subnet Manager until ctx ends, where there are several instances while this one leads.
func (r *Role) Run(ctx context.Context) error {
	defer r.beside.Wait() // at the end of the service: the next leader does not wait for it
	if r.Candidate == nil {
		return r.manage(ctx, nil)
	}
	r.State.Leaderless()
	r.ends = func() bool { return ctx.Err() != nil }
	defer func() { r.former.finish(formerAtEnd) }()
	standby, end := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { r.ahead.Run(standby) })
	defer reading.Wait()
	defer end()
	return r.Candidate.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		r.former.stop()
		r.Link.now.Store(nil) // what it remembers is of an earlier term
		r.took = r.readAhead(ctx, t)
		defer r.ahead.Resume()
		return r.manage(ctx, t)
	})
}

// readAhead returns copies of what an attachment reads first, as of the begin of a term or later; nil where there are none.
func (r *Role) readAhead(ctx context.Context, t *leader.Term) *mirror.Copies {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, aheadWait)
	defer cancel()
	copies := r.ahead.Take(ctx, t.Revision())
	r.Log.Info("this instance manages the fabric from now on", "epoch", t.Epoch, "read_ahead", copies != nil)
	return copies
}

// manage attaches to the fabric and runs the subnet manager, again and again until ctx ends, in a
// term if several instances share the fabric. Each obstacle is reported once for each reason, in the log, in /readyz and to
// "portcullis sm status".
func (r *Role) manage(ctx context.Context, t *leader.Term) error {
	r.hurry.begin()
	defer r.hurry.end()
	if r.Beside != nil {
		within, end := context.WithCancel(ctx)
		defer end()
		r.beside.Go(func() { r.Beside(within) })
	}
	r.State.Set(readiness.Unattached)
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := r.attach(ctx, t)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > steady {
			pause = retryMin
		}
		r.unreachable(ctx, t, err)
		r.yielder.Yield(ctx, pause, err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// unreachable reports why the fabric is out of reach, when the reason is new.
func (r *Role) unreachable(ctx context.Context, t *leader.Term, err error) {
	if t != nil && t.Left() == 0 {
		return // another instance says how the fabric is
	}
	reason := err.Error()
	if !r.State.Set(reason) {
		return
	}
	what := "the fabric is out of reach; trying again"
	if _, closed := errors.AsType[*devicekeys.ClosedError](err); closed {
		what = "the fabric is not managed, for the keys of its devices do not open; trying again"
	}
	r.Log.Error(what, "port", r.Config.Fabric.Port, "error", reason, "hint", cmp.Or(fabricport.Hint(err, "fabric.port"), command.HintOf(err), "the service attaches by itself once the cause is gone"))
	r.lostAdapter(ctx, reason)
	_, err = r.Store.Update(ctx, func(tx *store.Tx) error {
		if t != nil {
			if err := t.Guard(ctx, tx); err != nil {
				return err
			}
		}
		return records.SMs().Put(tx, records.Master, v1.SM{
			State: "unreachable", Priority: r.Config.Fabric.Priority,
			Problems: []string{reason}, Updated: time.Now().UTC(),
		})
	})
	if err != nil {
		r.Log.Error("the state of the subnet manager was not recorded", "error", err)
	}
}

// lostAdapter records that the adapter cannot be used.
func (r *Role) lostAdapter(ctx context.Context, reason string) {
	reason = cmp.Or(reason, "the adapter is gone")
	if err := fabric.LoseAdapter(ctx, r.Store, reason, time.Now().UTC().Round(0)); err != nil {
		r.Log.Error("that the subnet manager is blind was not recorded", "error", err)
	}
}
