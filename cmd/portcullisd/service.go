package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/audit/anchor"
	"portcullis/api/audit/verifier"
	"portcullis/api/clock/keeper"
	"portcullis/api/events"
	"portcullis/api/fabric"
	"portcullis/api/fabric/keyops"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/seen"
	"portcullis/api/hostca"
	"portcullis/api/leader"
	"portcullis/api/locks"
	"portcullis/api/removals"
	"portcullis/api/results"
	"portcullis/api/store"
	"portcullis/api/topology"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/cmd/portcullisd/restore"
	"portcullis/cmd/portcullisd/watch"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// service is one running portcullisd.
type service struct {
	config *config.Config
	parts  *config.Files
	log    *slog.Logger
	store  *store.Store
	status *readiness.Status

	storeHealth *readiness.StoreHealth
	owed        *owed.Keeper       // what was done while the store was away
	removals    *removals.Remover  // nil without the sm role
	recorder    *admission.Service // of what was ordered while the store was away

	// reloaded has a token after the files were read again.
	reloaded chan struct{}

	tokens atomic.Pointer[api.Tokens]
	server *api.Server            // nil without the api role
	told   *prometheus.CounterVec // events; nil without the api role
	brakes *readiness.Brakes      // nil without the api role

	name      string            // of this instance; "" where it is the only one
	candidate *leader.Candidate // nil without the sm role, and where this instance is the only one
	blind     chan string       // why the leader sees nothing of the fabric, "" once it does
	renewed   chan struct{}     // has a token after the TLS certificate was read again

	clock    *keeper.Keeper
	anchors  *anchor.Keeper // of the audit log
	verifier *verifier.Verifier

	observer *seen.Observer   // nil without the sm role
	marks    *inputs.Operator // nil without the sm role
	topospec *topology.Service
	declared atomic.Pointer[topology.Wanted] // what was in force last
	link     atomic.Pointer[fabric.Link]
	current  atomic.Pointer[sm.Config] // nil: as at the start

	administration *administration.Keeper
}

// serve runs the service until a signal or ctx ends it, or a part of it dies.
func serve(ctx context.Context, c *config.Config, p *config.Files, log *slog.Logger) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	boundGarbage()
	notify(log, "STATUS=opening the store "+c.StorePlace())
	state := readiness.New(func(line string) { notify(log, "STATUS="+line) })
	health := &readiness.StoreHealth{Log: log, Status: func(detail string) { state.Set(readiness.Store, detail) }, News: make(chan struct{}, 1)}
	st, err := openStore(ctx, c, p, health, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for before the store opened
		}
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	if err := restore.RefuseIncomplete(ctx, st, c.Path(c.StateDir)); err != nil {
		return err
	}

	s := &service{config: c, parts: p, log: log, store: st, storeHealth: health, status: state, administration: administration.New(), reloaded: make(chan struct{}, 1), renewed: make(chan struct{}, 1), blind: make(chan string, 1)}
	s.administration.Awaits = true
	s.tokens.Store(p.Tokens)
	if err := s.newClock(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for before the recorded time was read
		}
		return err
	}
	if err := s.newAnchors(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for before the state could be compared
		}
		return err
	}
	s.verifier = s.newVerifier()
	s.owed = owed.New(log)
	if c.Has(config.RoleSM) {
		if s.owed, err = owed.Open(c.Path(c.StateDir), log); err != nil {
			return err
		}
	}

	group, ctx := errgroup.WithContext(ctx)
	if err := s.startWatch(ctx, group); err != nil {
		return err
	}
	if err := s.startTopospec(ctx, group); err != nil {
		return ended(ctx, group, err)
	}
	if err := s.startLeading(ctx); err != nil {
		return ended(ctx, group, err)
	}
	if err := s.startAPI(ctx, group); err != nil {
		return err
	}
	if c.Has(config.RoleSM) {
		s.checkRoot()
		core := s.withDeclared(ctx, p.Core)
		for _, n := range c.Fabric.Keys.KeyNotices(&core) {
			log.Warn(n)
		}
		if c.Fabric.Enforcement != "verified" {
			log.Warn("fabric.enforcement is accepted: switches are believed to enforce P_Keys without proof; for simulators only")
		}
		if err := s.settle(ctx); err != nil { // removals win, from the first intent on
			log.Error("the store does not take what it is owed; tried again", "error", err)
		}
		group.Go(func() error { return s.settleOwed(ctx) })
		s.fabricState("not attached yet") // else the service would be ready in every part until manage says so
		group.Go(func() error { return s.manage(ctx) })
	}
	if s.name != "" {
		group.Go(func() error { return s.keepAnnounced(ctx) })
	}
	group.Go(func() error { s.clock.Run(ctx); return nil })
	group.Go(func() error { s.anchors.Run(ctx); return nil })
	group.Go(func() error { s.verifier.Run(ctx); return nil })
	group.Go(func() error { return s.watchRoom(ctx) })
	group.Go(func() error { return s.followRevoked(ctx) })
	group.Go(func() error { return s.followRemote(ctx, health) })
	hup := command.Hangups()
	group.Go(func() error { return s.reloadOnSignal(ctx, hup) })
	group.Go(func() error { return watchdog(ctx, log, s.alive) })
	context.AfterFunc(ctx, func() { notify(log, daemon.SdNotifyStopping) })
	notify(log, daemon.SdNotifyReady)
	log.Info("portcullisd serves", "version", version.Short(), "roles", c.Roles, "store", c.StorePlace())
	err = group.Wait()
	s.flushClock(ctx)
	s.flushAnchors(ctx)
	log.Info("portcullisd stopped")
	return err
}

// startAPI starts admission and the HTTPS API.
func (s *service) startAPI(ctx context.Context, group *errgroup.Group) error {
	if !s.config.Has(config.RoleAPI) {
		return nil
	}
	keeper, err := s.newLocks()
	if err != nil {
		return err
	}
	hosts, err := s.newHostAuthority(ctx)
	if err != nil {
		return err
	}
	l, err := listen(s.config)
	if err != nil {
		return err
	}
	signer, err := s.newResults(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if signer != nil {
		s.anchors.SignWith(signer.SignAnchor)
	}
	adm := s.newAdmission(keeper, hosts, signer)
	s.told, s.brakes = newTold(), readiness.NewBrakes(s.status)
	s.server = s.newServer(adm, s.newRMA(adm.Attestation(), adm.Inventory()), keeper, hosts, signer)
	for _, n := range s.config.Fabric.Notices() {
		s.log.Warn(n)
	}
	s.status.Set(readiness.Admission, s.parts.Closed)
	s.status.Set(readiness.API, "")
	for _, w := range s.parts.Policy.Waived() {
		s.log.Warn("the attestation policy leaves adapters unproven", "waived", w)
	}
	if s.parts.Closed != "" {
		s.log.Warn("attestation refuses every host", "reason", s.parts.Closed)
	}
	s.log.Info("API listens", "address", l.Addr().String())
	group.Go(func() error { return adm.Run(ctx) })
	group.Go(func() error { return s.followEvents(ctx) })
	group.Go(func() error { return s.watchCertificate(ctx) })
	group.Go(func() error { s.brakes.Follow(ctx, s.store, s.log); return nil })
	group.Go(func() error { return s.serveAPI(ctx, l) })
	return nil
}

func (s *service) serveAPI(ctx context.Context, l net.Listener) error {
	return s.server.Serve(ctx, l, s.parts.Cert)
}

func (s *service) newAdmission(keeper *locks.Service, hosts *hostca.Service, signer *results.Service) *admission.Service {
	a := &s.config.Admission
	rest := a.PKeyRest
	if rest == 0 {
		rest = -1 // what admission calls none
	}
	o := admission.Options{
		Store: s.store, Policy: s.parts.Policy, Log: s.log, Now: s.clock.Now, Clock: s.clock,
		Window: a.Window, EvidenceAge: a.EvidenceMaxAge, Withdraw: append([]string{}, a.Withdraw...),
		PKeyFirst: a.PKeyFirst, PKeyLast: a.PKeyLast, PKeyReserved: a.PKeyReserved, PKeyMinAge: rest,
		GUIDConflict: a.GUIDConflict, Alone: !a.TwoPersons,
		Brake: admission.BrakeLimits(a.Brake), UnseenFor: a.WithdrawUnseen,
	}
	o.Declared, o.Root = s.declaredSwitches, s.parts.SessionRoot()
	if keeper != nil {
		o.Locks = keeper // not a typed nil
	}
	if hosts != nil {
		o.Certifier = hosts
	}
	if signer != nil {
		o.Results = signer
	}
	return admission.New(o)
}

func (s *service) newServer(adm *admission.Service, r api.Replacer, keeper *locks.Service, hosts *hostca.Service, signer *results.Service) *api.Server {
	registry, references := watch.NewRegistry(s.observer), s.newReferences()
	registry.MustRegister(metrics.NewWaivers(references), s.told, metrics.NewCertificateEnd(s.parts.Cert), metrics.NewTokens(s.tokens.Load), s.brakes)
	registry.MustRegister(append(s.storeHealth.Collectors(), metrics.NewOwed(s.owed)...)...)
	if s.candidate != nil {
		registry.MustRegister(metrics.NewLeadership(s.candidate)...)
	}
	registry.MustRegister(metrics.NewClock(s.clock)...)
	registry.MustRegister(metrics.NewReview(s.store), metrics.NewAnchors(s.anchors), metrics.NewAudit(s.verifier))
	o := api.Options{
		Backend: api.Backend{Attestation: adm.Attestation(), Inventory: adm.Inventory(), Lifecycle: adm, Brakes: adm, Reviews: adm, State: adm},
		Tenancy: adm.Tenancy(), Tokens: s.parts.Tokens, Ended: s, ChannelBinding: s.config.ChannelBinding, Limits: s.config.Rates(),
		Version: version.Short(), Log: s.log, Registry: registry, Ready: s.conditions, Topospec: s.topospec, RMA: r, Reference: references,
		Events: events.Book{Store: s.store}, Audit: audit.Book{Store: s.store}, Breaks: s.verifier, Backups: s.newBackups(), Clock: s.clock,
	}
	if s.observer != nil {
		o.Fabric, o.Operator = s.observer, s.marks // not a typed nil
	}
	if keeper != nil {
		o.Locks = keeper
	}
	if hosts != nil {
		o.Hosts = hosts
	}
	if s.name != "" {
		o.Leadership = &leadership.Service{Store: s.store, Candidate: s.candidate}
	}
	if signer != nil {
		o.Results = signer
		registry.MustRegister(metrics.NewResults(signer))
	}
	return api.New(o)
}

// startWatch makes what remembers the fabric, and serves it on this machine.
func (s *service) startWatch(ctx context.Context, group *errgroup.Group) error {
	if !s.config.Has(config.RoleSM) {
		return nil
	}
	s.observer = seen.New(seen.Options{
		Hosts:   func() map[ib.GUID]string { return of(&s.link, (*fabric.Link).Hosts) },
		Cables:  func() map[ib.Place]string { return of(&s.link, (*fabric.Link).Cables) },
		Tenants: func() map[string]string { return of(&s.link, (*fabric.Link).Tenants) },
	})
	s.marks = inputs.New(s.observer, s.log)
	s.marks.Record = inputs.AuditMarks(s.store, s.owed)
	s.removals = s.newRemovals()
	s.marks.Note, s.marks.Sealed = keyops.Audit(s.store, time.Now), s.sealedFacts
	w, err := watch.Open(s.config.Fabric.Watch, s.config.Path, s.observer, nil, s.removals, s.log)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, w.Close)
	w.Serve(ctx, group)
	return nil
}

// alive is what the watchdog asks: does the subnet manager, where it is attached, take
// what it is told? The store may be away while the fabric is served.
func (s *service) alive(ctx context.Context) error {
	if s.marks == nil || !s.marks.Attached.Load() {
		return nil
	}
	if err := s.marks.Pass(ctx, &sm.Woken{}); err != nil {
		return fmt.Errorf("the subnet manager's loop stands still: %w", err)
	}
	return nil
}

// reloadOnSignal reads certificate, tokens and configuration again on SIGHUP.
func (s *service) reloadOnSignal(ctx context.Context, hup chan os.Signal) error {
	command.OnHangup(ctx, hup, func() {
		notifyReloading(s.log)
		if err := s.reload(); err != nil {
			s.log.Error("reload: what was in use stays in use", "error", err)
		} else {
			s.log.Info("reloaded certificate and tokens")
		}
		if err := s.reconfigure(ctx); err != nil {
			s.log.Error("reload: the configuration that was in use stays in use", "error", err)
		}
		notify(s.log, daemon.SdNotifyReady)
	})
	return nil
}

// reload replaces what can be replaced while running.
func (s *service) reload() error {
	if s.server == nil {
		return nil
	}
	tokens, err := config.LoadTokens(s.config)
	if err == nil {
		s.server.SetTokens(tokens)
		s.tokens.Store(tokens)
	}
	err = errors.Join(err, s.parts.Cert.Reload(time.Now()))
	for _, c := range []chan struct{}{s.reloaded, s.renewed} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return err
}

// sealedFacts gives the facts of the service, whose keys are sealed.
func (s *service) sealedFacts() ([]sm.Fact, error) {
	return fabric.New(fabric.Options{Store: s.store, Log: s.log, Owed: s.owed}).Load()
}
