package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/adoptions"
	"portcullis/api/audit"
	"portcullis/api/backup"
	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/api/events/feed"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/query"
	"portcullis/api/hostca"
	"portcullis/api/idempotency"
	"portcullis/api/inventory/derive"
	"portcullis/api/locks"
	"portcullis/api/measuredboot"
	"portcullis/api/oidc"
	"portcullis/api/plan/found"
	"portcullis/api/receipts"
	"portcullis/api/results"
	"portcullis/api/rma"
	"portcullis/api/store/etcd"
	"portcullis/api/trace/otlp"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook/delivery"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/expiry"
	"portcullis/cmd/portcullisd/issuers"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/cmd/portcullisd/systemd"
	"portcullis/cmd/portcullisd/tamper"
	"portcullis/cmd/portcullisd/watch"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec/approval"
)

// apiRole is what the role api consists of.
type apiRole struct {
	service  *service
	tokens   atomic.Pointer[credential.Tokens]
	reloaded chan struct{} // has a token after the files were read again
	server   *api.Server

	told   metrics.Events
	phases *metrics.Hosts
	brakes *readiness.Brakes

	locks    *locks.Service       // of adapters; nil: none are locked
	hosts    *hostca.Service      // nil: hosts get no certificates
	signer   *results.Service     // nil: no attestation results are signed
	prover   *proving.Prover      // nil: no port in the fabric
	receipts *receipts.Service    // nil: none are issued
	people   *oidc.Verifier       // of identity providers; nil: there are none
	clients  *clientcert.Verifier // of client certificates
	hooks    *delivery.Service    // sends events
	traces   *otlp.Exporter       // nil: no traces are sent
}

// startAPI starts admission and the HTTPS API, in a service with that role.
func (s *service) startAPI(ctx context.Context, group *errgroup.Group) error {
	if !s.config.Has(config.RoleAPI) {
		return nil
	}
	a := &apiRole{service: s, reloaded: make(chan struct{}, 1), told: metrics.NewEvents(), phases: metrics.NewHosts(), brakes: readiness.NewBrakes(s.status)}
	a.tokens.Store(s.parts.Tokens)
	var err error
	if o := s.parts.Locks; o != nil {
		o.Store, o.Now = s.store, s.clock.Now
		if a.locks, err = locks.New(*o); err != nil {
			return err
		}
	}
	issue := &issuers.Site{Store: s.store, Log: s.log, Now: s.clock.Now}
	if a.hosts, err = issue.Hosts(ctx, s.parts.Hosts); err != nil {
		return err
	}
	l, err := systemd.Listen(s.config.Listen, s.config.File)
	if err != nil {
		return err
	}
	if a.signer, err = issue.Results(ctx, s.parts.Results); err != nil {
		return errors.Join(err, l.Close())
	}
	if a.signer != nil {
		s.anchors.SignWith(a.signer.SignAnchor)
	}
	adm := a.newAdmission()
	var examiner receipts.Examiner
	if s.fabric != nil {
		a.prover = s.fabric.proves
		examiner = a.prover // not a typed nil
	}
	if a.receipts, err = issue.Receipts(ctx, s.parts.Results, adm.Attestation(), examiner); err != nil {
		return errors.Join(err, l.Close())
	}
	if len(s.parts.Issuers) > 0 {
		if a.people, err = oidc.New(s.parts.Issuers, s.log, time.Now); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	if a.clients, err = clientcert.New(s.parts.Clients); err != nil {
		return errors.Join(err, l.Close())
	}
	adopted := a.newAdoptions(adm)
	a.hooks = s.startWebhooks(ctx, group)
	if a.traces, err = s.startTraces(ctx, group); err != nil {
		return errors.Join(err, l.Close())
	}
	a.server = a.newServer(adm, adopted)
	s.api = a
	a.notices()
	s.log.Info("API listens", "address", l.Addr().String())
	ends := &expiry.Watcher{
		Cert: s.parts.Cert, Tokens: a.tokens.Load, Reloaded: a.reloaded, Store: s.store, Log: s.log,
		Ended: func(detail string) { s.status.Set(readiness.API, detail) },
	}
	group.Go(func() error { return adm.Run(ctx) })
	group.Go(func() error { return adopted.Run(ctx) })
	if a.people != nil {
		group.Go(func() error { a.people.Run(ctx); return nil })
	}
	group.Go(func() error { a.told.Follow(ctx, s.store, s.log); return nil })
	group.Go(func() error { a.phases.Follow(ctx, s.store, s.log); return nil })
	group.Go(func() error { ends.Watch(ctx); return nil })
	group.Go(func() error { a.brakes.Follow(ctx, s.store, s.log); return nil })
	group.Go(func() error { return a.server.Serve(ctx, l, s.parts.Cert) })
	return nil
}

// notices logs what the configuration leaves open, and sets readiness.
func (a *apiRole) notices() {
	s := a.service
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
}

func (a *apiRole) newAdmission() *admission.Service {
	s, c := a.service, &a.service.config.Admission
	rest := c.PKeyRest
	if rest == 0 {
		rest = -1 // what admission calls none
	}
	o := admission.Options{
		Store: s.store, Policy: s.parts.Policy, Log: s.log, Now: s.clock.Now, Clock: s.clock,
		Window: c.Window, EvidenceAge: c.EvidenceMaxAge, Withdraw: append([]string{}, c.Withdraw...),
		PKeyFirst: c.PKeyFirst, PKeyLast: c.PKeyLast, PKeyReserved: c.PKeyReserved, PKeyMinAge: rest,
		GUIDConflict: c.GUIDConflict, Approval: approval.Rule{Alone: !c.TwoPersons},
		Brake: admission.BrakeLimits(c.Brake), UnseenFor: c.WithdrawUnseen,
	}
	o.Declared, o.Root, o.Manifests = s.declared.DeclaredSwitches, s.parts.SessionRoot(), s.parts.Manifests
	if a.locks != nil {
		o.Locks = a.locks // not a typed nil
	}
	if a.hosts != nil {
		o.Certifier = a.hosts
	}
	if a.signer != nil {
		o.Results = a.signer
	}
	return admission.New(o)
}

// newAdoptions returns what keeps memberships that the fabric had before.
func (a *apiRole) newAdoptions(adm *admission.Service) *adoptions.Service {
	s, c := a.service, &a.service.config.Admission
	return adoptions.New(adoptions.Options{
		Store: s.store, Log: s.log, PKeys: adm.Tenancy(), Brake: adm, Approval: approval.Rule{Alone: !c.TwoPersons}, Reserved: c.PKeyReserved,
		Now: s.clock.Now, Clock: s.clock,
	})
}

// newServer creates the HTTPS API, and the metrics that it serves.
func (a *apiRole) newServer(adm *admission.Service, adopted *adoptions.Service) *api.Server {
	s := a.service
	references := measuredboot.New(measuredboot.Options{
		Store: s.store, Log: s.log, Now: s.clock.Now, PCRs: s.parts.Policy.PCRs, Approval: approval.Rule{Alone: !s.config.Admission.TwoPersons},
	})
	replace := rma.Options{Store: s.store, Log: s.log, Now: s.clock.Now, Revisions: s.declared.Revisions(), Proofs: adm.Attestation(), Hosts: adm.Inventory()}
	derived := derive.Options{Store: s.store, Revisions: s.declared.Revisions()}
	believed := &tamper.Conditions{Clock: s.clock, Anchors: s.anchors, TellAfter: s.config.Audit.TellAfter, Store: s.store}
	copies, told := a.newBackups(), feed.New(s.store, s.log)
	o := api.Options{
		Backend: api.Backend{Attestation: adm.Attestation(), Inventory: adm.Inventory(), Layout: adm.Layout(), Lifecycle: adm, Brakes: adm, Reviews: adm, State: adm, Labels: api.Labels{Hosts: admission.HostLabels(adm), Clusters: adm.Tenancy().ClusterLabels(), Tenants: adm.Tenancy().TenantLabels()}},
		Tenancy: adm.Tenancy(), Tokens: s.parts.Tokens, Ended: &expiry.Refusals{Store: s.store, Log: s.log}, ChannelBinding: s.config.ChannelBinding, Limits: s.config.Rates(),
		Version: version.Short(), Log: s.log, Topospec: s.declared.Revisions(), Reference: references,
		Ready: func(ctx context.Context) []v1.Condition {
			return append(s.health.Warned(s.status.Conditions(ctx)), believed.All(ctx)...)
		},
		Events: told, Audit: audit.Book{Store: s.store}, Breaks: s.verifier, Backups: copies, Clock: s.clock,
		Adopter: adopted, Planner: found.Planner{Store: s.store}, Profiler: s.profiler(), UFM: s.config.UFM(), Pages: s.config.API.Web, RequireReason: s.config.API.RequireReason, Answers: idempotency.New(s.store, s.clock.Now, idempotency.DefaultRate()),
	}
	var observer *query.Observer
	debts := owed.New(s.log)
	if f := s.fabric; f != nil {
		observer, debts, replace.Look = f.observer, f.owed, s.declared.Sight
		o.Fabric, o.Operator, o.Isolation, o.Remover = f.observer, f.marks, a.prover, f.fencer.Removals // not a typed nil
		o.Inquirer, o.Past = f.asks, f.records
		told.Violations = f.observer.ViolationSum
		derived.Seen = func() (*topo.Fabric, error) {
			sight, err := s.declared.Sight()
			if err != nil {
				return nil, err
			}
			return sight.Fabric, nil
		}
	}
	if a.locks != nil {
		o.Locks = a.locks
	}
	if a.hosts != nil {
		o.Hosts = a.hosts
	}
	if a.people != nil {
		o.Verifier = a.people
	}
	o.Machines = a.clients
	o.Logins = api.LoginsOf(s.parts.Issuers)
	if s.name != "" {
		o.Leadership = &leadership.Service{Store: s.store, Candidate: s.candidate}
	}
	o.RMA, o.Derived = rma.New(replace), derive.New(derived)
	registry := watch.NewRegistry(observer)
	if a.prover != nil {
		registry.MustRegister(metrics.NewIsolation(a.prover.Standing, a.prover.CountPorts), metrics.NewHistory(s.fabric.records.State))
	}
	registry.MustRegister(metrics.NewReady(o.Ready), a.phases, metrics.NewAttestations(adm.Attestation()), metrics.NewBackups(copies))
	registry.MustRegister(metrics.NewClientAuthorities(a.clients.Authorities), metrics.NewWaivers(references), a.told, metrics.NewCertificateEnd(s.parts.Cert), metrics.NewTokens(a.tokens.Load), a.brakes)
	registry.MustRegister(append(s.health.Collectors(), metrics.NewOwed(debts)...)...)
	if s.candidate != nil {
		registry.MustRegister(metrics.NewLeadership(s.candidate)...)
	}
	registry.MustRegister(metrics.NewClock(s.clock)...)
	registry.MustRegister(metrics.NewReview(s.store), metrics.NewAnchors(s.anchors), metrics.NewAudit(s.verifier))
	if a.signer != nil {
		o.Results, o.Receipts = a.signer, a.receipts
		registry.MustRegister(metrics.NewResults(a.signer))
	}
	o.Webhooks = a.hooks
	registry.MustRegister(metrics.NewWebhooks(a.hooks))
	if a.traces != nil {
		registry.MustRegister(metrics.NewTraces(a.traces.Counts))
	}
	o.Registry = registry
	return api.New(o)
}

func (a *apiRole) newBackups() *backup.Service {
	s, c := a.service, &a.service.config.Backup
	to, err := backup.Recipients(c.Recipients)
	if err != nil {
		s.log.Error("no backups are made", "error", err) // check has refused that before
	}
	dir := ""
	if c.Directory != "" {
		dir = filepath.Clean(s.config.Path(c.Directory))
	}
	return backup.New(backup.Options{
		Store: s.store, Recipients: to, Directory: dir, Keep: c.Keep, State: etcd.Format, Version: version.Short(), Log: s.log,
	})
}

// reload replaces what can be replaced while running.
func (a *apiRole) reload() error {
	if a == nil {
		return nil
	}
	tokens, err := config.LoadTokens(a.service.config)
	if err == nil {
		a.server.SetTokens(tokens)
		a.tokens.Store(tokens)
	}
	err = errors.Join(err, a.reloadClients(), a.service.parts.Cert.Reload(time.Now()))
	for _, c := range []chan struct{}{a.reloaded, a.service.renewed} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return err
}

// reloadClients reads the authorities of client certificates and their rules again. Of the configuration that counts for nothing else.
func (a *apiRole) reloadClients() error {
	c, err := config.Load(a.service.config.File)
	if err != nil {
		return err
	}
	all, err := config.LoadClientAuthorities(c)
	if err == nil {
		err = a.clients.Set(all)
	}
	if err != nil {
		return fmt.Errorf("client certificates: %w", err)
	}
	a.server.SetClientAuthorities()
	return nil
}
