package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/fabric"
	"portcullis/api/fabric/ledger"
	"portcullis/api/leader"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/cmd/portcullisd/fabriclog"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
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

	// intentWait is how long P_Key tables are left as they were found while
	// the store has not said what is wanted, so that a restart takes nothing
	// from a tenant. Past it the fabric closes.
	intentWait = 30 * time.Second
)

// runFabric is the sm role: it attaches to the fabric and runs the subnet manager, again and again until ctx ends, in a
// term if several instances share the fabric. Each obstacle is reported once for each reason, in the log, in /readyz and to
// "portcullis sm status".
func (s *service) runFabric(ctx context.Context, t *leader.Term) error {
	s.fabricState("not attached yet")
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := s.attach(ctx, t)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > steady {
			pause = retryMin
		}
		s.unreachable(ctx, t, err)
		s.yield(ctx, pause, err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// unreachable reports why the fabric is out of reach, when the reason is new.
func (s *service) unreachable(ctx context.Context, t *leader.Term, err error) {
	if t != nil && t.Left() == 0 {
		return // another instance says how the fabric is
	}
	reason := err.Error()
	if !s.fabricState(reason) {
		return
	}
	what := "the fabric is out of reach; trying again"
	if _, closed := errors.AsType[*devicekeys.ClosedError](err); closed {
		what = "the fabric is not managed, for the keys of its devices do not open; trying again"
	}
	s.log.Error(what, "port", s.config.Fabric.Port, "error", reason, "hint", cmp.Or(fabricport.Hint(err, "fabric.port"), command.HintOf(err), "the service attaches by itself once the cause is gone"))
	s.lostAdapter(ctx, reason)
	_, err = s.store.Update(ctx, func(tx *store.Tx) error {
		if t != nil {
			if err := t.Guard(ctx, tx); err != nil {
				return err
			}
		}
		return ledger.SMs().Put(tx, ledger.Master, v1.SM{
			State: "unreachable", Priority: s.config.Fabric.Priority,
			Problems: []string{reason}, Updated: time.Now().UTC(),
		})
	})
	if err != nil {
		s.log.Error("the state of the subnet manager was not recorded", "error", err)
	}
}

// attach runs the subnet manager on the configured port until ctx ends or the
// port is lost. The error says why it ended.
func (s *service) attach(ctx context.Context, t *leader.Term) error {
	link := fabric.New(fabric.Options{
		Guard: guardOf(t),
		Store: s.store, Log: s.log, Now: s.clock.Now, Owed: s.owed, Before: s.link.Load(), OnAliases: s.administration.OnAliases,
		OnPartitions: func(p map[ib.PKey]fabric.Partition) { s.administration.Partition(administration.Clusters(p)) },
		Sight:        fabric.SightLimits(s.config.Fabric.Sight), OnSight: s.sight,
	})
	s.link.Store(link)
	defer s.observer.Gone()
	o, err := s.driverOptions(ctx, link, t)
	if err != nil {
		return err
	}
	if o.Port, err = s.dial(ctx); err != nil {
		return err
	}
	s.fabricState("attached, and finding out what is there")
	s.log.Info("attached to the fabric", "port", s.config.Fabric.Port, "port_guid", o.Port.GUID())
	group, ctx := errgroup.WithContext(ctx)
	if t != nil {
		select {
		case <-s.blind: // of an earlier attachment
		default:
		}
		group.Go(func() error { s.yieldBlind(ctx, s.blind); return nil })
	}
	group.Go(func() error { return link.Run(ctx) })
	group.Go(func() error {
		s.marks.Attached.Store(true)
		defer s.marks.Attached.Store(false)
		err := driver.Run(ctx, o, link.Intents())
		if err == nil && ctx.Err() == nil {
			err = errors.New("the subnet manager stopped by itself")
		}
		return err
	})
	return group.Wait()
}

func (s *service) dial(ctx context.Context) (transport.Port, error) {
	ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
	defer cancel()
	core := s.core()
	return fabricport.Open(ctx, s.config.Fabric.Port, s.config.Fabric.Timeout, fabricport.Agents(&core))
}

// driverOptions returns all that the subnet manager needs but its port. It fails before
// anything is attached, such as where the keys of devices do not open.
func (s *service) driverOptions(ctx context.Context, link *fabric.Link, t *leader.Term) (driver.Options, error) {
	core := s.withDeclared(ctx, s.core())
	core.IntentWait = intentWait
	if err := s.succeed(ctx, &core, t); err != nil {
		return driver.Options{}, err
	}
	attachedAt := s.attachedAt(ctx, t)
	notes := &fabriclog.Routes{Engines: core.Engines, Log: s.log}
	kept, ring, err := devicekeys.Open(&s.config.Fabric.Keys, link, s.config.Path, &core)
	if err != nil {
		return driver.Options{}, err
	}
	answers, err := s.administration.Agent(&s.config.Fabric, &core, ring.SAKeys(), s.config.Path)
	if err != nil {
		return driver.Options{}, err
	}
	return driver.Options{
		Fence: fenceOf(t),
		SA:    answers, SASettings: s.administration.Settings,
		Store: kept, Log: fabriclog.Naming(s.log, s.observer), Timeout: s.config.Fabric.Timeout, Core: core,
		Inputs: s.marks.Inputs,
		OnEvent: func(e sm.Event) {
			link.OnEvent(e)
			s.observer.OnEvent(e)
			s.marks.Told.OnEvent(e)
			s.topospec.OnEvent(e)
		},
		OnKeys: s.observer.OnKeys, OnSA: s.observer.OnSA,
		OnView: func(v *sm.View) {
			link.OnView(v)
			s.observer.OnView(v)
			s.marks.OnView()
			s.topospec.OnView()
			s.seen(v)
			attachedAt(v)
			notes.OnView(v)
			s.drawn(ring.Fill())
		},
	}, nil
}

// drawn reports that no new keys could be drawn.
func (s *service) drawn(err error) {
	if err != nil {
		s.log.Error("no new keys of devices were drawn", "error", err)
	}
}

// seen keeps the status up with what the subnet manager says. A fabric that
// works on a change stays ready.
func (s *service) seen(v *sm.View) {
	switch {
	case v.State == ib.SMMaster && v.Settled:
		if s.fabricState("") {
			s.log.Info("the fabric is settled", "nodes", v.Fabric.NumNodes(), "revision", v.Revision)
		}
	case v.State == ib.SMStandby:
		s.fabricState("another subnet manager is master; this one stands by")
	case v.State == ib.SMNotActive:
		s.fabricState("another subnet manager disabled this one; restart the service to have it take part")
	}
}
