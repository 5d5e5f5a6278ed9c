package main

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
)

// SIGHUP changes these settings of the Subnet Manager: port policies, quality of service, rules of health, the list of
// allowed Subnet Managers, the declared topology, and routing engines with the files they read. In subnet administration it
// changes which requesters are trusted, which paths and alias GUIDs are returned, groups of partitions, and limits. The
// rest is reported to need a restart.

// liveKey reports a key of the configuration that may change while the service
// runs.
func liveKey(key string) bool {
	if key == "fabric.ports.lmc_port0" {
		return false
	}
	for _, live := range []string{"fabric.ports.", "fabric.qos.", "fabric.health.", "fabric.routing.", "fabric.topology.", "fabric.sa.sa_", "fabric.sa.limits."} {
		if strings.HasPrefix(key, live) {
			return true
		}
	}
	return slices.Contains([]string{
		"fabric.election.allowed_sms", "fabric.sa.service_name2key_map_file", "fabric.sa.prefix_routes_file", "fabric.sa.options",
		"fabric.sa.alias_guids_file", "fabric.sa.ipoib", "fabric.sa.ipoib_mtu",
	}, key)
}

// changedKeys returns the keys whose values differ between two structs of one type.
func changedKeys(prefix string, a, b reflect.Value) (keys []string) {
	named := false
	for f, v := range a.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		named = true
		other := b.FieldByIndex(f.Index)
		if v.Kind() == reflect.Struct {
			if below := changedKeys(prefix+name+".", v, other); below != nil {
				keys = append(keys, below...)
				continue
			}
		}
		if v.Kind() != reflect.Struct || !hasKeys(v.Type()) {
			if !reflect.DeepEqual(v.Interface(), other.Interface()) {
				keys = append(keys, prefix+name)
			}
		}
	}
	if !named {
		return nil
	}
	return keys
}

func hasKeys(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.Tag.Get("yaml") != "" {
			return true
		}
	}
	return false
}

// reconfigured is what a configuration that was read again changes.
type reconfigured struct {
	policy  sm.Policy
	engines []route.Engine // in force from now on
	live    []string       // keys that are in force from now on
	restart []string       // keys that are not
}

// compare finds what to change. Files that engines read may have changed without
// any key; those of quality of service are in what was made of them.
func compare[T any](prefix string, was, now *T, core, next *sm.Config) (r reconfigured) {
	for _, key := range changedKeys(prefix, reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()) {
		if liveKey(key) {
			r.live = append(r.live, key)
		} else {
			r.restart = append(r.restart, key)
		}
	}
	r.policy, r.engines = next.Policy(), next.Engines
	if reflect.DeepEqual(core.Engines, next.Engines) {
		r.policy.Engines = nil
	} else if r.engines == nil {
		r.policy.Engines = sm.DefaultConfig().Engines
	}
	return r
}

// apply passes the Subnet Manager its new policy, and reports what waits for a restart.
func (r *reconfigured) apply(ctx context.Context, k *marks, log *slog.Logger, file string) {
	ctx, cancel := context.WithTimeout(ctx, maxMarkWait)
	defer cancel()
	for _, key := range r.restart {
		log.Warn(key+" changed: restart to apply", "file", file)
	}
	if err := k.give(ctx, &sm.PolicySet{Policy: r.policy}); err != nil {
		log.Warn("the subnet manager takes the configuration when it attaches", "reason", err)
		return
	}
	log.Warn("the configuration was read again", "file", file, "changed", r.live, "engines_anew", r.policy.Engines != nil)
}

// withPolicy returns a configuration with another policy.
func withPolicy(c sm.Config, r *reconfigured) sm.Config {
	p := &r.policy
	lmc := c.Ports.LMCPort0
	c.Ports, c.QoS, c.Health, c.Election.Allowed, c.Engines = p.Ports, p.QoS, p.Health, p.Allowed, r.engines
	c.Ports.LMCPort0 = lmc
	return c
}

// reconfigure reads options and configuration again. With an error in them nothing
// changes.
func (s *loneSM) reconfigure(ctx context.Context) {
	o, err := parseSM(s.args, io.Discard, io.Discard)
	var core sm.Config
	var answers sa.Config
	if err == nil {
		core, err = o.config.Fabric.core(o.config.path)
	}
	if err == nil && s.answers != nil {
		answers, err = o.config.Fabric.administration(&core, o.config.path)
	}
	if err != nil {
		s.log.Error("reload: the configuration that was in use stays in use", "error", err)
		return
	}
	r := compare("fabric.", &s.o.config.Fabric, &o.config.Fabric, &s.core, &core)
	r.apply(ctx, s.marks, s.log, o.file)
	if s.answers != nil {
		s.administration.reconfigure(&o.config.Fabric, &answers, &core, s.log)
	}
	topology := newTopology(ctx, s.marks, s.log, &s.core.Topology, &core.Topology)
	s.core = withPolicy(s.core, &r)
	s.core.Topology = topology
}

// reconfigure reads the configuration of the service again. With an error in it
// nothing changes.
func (s *service) reconfigure(ctx context.Context) error {
	if !s.config.has(roleSM) {
		return nil
	}
	c, err := loadConfig(s.config.file)
	if err != nil {
		return err
	}
	next, err := c.Fabric.core(c.path)
	if err != nil {
		return err
	}
	core := s.core()
	answers, err := c.Fabric.administration(&next, c.path)
	if err != nil {
		return err
	}
	r := compare("", s.config, c, &core, &next)
	was := s.withDeclared(ctx, core).Topology
	core = withPolicy(core, &r)
	s.current.Store(&core)
	s.topospec.SetRules(c.Fabric.Topology.rules())
	r.apply(ctx, s.marks, s.log, s.config.file)
	s.administration.reconfigure(&c.Fabric, &answers, &next, s.log)
	now := s.withDeclared(ctx, next).Topology
	if newTopology(ctx, s.marks, s.log, &was, &now) == now {
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
	return s.parts.core
}
