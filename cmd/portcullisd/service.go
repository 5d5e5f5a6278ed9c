package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/audit/anchor"
	"portcullis/api/audit/verifier"
	"portcullis/api/clock/keeper"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inforce"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/cmd/portcullisd/restore"
	"portcullis/cmd/portcullisd/storage"
	"portcullis/cmd/portcullisd/systemd"
	"portcullis/cmd/portcullisd/tamper"
	"portcullis/fabricsm/topospec"
)

// service is one running portcullisd: what each of its roles needs.
type service struct {
	config  *config.Config
	parts   *config.Files
	log     *slog.Logger
	systemd *systemd.Notifier
	status  *readiness.Status
	store   *store.Store
	health  *readiness.StoreHealth
	waiter  storage.Waiter

	clock    *keeper.Keeper
	anchors  *anchor.Keeper // of the audit log
	verifier *verifier.Verifier

	name      string            // of this instance; "" where it is the only one
	candidate *leader.Candidate // nil without the sm role, and where this instance is the only one
	renewed   chan struct{}     // has a token after the TLS certificate was read again
	inUse     *config.InUse

	fabric   *fabricRole // nil without the sm role
	api      *apiRole    // nil without the api role
	declared *inforce.Keeper
}

// serve runs the service until a signal or ctx ends it, or a part of it dies. wall is the clock of the machine.
func serve(ctx context.Context, c *config.Config, p *config.Files, wall func() time.Time, log *slog.Logger) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	boundGarbage()
	s := &service{config: c, parts: p, log: log, systemd: systemd.New(log), renewed: make(chan struct{}, 1), inUse: config.NewInUse(p.Core)}
	s.systemd.Status("opening the store " + c.StorePlace())
	s.waiter = storage.Waiter{Log: log, Status: s.systemd.Status}
	s.status = readiness.New(s.systemd.Status)
	s.health = &readiness.StoreHealth{Log: log, Status: func(detail string) { s.status.Set(readiness.Store, detail) }, News: make(chan struct{}, 1)}
	s.store, err = storage.Open(ctx, etcd.Options{
		Dir: c.Path(c.StateDir), Remote: p.Etcd, Cluster: p.Cluster, Prefix: c.Etcd.Prefix,
		Log: log, Version: version.Short(), Quota: c.StoreQuota << 20, OnHealth: s.health.Note,
	}, s.systemd.Extend)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for before the store opened
		}
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if err := restore.RefuseIncomplete(ctx, s.store, c.Path(c.StateDir)); err != nil {
		return err
	}
	if err := s.compare(ctx, wall); err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for before clock and state could be compared
		}
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := s.start(ctx, group); err != nil {
		if ctx.Err() == nil {
			return err
		}
		return group.Wait() // a part of the service ended, or the end was asked for
	}
	err = group.Wait()
	tamper.Flush(ctx, s.clock)
	tamper.Flush(ctx, s.anchors)
	log.Info("portcullisd stopped")
	return err
}

// compare creates what detects that clock, state or audit log were changed, and compares clock and state.
func (s *service) compare(ctx context.Context, wall func() time.Time) (err error) {
	c := s.config
	o := keeper.Options{Store: s.store, Log: s.log, Wall: wall}
	if c.Shared() {
		if s.name, err = c.InstanceName(); err != nil {
			return err
		}
		o.Instance = s.name
	}
	s.clock = keeper.New(o)
	if err := tamper.ReadClock(ctx, s.clock, s.log, s.systemd.Status); err != nil {
		return err
	}
	s.anchors = anchor.New(anchor.Options{
		Store: s.store, Sinks: append([]anchor.Sink{anchor.Journal{Log: s.log}}, s.parts.Anchors...), Every: c.Audit.Every, Tell: c.Audit.TellAfter, Service: c.ServiceName(),
		Alone: !c.Shared(), Log: s.log,
	})
	if err := tamper.JudgeState(ctx, s.anchors, s.log, s.systemd.Status); err != nil {
		return err
	}
	s.status.Set(readiness.Audit, "")
	s.verifier = verifier.New(verifier.Options{
		Store: s.store, Every: tamper.VerifyEvery, Service: c.ServiceName(), Shared: c.Shared(), Log: s.log,
		OnState: func(now verifier.State) { s.status.Set(readiness.Audit, tamper.AuditDetail(&now)) },
	})
	return nil
}

// start starts the roles of the service, and what follows its state, in goroutines of group.
func (s *service) start(ctx context.Context, group *errgroup.Group) error {
	c := s.config
	if err := s.newFabricRole(); err != nil {
		return err
	}
	if err := s.fabric.watch(ctx, group); err != nil {
		return err
	}
	s.newDeclared()
	follow, err := s.declared.Start(ctx)
	if err != nil {
		return err
	}
	if follow != nil {
		group.Go(func() error { return follow(ctx) })
	}
	if err := s.announce(ctx, group); err != nil {
		return err
	}
	if err := s.startAPI(ctx, group); err != nil {
		return err
	}
	s.fabric.run(ctx, group)
	until := func(run func(context.Context)) { group.Go(func() error { run(ctx); return nil }) }
	until(s.clock.Run)
	until(s.anchors.Run)
	until(s.verifier.Run)
	room := &storage.Room{Store: s.store, Log: s.log, Now: s.health.Now, News: s.health.News, Instance: s.name}
	until(room.Watch)
	if m := &s.parts.Cluster; m.Name != "" {
		until(func(ctx context.Context) {
			storage.FollowRevoked(ctx, s.log, func(ctx context.Context) error { return m.FollowRevoked(ctx, s.store, c.Path(c.StateDir), s.log) })
		})
	}
	if len(c.Etcd.Endpoints) > 0 {
		until(func(ctx context.Context) { storage.FollowRemote(ctx, s.store, s.health.Note) })
	}
	hup := command.Hangups()
	until(func(ctx context.Context) { command.OnHangup(ctx, hup, func() { s.reload(ctx) }) })
	group.Go(func() error { return s.systemd.Watchdog(ctx, s.fabric.alive) })
	context.AfterFunc(ctx, s.systemd.Stopping)
	s.systemd.Ready()
	s.log.Info("portcullisd serves", "version", version.Short(), "roles", c.Roles, "store", c.StorePlace())
	return nil
}

// newDeclared creates what keeps the declared topology in force.
func (s *service) newDeclared() {
	o := inforce.Options{Store: s.store, Log: s.log, Now: s.clock.Now, Rules: s.config.Fabric.Topology.Rules(), Core: s.inUse.Core}
	if f := s.fabric; f != nil {
		o.Observer, o.Pass, o.Answered = f.observer, f.marks.Pass, s.waiter.Answered
		o.Problem = func(problem string) { s.status.Set("topology", problem) }
		o.Opens = func(ctx context.Context, next *topospec.Spec) error { return f.proves.Opens(ctx, next) }
	}
	s.declared = inforce.New(o)
	if f := s.fabric; f != nil {
		f.proves, f.asks = f.prover(), f.inquirer()
		f.records = f.recorder()
	}
}

// announce writes how this instance is reached, where there can be others, and keeps that right.
func (s *service) announce(ctx context.Context, group *errgroup.Group) error {
	if s.name == "" {
		return nil
	}
	a := &leadership.Announcer{Store: s.store, Name: s.name, API: s.config.Advertised, Manages: s.config.Has(config.RoleSM), Renewed: s.renewed, Log: s.log}
	if s.parts.Cert != nil {
		a.Pin = s.parts.Cert.Pin
	}
	if err := s.waiter.Answered(ctx, "to say how this instance is reached", func() error { return a.Announce(ctx) }); err != nil {
		return err
	}
	group.Go(func() error { a.Keep(ctx); return nil })
	return nil
}

// reload reads certificate, tokens, authorities of client certificates and configuration again.
func (s *service) reload(ctx context.Context) {
	s.systemd.Reloading()
	if err := s.api.reload(); err != nil {
		s.log.Error("reload: what was in use stays in use", "error", err)
	} else {
		s.log.Info("reloaded certificate and tokens")
	}
	if err := s.fabric.reload(ctx); err != nil {
		s.log.Error("reload: the configuration that was in use stays in use", "error", err)
	}
	s.systemd.Ready()
}

// serviceGC is the growth of memory, in percent, at which the service collects garbage. Requests leave much garbage and
// keep little memory: with Go's 100, strangers would make it hold twice what their requests need.
const serviceGC = 40

// hurryGC is the same while the service has begun to lead and not settled the fabric: what Go does by itself. To collect
// garbage more often takes the CPU for which hosts wait then.
const hurryGC = 100

// boundGarbage has the service hold less garbage than programs usually do.
func boundGarbage() { hurryGarbage(false) }

// hurryGarbage has the service hold as much garbage as other programs do, or less again. Where GOGC is set, that decides.
func hurryGarbage(hurry bool) {
	switch {
	case os.Getenv("GOGC") != "":
	case hurry:
		debug.SetGCPercent(hurryGC)
	default:
		debug.SetGCPercent(serviceGC)
	}
}
