package main

import (
	"context"

	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/fabricsm/sm"
)

// SIGHUP changes these settings of the Subnet Manager: port policies, quality of service, rules of health, the list of
// allowed Subnet Managers, the declared topology, and routing engines with the files they read. In subnet administration it
// changes which requesters are trusted, which paths and alias GUIDs are returned, groups of partitions, and limits. The
// rest is reported to need a restart.

// reconfigure reads the configuration of the service again. With an error in it
// nothing changes.
func (s *service) reconfigure(ctx context.Context) error {
	if !s.config.Has(config.RoleSM) {
		return nil
	}
	c, err := config.Load(s.config.File)
	if err != nil {
		return err
	}
	next, err := c.Fabric.Core(c.Path)
	if err != nil {
		return err
	}
	core := s.core()
	answers, err := c.Fabric.Administration(&next, c.Path)
	if err != nil {
		return err
	}
	r := config.Compare("", s.config, c, &core, &next)
	was := s.withDeclared(ctx, core).Topology
	core = config.WithPolicy(core, &r)
	s.current.Store(&core)
	s.topospec.SetRules(c.Fabric.Topology.Rules())
	inputs.ApplyPolicy(ctx, &r, s.marks, s.log, s.config.File)
	s.administration.Reconfigure(&c.Fabric, &answers, &next, s.log)
	now := s.withDeclared(ctx, next).Topology
	if inputs.ApplyTopology(ctx, s.marks, s.log, &was, &now) == now {
		core.Topology = next.Topology
		s.current.Store(&core)
	}
	return nil
}

// core returns the configuration for the next attachment.
func (s *service) core() sm.Config {
	if c := s.current.Load(); c != nil {
		return *c
	}
	return s.parts.Core
}
