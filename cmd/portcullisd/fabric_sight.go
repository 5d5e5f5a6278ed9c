package main

import (
	"cmp"
	"context"
	"time"

	"portcullis/api/fabric"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm"
)

// aspectSight is the aspect of the part sm that says whether it sees what it knows.
const aspectSight = "sight"

// sightConfig says when the subnet manager is partly blind.
type sightConfig struct {
	Nodes  int           `yaml:"nodes"`
	Share  float64       `yaml:"share"`
	Within time.Duration `yaml:"within"`
}

func defaultSight() sightConfig { return sightConfig(fabric.DefaultSightLimits()) }

func (s *sightConfig) check(k *checker, key string) {
	within(k, key+".nodes", s.Nodes, 1, 1_000_000)
	k.share(key+".share", s.Share)
	k.between(key+".within", s.Within, 10*time.Second, time.Hour)
}

func (s *sightConfig) flags(*smFlags, string) {}

func (s *sightConfig) apply(*sm.Config, func(string) string) error { return nil }

// share checks a share of something.
func (k *checker) share(key string, v float64) {
	if !(v > 0 && v <= 1) {
		k.wrong(key, "%v: want more than 0 and at most 1", v)
	}
}

// fabricState sets the obstacle to managing the fabric, by what the subnet manager shows; "" for none. It reports whether
// that changed.
func (s *service) fabricState(detail string) bool {
	changed := s.status.set(partSM, detail)
	if s.config.Fabric.SA.Enabled {
		s.status.set(partSA, detail)
	}
	return changed
}

// sighted ends what was said of the sight of this instance, which does not look at the
// fabric any more.
func (s *service) sighted() {
	s.status.setAspect(partSM, aspectSight, "")
	if s.config.Fabric.SA.Enabled {
		s.status.setAspect(partSA, aspectSight, "")
	}
}

// sight takes whether the subnet manager sees what it knows.
func (s *service) sight(seen v1.Sight) {
	if s.observer != nil {
		s.observer.OnSight(seen)
	}
	detail, unreached := "", ""
	if seen.Frozen() {
		detail = seen.State + ": " + seen.Reason
	}
	if seen.State == v1.SightBlind {
		unreached = "no host is in reach: " + seen.Reason
	}
	if s.config.Fabric.SA.Enabled {
		s.status.setAspect(partSA, aspectSight, unreached)
	}
	if !s.status.setAspect(partSM, aspectSight, detail) {
		return
	}
	if detail == "" {
		s.log.Info("the subnet manager sees the fabric that it knows", "nodes", seen.Known)
		return
	}
	s.log.Error("the subnet manager does not see the fabric that it knows; nothing is withdrawn by itself", "state", seen.State, "reason", seen.Reason,
		"since", seen.Since, "nodes", seen.Nodes, "of", seen.Known, "ports", seen.Ports, "hosts", seen.Hosts, "names", seen.Names, "more", seen.More)
}

// lostAdapter records that the adapter cannot be used.
func (s *service) lostAdapter(ctx context.Context, reason string) {
	reason = cmp.Or(reason, "the adapter is gone")
	if err := fabric.LoseAdapter(ctx, s.store, reason, time.Now().UTC().Round(0)); err != nil {
		s.log.Error("that the subnet manager is blind was not recorded", "error", err)
	}
}
