package smrole

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/fabric"
	"portcullis/api/leader"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/cmd/portcullisd/fabriclog"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// intentWait is how long P_Key tables are left as they were found while
// the store has not said what is wanted, so that a restart takes nothing
// from a tenant. Past it the fabric closes.
const intentWait = 30 * time.Second

const forever = 10 * 365 * 24 * time.Hour

// attach runs the subnet manager on the configured port until ctx ends or the
// port is lost. The error says why it ended.
func (r *Role) attach(ctx context.Context, t *leader.Term) error {
	ahead := r.took
	r.took = nil
	link := fabric.New(fabric.Options{
		Guard: guardOf(t), Ahead: ahead,
		Store: r.Store, Log: r.Log, Now: r.Now, Owed: r.Owed, Before: r.Link.Load(), OnAliases: r.Administration.OnAliases,
		OnPartitions: func(p map[ib.PKey]fabric.Partition) { r.Administration.Partition(administration.Clusters(p)) },
		Sight:        fabric.SightLimits(r.Config.Fabric.Sight), OnSight: r.sight,
		RemovesForeign: r.Config.Fabric.Takeover == config.Remove, Reserved: r.Config.Admission.PKeyReserved,
	})
	r.Link.now.Store(link)
	defer r.Observer.Gone()
	watch := r.termWatch(t)
	o, err := r.driverOptions(ctx, link, watch)
	if err != nil {
		return err
	}
	if o.Port, err = r.dial(ctx); err != nil {
		return err
	}
	r.State.Set("attached, and finding out what is there")
	r.Log.Info("attached to the fabric", "port", r.Config.Fabric.Port, "port_guid", o.Port.GUID())
	group, ctx := errgroup.WithContext(ctx)
	if watch != nil {
		group.Go(func() error { watch.blind.Watch(ctx, r.yielder.Yield); return nil })
	}
	group.Go(func() error { return link.Run(ctx) })
	group.Go(func() error {
		r.Marks.Attached.Store(true)
		defer r.Marks.Attached.Store(false)
		err := r.drive(ctx, o, link.Intents())
		if err == nil && ctx.Err() == nil {
			err = errors.New("the subnet manager stopped by itself")
		}
		return err
	})
	return group.Wait()
}

func (r *Role) dial(ctx context.Context) (transport.Port, error) {
	ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
	defer cancel()
	core := r.InUse.Core()
	return r.Open(ctx, &core)
}

// driverOptions returns all that the subnet manager needs but its port. It fails before
// anything is attached, such as where the keys of devices do not open. watch is nil without a term.
func (r *Role) driverOptions(ctx context.Context, link *fabric.Link, watch *termWatch) (driver.Options, error) {
	core := r.Declared.With(ctx, r.InUse.Core())
	core.IntentWait, core.AnswersEarly = intentWait, true
	switch open, err := link.TakeOver(ctx); {
	case err != nil:
		return driver.Options{}, err
	case open:
		core.IntentWait = forever // what is found is of others: without the store nothing is removed
	}
	var fence driver.Fence
	if watch != nil {
		var err error
		if core.Siblings, err = leadership.Siblings(ctx, r.Store); err != nil {
			return driver.Options{}, err
		}
		core.MKey.Rotation.Succeeds = watch.term.Epoch > 1
		fence = watch.term
	}
	notes := &fabriclog.Routes{Engines: core.Engines, Log: r.Log}
	kept, ring, err := devicekeys.Open(&r.Config.Fabric.Keys, link, r.Config.Path, &core)
	if err != nil {
		return driver.Options{}, err
	}
	answers, err := r.Administration.Agent(&r.Config.Fabric, &core, ring.SAKeys(), r.Config.Path)
	if err != nil {
		return driver.Options{}, err
	}
	return driver.Options{
		Fence: fence,
		SA:    answers, SASettings: r.Administration.Settings, Asker: r.Asker,
		Store: kept, Log: fabriclog.Naming(r.Log, r.Observer), Timeout: r.Config.Fabric.Timeout, Core: core,
		Inputs: r.Marks.Inputs,
		OnEvent: func(e sm.Event) {
			link.OnEvent(e)
			r.Observer.OnEvent(e)
			r.Marks.Told.OnEvent(e)
			r.Declared.OnEvent(e)
		},
		OnKeys: r.Observer.OnKeys,
		OnSA: func(s *sa.Status) {
			if ctx.Err() == nil { // not of an instance that leads no longer
				r.Observer.OnSA(s)
			}
		},
		OnView: func(v *sm.View) {
			link.OnView(v)
			r.Observer.OnView(v)
			r.Marks.OnView()
			r.Declared.OnView()
			r.seen(v)
			watch.onView(ctx, v)
			notes.OnView(v)
			r.drawn(ring.Fill())
		},
	}, nil
}

// drawn reports that no new keys could be drawn.
func (r *Role) drawn(err error) {
	if err != nil {
		r.Log.Error("no new keys of devices were drawn", "error", err)
	}
}

// seen keeps the status up with what the subnet manager says. A fabric that
// works on a change stays ready.
func (r *Role) seen(v *sm.View) {
	switch {
	case v.State == ib.SMMaster && v.Settled:
		r.hurry.end()
		if r.State.Set("") {
			r.Log.Info("the fabric is settled", "nodes", v.Fabric.NumNodes(), "revision", v.Revision)
		}
	case v.State == ib.SMStandby:
		r.State.Set("another subnet manager is master; this one stands by")
	case v.State == ib.SMNotActive:
		r.State.Set("another subnet manager disabled this one; restart the service to have it take part")
	}
}

// sight takes whether the subnet manager sees what it knows.
func (r *Role) sight(seen v1.Sight) {
	r.Observer.OnSight(seen)
	r.State.See(seen)
}

// guardOf makes what the subnet manager records depend on a term; nil without one.
func guardOf(t *leader.Term) func(context.Context, *store.Tx) error {
	if t == nil {
		return nil
	}
	return t.Guard
}

// termWatch is what one of several instances looks for in each view, in one attachment of a term.
type termWatch struct {
	term  *leader.Term
	blind *leadership.Blindness
	place *leadership.Place
}

// termWatch returns one of a term; nil without a term.
func (r *Role) termWatch(t *leader.Term) *termWatch {
	if t == nil {
		return nil
	}
	return &termWatch{t, leadership.NewBlindness(), &leadership.Place{Store: r.Store, Name: r.Name, Log: r.Log}}
}

func (w *termWatch) onView(ctx context.Context, v *sm.View) {
	if w == nil || v.Fabric == nil {
		return
	}
	w.blind.OnView(v)
	w.place.OnView(ctx, v)
}
