package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/admission"
	"portcullis/api/fabric"
	"portcullis/api/fabric/keyops"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/query"
	"portcullis/api/isolation/remedy"
	"portcullis/api/leader"
	"portcullis/api/rehearsal"
	"portcullis/api/removals"
	"portcullis/attest"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/fencing"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/cmd/portcullisd/inquiring"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/cmd/portcullisd/portcounters"
	"portcullis/cmd/portcullisd/posture"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/cmd/portcullisd/recording"
	"portcullis/cmd/portcullisd/settle"
	"portcullis/cmd/portcullisd/smrole"
	"portcullis/cmd/portcullisd/watch"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/umad"
	"portcullis/fabricsm/vault"
)

// fabricRole is what the role sm consists of.
type fabricRole struct {
	service  *service
	state    *readiness.Fabric
	owed     *owed.Keeper // what was done while the store was away
	link     *smrole.Link
	observer *query.Observer
	marks    *inputs.Operator
	settler  *settle.Settler
	answers  *administration.Keeper
	asker    driver.Asker // of subnet administration
	proves   *proving.Prover
	asks     *inquiring.Service
	fencer   *fencing.Fencer
	counters *portcounters.Keeper // nil: none are read
	records  *recording.Keeper    // how the fabric changes
	running  *smrole.Role         // nil before run
}

// newFabricRole creates what the role sm needs, in a service that has it.
func (s *service) newFabricRole() error {
	if !s.config.Has(config.RoleSM) {
		return nil
	}
	f := &fabricRole{service: s, state: readiness.NewFabric(s.status, s.config.Fabric.SA.Enabled, s.log), link: &smrole.Link{}, answers: administration.New(), fencer: &fencing.Fencer{}}
	var err error
	if f.owed, err = owed.Open(s.config.Path(s.config.StateDir), s.log); err != nil {
		return err
	}
	if s.name != "" {
		s.candidate = leader.New(leader.Options{
			Store: s.store, Role: leadership.Role, Instance: s.name, TTL: s.config.Lease, Log: s.log, OnChange: f.state.Led,
		})
	}
	seen := query.Options{Hosts: f.link.Hosts, Cables: f.link.Cables, Tenants: f.link.Tenants}
	if f.counters, err = portcounters.Of(&s.config.Fabric, func() (*sm.View, error) { return f.observer.View() }, s.log); err != nil {
		return err
	}
	if f.counters != nil {
		seen.Counters = f.counters
	}
	f.observer = query.New(seen)
	f.marks = inputs.New(f.observer, s.log)
	f.marks.Record = inputs.AuditMarks(s.store, f.owed)
	f.marks.Note, f.marks.Sealed = keyops.Audit(s.store, time.Now), func() ([]sm.Fact, error) { return smrole.Facts(s.store, f.owed, s.log) }
	if s.config.Fabric.Keys.ManagesKeys() {
		f.marks.Rehearsed = (&rehearsal.Book{Store: s.store, Now: s.clock.Now, Check: f.check}).Record
	}
	s.fabric = f
	return nil
}

// check returns the name of the vault of the keys of devices, and the key under which they are compared with a kit.
func (f *fabricRole) check() (string, vault.CheckKey, error) {
	facts, err := f.marks.Sealed()
	if err != nil {
		return "", vault.CheckKey{}, err
	}
	root, err := f.service.config.Fabric.Keys.OpenRoot(f.service.config.Path)
	if err != nil {
		return "", vault.CheckKey{}, err
	}
	return keystore.ReadCheck(facts, root)
}

// prover returns what proves the isolation of tenants, by a port of its own.
func (f *fabricRole) prover() *proving.Prover {
	s := f.service
	c, v := &s.config.Fabric, &s.config.Verify
	o := proving.Options{
		Store: s.store, Log: s.log, Now: s.clock.Now, Open: f.beside(), Sealed: f.marks.Sealed, Root: f.keysRoot(), Timeout: c.Timeout,
		View:       f.observer.View,
		Pace:       proving.Pace{Every: v.Every, Rate: v.Rate, Membership: v.AssumeMembership},
		SealedIn:   fabric.Facts().Name(),
		Topology:   func(ctx context.Context) (*topospec.Spec, error) { return s.declared.Declared(ctx, s.inUse.Core()) },
		Configured: func() *topospec.Spec { return s.inUse.Core().Topology.Spec },
		Remedy: remedy.New(remedy.Options{
			Store: s.store, Log: s.log, Now: s.clock.Now, Policy: v.Drift.Policy(), Settled: f.settled, Correct: f.marks.Suspect, Fencer: f.fencer,
		}),
	}
	core := s.inUse.Core()
	if o.Prefix = core.Prefix; c.SA.Enabled {
		o.Ask = f.asker.Ask
	}
	return proving.New(o)
}

// recorder returns what records how the fabric changes.
func (f *fabricRole) recorder() *recording.Keeper {
	s := f.service
	return recording.New(recording.Options{
		History: s.config.History, StateDir: s.config.Path(s.config.StateDir), Store: s.store, Observer: f.observer, Proof: f.proves.Past, Now: s.clock.Now, Log: s.log,
	})
}

// inquirer returns what has diagnostic tools read devices, by a port of its own.
func (f *fabricRole) inquirer() *inquiring.Service {
	s := f.service
	return inquiring.New(inquiring.Options{
		Store: s.store, Log: s.log, Now: s.clock.Now, View: f.observer.View, Sealed: f.marks.Sealed, Root: f.keysRoot(), Timeout: s.config.Fabric.Timeout,
		Open: f.beside(fabricport.Performance()),
	})
}

// whileLeading does what belongs to leading beside the Subnet Manager, until ctx ends.
func (f *fabricRole) whileLeading(ctx context.Context) {
	var both sync.WaitGroup
	if f.counters != nil {
		both.Go(func() { f.counters.Keep(ctx) })
	}
	both.Go(func() { f.records.Keep(ctx) })
	(&proving.Keeper{Prover: f.proves, Settled: f.settled}).Keep(ctx)
	both.Wait()
	<-ctx.Done()
	f.asks.Close()
}

// beside returns what attaches to the port, beside the Subnet Manager: for SMPs, and for the classes of agents.
func (f *fabricRole) beside(agents ...umad.Agent) func(context.Context) (transport.Port, error) {
	c := &f.service.config.Fabric
	return func(ctx context.Context) (transport.Port, error) {
		ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
		defer cancel()
		return fabricport.Attach(ctx, c.Port, c.Timeout, agents...)
	}
}

// keysRoot returns what opens the sealed M_Keys of devices, nil if they get none.
func (f *fabricRole) keysRoot() func() (vault.Root, error) {
	s := f.service
	if !s.config.Fabric.Keys.ManagesMKeys() {
		return nil
	}
	return func() (vault.Root, error) { return s.config.Fabric.Keys.OpenRoot(s.config.Path) }
}

// settled reports whether the Subnet Manager here is master, and has discovered and settled the fabric as records want it.
func (f *fabricRole) settled() bool {
	v, err := f.observer.View()
	return err == nil && v.State == ib.SMMaster && v.Intent && v.Settled
}

// profiler returns what compares the installation with security profiles.
func (s *service) profiler() *posture.Collector {
	o := posture.Options{Store: s.store, Now: s.clock.Now, Anchors: s.anchors.States, Every: s.config.Audit.Every}
	if f := s.fabric; f != nil {
		o.Manager = &posture.Manager{
			Core: s.inUse.Core, View: f.observer.View, Administration: f.answers.InUse,
			SAKey: func() (bool, error) {
				state, err := f.observer.SA(context.Background())
				return err == nil && state.KeyEpoch > 0, err
			},
			Standing: f.proves.Standing,
		}
	}
	return posture.New(o)
}

// candidacy returns the candidate, nil without one.
func (s *service) candidacy() leadership.Candidate {
	if s.candidate == nil {
		return nil // not a typed nil
	}
	return s.candidate
}

// watch serves what is seen of the fabric on this machine, and takes removals there, in goroutines of group.
func (f *fabricRole) watch(ctx context.Context, group *errgroup.Group) error {
	if f == nil {
		return nil
	}
	s := f.service
	policy := s.parts.Policy
	if policy == nil {
		policy = attest.DefaultPolicy() // without the api role; removals judge no evidence
	}
	recorder := admission.New(admission.Options{
		Store: s.store, Policy: policy, Log: s.log, Now: s.clock.Now, Brake: admission.BrakeLimits(s.config.Admission.Brake),
	})
	f.settler = &settle.Settler{Owed: f.owed, Store: s.store, Recorder: recorder, Log: s.log, Waits: func(detail string) { s.status.Set("journal", detail) }}
	f.fencer.Admission = recorder
	acts := func() bool { return leadership.MayWrite(s.candidacy()) }
	remover := removals.New(removals.Options{Admission: recorder, Owed: f.owed, Link: f.link.Load, Mark: f.marks.MarkHealth, Acts: acts, Log: s.log})
	f.fencer.Removals = remover
	w, err := watch.Open(s.config.Fabric.Watch, s.config.Path, f.observer, nil, remover, s.log)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, w.Close)
	w.Serve(ctx, group)
	return nil
}

// run offers the store what it is owed and runs the Subnet Manager, in goroutines of group.
func (f *fabricRole) run(ctx context.Context, group *errgroup.Group) {
	if f == nil {
		return
	}
	s := f.service
	f.answers.Awaits = true
	f.running = smrole.New(smrole.Options{
		Config: s.config, InUse: s.inUse, Store: s.store, Log: s.log, Now: s.clock.Now,
		Open: func(ctx context.Context, core *sm.Config) (transport.Port, error) {
			return fabricport.Open(ctx, s.config.Fabric.Port, s.config.Fabric.Timeout, fabricport.Agents(core))
		},
		State: f.state, Keys: func(detail string) { s.status.Set("keys", detail) },
		Link: f.link, Observer: f.observer, Marks: f.marks, Owed: f.owed, Declared: s.declared, Administration: f.answers, Asker: &f.asker,
		Candidate: s.candidacy(), Name: s.name, Hurry: hurryGarbage, Beside: f.whileLeading,
	})
	f.running.Begin(ctx)
	if err := f.settler.Once(ctx); err != nil { // removals win, from the first intent on
		f.settler.Refused(err)
	}
	group.Go(func() error { f.settler.Run(ctx); return nil })
	group.Go(func() error { return f.running.Run(ctx) })
}

// reload reads the configuration of the Subnet Manager again.
func (f *fabricRole) reload(ctx context.Context) error {
	if f == nil {
		return nil
	}
	return f.running.Reconfigure(ctx)
}

// alive is what the watchdog asks: does the subnet manager, where it is attached, take its inputs?
func (f *fabricRole) alive(ctx context.Context) error {
	if f == nil {
		return nil
	}
	return f.marks.Alive(ctx)
}
