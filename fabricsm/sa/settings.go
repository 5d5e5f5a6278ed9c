package sa

import (
	"errors"
	"maps"
	"time"

	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

// Settings are the parts of a Config that may change while an agent runs.
type Settings struct {
	Trust       trust.Options
	ServiceKeys *trust.ServiceKeys
	Paths       path.Config
	Rules       portindex.Rules
	Fixed       []group.Fixed
	Aliases     alias.Inventory // nil: no port may have an alias
	Limiter     limiter.Config
}

// Settings returns those of a configuration.
func (c *Config) Settings() Settings {
	return Settings{Trust: c.Trust, ServiceKeys: c.ServiceKeys, Paths: c.Paths, Rules: c.Rules, Fixed: c.Fixed, Aliases: c.Aliases.Inventory, Limiter: c.Limiter}
}

// Configure changes settings. After an error nothing is changed. The goroutine that calls Sight calls it, and has to call
// Sight again for the newest view: older sights follow the old rules.
func (a *Agent) Configure(now time.Time, s *Settings, out *Output) error {
	if err := errors.Join(s.Trust.Check(), s.Limiter.Check()); err != nil {
		return err
	}
	paths := s.Paths
	paths.Prefix = a.cfg.Subnet
	engine, err := path.New(paths)
	if err != nil {
		return err
	}
	if err := a.guard.Configure(s.Trust); err != nil {
		return err
	}
	if err := a.limit(&s.Limiter); err != nil {
		return err
	}
	a.settled = true
	a.out = out
	if was := &a.cfg.Rules; was.Policy != s.Rules.Policy || was.Seed != s.Rules.Seed ||
		s.Rules.Policy != nil && !maps.Equal(was.Partitions, s.Rules.Partitions) {
		a.ruling++ // books are made again from the beginning
	}
	a.cfg.Trust, a.cfg.ServiceKeys, a.cfg.Paths, a.cfg.Rules, a.cfg.Fixed = s.Trust, s.ServiceKeys, paths, s.Rules, s.Fixed
	a.paths = engine
	a.groups.SetTrust(s.Trust)
	a.services.SetTrust(s.Trust, namesOf(s.ServiceKeys))
	a.subs.SetTrust(s.Trust)
	a.aliases.SetUntrusted(!s.Trust.Model || s.Trust.AliasesUntrusted)
	a.cfg.Aliases.Inventory = s.Aliases
	if a.serving {
		fixed := a.groups.SetFixed(s.Fixed)
		a.grouped(now, &fixed)
		taken := a.aliases.SetInventory(s.Aliases)
		a.given(&taken)
		a.turnKeys(now)
	}
	return nil
}

// limit takes limits that are others than before. Front takes them with the next Sight.
func (a *Agent) limit(c *limiter.Config) error {
	if a.cfg.Limiter == *c {
		return nil
	}
	a.cfg.Limiter = *c
	return errors.Join(a.limiter.Configure(*c), a.work.Configure(c.Work), a.changes.Configure(limiter.WorkConfig{Node: c.Changes}))
}

// namesOf returns a non-nil map, as service.Config requires.
func namesOf(k *trust.ServiceKeys) *trust.ServiceKeys {
	if k == nil {
		return &trust.ServiceKeys{}
	}
	return k
}
