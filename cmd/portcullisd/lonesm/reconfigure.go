package lonesm

import (
	"context"
	"io"

	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
)

// reconfigure reads options and configuration again. With an error in them nothing
// changes.
func (s *manager) reconfigure(ctx context.Context) {
	o, err := config.ParseSM(s.args, io.Discard, io.Discard)
	var core sm.Config
	var answers sa.Config
	if err == nil {
		core, err = o.Config.Fabric.Core(o.Config.Path)
	}
	if err == nil && s.answers != nil {
		answers, err = o.Config.Fabric.Administration(&core, o.Config.Path)
	}
	if err != nil {
		s.log.Error("reload: the configuration that was in use stays in use", "error", err)
		return
	}
	r := config.Compare("fabric.", &s.o.Config.Fabric, &o.Config.Fabric, &s.core, &core)
	inputs.ApplyPolicy(ctx, &r, s.marks, s.log, o.File)
	if s.answers != nil {
		s.administration.Reconfigure(&o.Config.Fabric, &answers, &core, s.log)
	}
	topology := inputs.ApplyTopology(ctx, s.marks, s.log, &s.core.Topology, &core.Topology)
	s.core = config.WithPolicy(s.core, &r)
	s.core.Topology = topology
}
