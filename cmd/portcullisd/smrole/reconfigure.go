package smrole

import (
	"context"

	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inputs"
)

// SIGHUP changes these settings of the Subnet Manager: port policies, quality of service, rules of health, the list of
// allowed Subnet Managers, the declared topology, and routing engines with the files they read. In subnet administration it
// changes which requesters are trusted, which paths and alias GUIDs are returned, groups of partitions, and limits. The
// rest is reported to need a restart.

// Reconfigure reads the configuration of the service again. With an error in it
// nothing changes.
func (r *Role) Reconfigure(ctx context.Context) error {
	c, err := config.Load(r.Config.File)
	if err != nil {
		return err
	}
	next, err := c.Fabric.Core(c.Path)
	if err != nil {
		return err
	}
	core := r.InUse.Core()
	answers, err := c.Fabric.Administration(&next, c.Path)
	if err != nil {
		return err
	}
	change := config.Compare("", r.Config, c, &core, &next)
	was := r.Declared.With(ctx, core).Topology
	core = config.WithPolicy(core, &change)
	r.InUse.Set(core)
	r.Declared.SetRules(c.Fabric.Topology.Rules())
	inputs.ApplyPolicy(ctx, &change, r.Marks, r.Log, r.Config.File)
	r.Administration.Reconfigure(&c.Fabric, &answers, &next, r.Log)
	now := r.Declared.With(ctx, next).Topology
	if inputs.ApplyTopology(ctx, r.Marks, r.Log, &was, &now) == now {
		core.Topology = next.Topology
		r.InUse.Set(core)
	}
	return nil
}
