package main

import (
	"cmp"
	"context"
	"time"

	"portcullis/api/fabric"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/readiness"
)

// fabricState sets the obstacle to managing the fabric, by what the subnet manager shows; "" for none. It reports whether
// that changed.
func (s *service) fabricState(detail string) bool {
	changed := s.status.Set(readiness.SM, detail)
	if s.config.Fabric.SA.Enabled {
		s.status.Set(readiness.SA, detail)
	}
	return changed
}

// sighted ends what was said of the sight of this instance, which does not look at the
// fabric any more.
func (s *service) sighted() {
	s.status.SetAspect(readiness.SM, readiness.Sight, "")
	if s.config.Fabric.SA.Enabled {
		s.status.SetAspect(readiness.SA, readiness.Sight, "")
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
		s.status.SetAspect(readiness.SA, readiness.Sight, unreached)
	}
	if !s.status.SetAspect(readiness.SM, readiness.Sight, detail) {
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
