package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"portcullis/api/fabric/seen"
	"portcullis/api/rma"
	"portcullis/api/store"
	"portcullis/api/topology"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// startTopospec makes what keeps the revisions of the declared topology, and has the
// subnet manager follow it. Without the revision in force none is started: it would
// open what is closed.
func (s *service) startTopospec(ctx context.Context, group *errgroup.Group) error {
	o := topology.Options{Store: s.store, Log: s.log, Now: s.clock.Now, FromFile: s.topologyFromFile, Rules: s.config.Fabric.Topology.Rules()}
	if s.observer != nil {
		o.Problem = func(problem string) { s.status.Set("topology", problem) }
		o.Look, o.Owners = func() (*topology.Sight, error) { return sight(s.observer) }, owners{s.observer}
	}
	s.topospec = topology.New(o)
	if s.observer == nil {
		return nil
	}
	_, fromFile := s.topologyFromFile()
	var first topology.Wanted
	read := func() (err error) { first, err = s.topospec.Wanted(ctx); return err }
	err := read()
	if err != nil && !fromFile {
		err = s.answered(ctx, "to read the revision of the topology that is in force", read)
	}
	switch {
	case err != nil && fromFile:
		s.log.Error("revisions of the topology cannot be read; fabric.topology.file is in force", "error", err)
	case err != nil:
		return command.Hint(fmt.Errorf("the subnet manager is not started: %w", err),
			"without it ports that are switched off would be opened: restore the state directory from a backup, or name the topology in fabric.topology.file")
	}
	s.declared.Store(&first)
	group.Go(func() error { return s.topospec.Run(ctx, first, s.putInForce) })
	return nil
}

// newRMA makes what replaces devices of the declared topology.
func (s *service) newRMA(proofs rma.Proofs, hosts rma.Hosts) *rma.Service {
	o := rma.Options{Store: s.store, Log: s.log, Now: s.clock.Now, Revisions: s.topospec, Proofs: proofs, Hosts: hosts}
	if s.observer != nil {
		o.Look = func() (*topology.Sight, error) { return sight(s.observer) }
	}
	return rma.New(o)
}

// topologyFromFile reports whether the configuration names the topology in force, and in which mode.
func (s *service) topologyFromFile() (topospec.Mode, bool) {
	t := s.core().Topology
	return t.Mode, t.Spec != nil
}

// declaredSwitches returns the ports of each switch of the topology in force, nil without one.
func (s *service) declaredSwitches(ctx context.Context, r store.Reader) (map[ib.GUID]int, error) {
	if spec := s.core().Topology.Spec; spec != nil {
		return topology.Switches(spec), nil
	}
	return s.topospec.DeclaredSwitches(ctx, r)
}

// sight returns the fabric as the subnet manager showed it last.
func sight(o *seen.Observer) (*topology.Sight, error) {
	v, err := o.View()
	if err != nil {
		return nil, err
	}
	return &topology.Sight{
		At: v.Time, Fabric: v.Fabric, SM: v.Fabric.PortByGUID(v.GUID), Placed: v.Topology,
		Complete: v.State == ib.SMMaster && v.Progress.Phase != sm.Discovery,
	}, nil
}

// owners says whose a port is.
type owners struct{ o *seen.Observer }

// Owner implements simulate.Directory.
func (w owners) Owner(at ib.Place, node ib.GUID) (host, tenant string) { return w.o.OwnerAt(at, node) }

// putInForce passes the subnet manager what is wanted. Where none is attached, it begins with what is wanted then.
func (s *service) putInForce(ctx context.Context, w topology.Wanted) (taken bool) {
	ctx, cancel := context.WithTimeout(ctx, inputs.MaxWait)
	defer cancel()
	err := s.marks.Pass(ctx, topologySet(&w))
	if err == nil {
		s.declared.Store(&w)
	}
	return err == nil
}

func topologySet(w *topology.Wanted) *sm.TopologySet {
	by := w.By
	if by == "" {
		by = "service"
	}
	return &sm.TopologySet{Spec: w.Spec, Mode: w.Mode, By: by, Back: w.Back}
}

// withDeclared returns a configuration with the topology that is wanted in force. If it cannot be read, the one last in
// force is used: nothing is opened by that.
func (s *service) withDeclared(ctx context.Context, c sm.Config) sm.Config {
	if c.Topology.Spec == nil {
		w := s.wanted(ctx)
		c.Topology = sm.TopologyConfig{Spec: w.Spec, Mode: w.Mode, Back: w.Back}
	}
	return c
}

func (s *service) wanted(ctx context.Context) topology.Wanted {
	w, err := s.topospec.Wanted(ctx)
	if err == nil {
		s.declared.Store(&w)
		return w
	}
	s.log.Error("the declared topology cannot be read; what was in force stays", "error", err)
	return *s.declared.Load()
}
