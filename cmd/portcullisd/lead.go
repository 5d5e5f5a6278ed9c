package main

import (
	"context"
	"time"

	"portcullis/api/instances"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/leadership"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// announceEvery is how often an instance looks whether its record is right.
const announceEvery = 10 * time.Minute

// startLeading makes this instance a candidate, if there can be others.
func (s *service) startLeading(ctx context.Context) error {
	if !s.config.Shared() {
		return nil
	}
	var err error
	if s.name, err = s.config.InstanceName(); err != nil {
		return err
	}
	announce := func() error {
		return s.answered(ctx, "to say how this instance is reached", func() error { return s.announce(ctx) })
	}
	if !s.config.Has(config.RoleSM) {
		return announce()
	}
	s.candidate = leader.New(leader.Options{
		Store: s.store, Role: leadership.Role, Instance: s.name, TTL: s.config.Lease, Log: s.log, OnChange: s.led,
	})
	return announce()
}

// announce writes how this instance is reached.
func (s *service) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
	defer cancel()
	return instances.Update(ctx, s.store, s.name, time.Now().UTC().Round(0), func(i *instances.Instance) {
		i.API, i.Pin, i.Manages = s.config.Advertised(), nil, s.config.Has(config.RoleSM)
		if s.parts.Cert != nil {
			i.Pin = s.parts.Cert.Pin()
		}
	})
}

// keepAnnounced keeps the record of this instance right until ctx ends.
func (s *service) keepAnnounced(ctx context.Context) error {
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.renewed:
		}
		if err := s.announce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("other instances may not find this one", "error", err)
		}
	}
}

// led takes how leadership stands.
func (s *service) led(now leader.State) {
	if !now.Leads {
		s.sighted()
	}
	switch {
	case now.Leads:
		s.fabricState("not attached yet")
	case now.Leader == "":
		s.fabricState("no instance leads as Subnet Manager, as far as this one knows")
	default:
		s.fabricState("")
	}
}

// manage is the sm role: it runs the subnet manager, where there are several instances
// while this one leads.
func (s *service) manage(ctx context.Context) error {
	if s.candidate == nil {
		return s.runFabric(ctx, nil)
	}
	s.fabricState("no instance leads as Subnet Manager, as far as this one knows")
	return s.candidate.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		s.link.Store(nil) // what it remembers is of an earlier term
		return s.runFabric(ctx, t)
	})
}

// yield has another instance lead, if there is one: this one cannot manage the fabric. For
// the time of rest it does not try to lead again.
func (s *service) yield(ctx context.Context, rest time.Duration, reason string) {
	if s.candidate == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Lease)
	defer cancel()
	if err := s.candidate.StepDown(ctx, rest); err != nil {
		s.log.Debug("no other instance leads in place of this one", "reason", err)
		return
	}
	s.log.Warn("another instance is to lead, since this one does not reach the fabric", "reason", reason)
}

// mayWrite reports whether this instance may write to the fabric now.
func (s *service) mayWrite() bool {
	if s.candidate == nil {
		return true
	}
	_, left := s.candidate.State()
	return left > 0
}

// blindFor is how long a leader may see nothing of the fabric before it yields. A cable that
// is put back at once is no reason to change leaders.
const blindFor = 2 * time.Second

// seesNothing returns why the leader sees nothing of the fabric, "" if it sees some of it, or is still to find out. The
// sight in the store may be that of an earlier leader.
func seesNothing(v *sm.View) string {
	own := v.Fabric.PortByGUID(v.GUID)
	switch {
	case own != topo.None && v.Fabric.Port(own).State == ib.PortDown:
		return "its own port has no link"
	case v.State == ib.SMMaster && v.Fabric.NumNodes() <= 1:
		return "nothing but its own adapter answers"
	default:
		return ""
	}
}

// look passes to yieldBlind what a view shows.
func (s *service) look(v *sm.View) {
	select {
	case <-s.blind: // that was not taken
	default:
	}
	select {
	case s.blind <- seesNothing(v):
	default:
	}
}

// yieldBlind has another instance lead when this one has seen nothing of the fabric for
// blindFor, until ctx ends.
func (s *service) yieldBlind(ctx context.Context, blind <-chan string) {
	var since <-chan time.Time
	reason := ""
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-blind:
			if now == "" {
				since = nil
			} else if reason = now; since == nil {
				since = time.After(blindFor)
			}
		case <-since:
			s.yield(ctx, time.Second, reason)
			since = time.After(blindFor) // where no other instance could lead
		}
	}
}

// succeed has the core of a term know the siblings, and whether it succeeds another
// instance than this one.
func (s *service) succeed(ctx context.Context, core *sm.Config, t *leader.Term) error {
	if t == nil {
		return nil
	}
	all, err := instances.List(ctx, s.store, time.Now())
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Port.Valid() && !i.Place.IsZero() {
			core.Siblings = append(core.Siblings, sm.Sibling{GUID: i.Port, Place: i.Place})
		}
	}
	core.MKey.Rotation.Succeeds = t.Epoch > 1
	return nil
}

// guardOf makes what the subnet manager records depend on a term; nil without one.
func guardOf(t *leader.Term) func(context.Context, *store.Tx) error {
	if t == nil {
		return nil
	}
	return t.Guard
}

// fenceOf makes what is sent depend on a term; nil without one.
func fenceOf(t *leader.Term) driver.Fence {
	if t == nil {
		return nil
	}
	return t
}

// attachedAt notes by which port this instance manages the fabric.
func (s *service) attachedAt(ctx context.Context, t *leader.Term) func(*sm.View) {
	var port ib.GUID
	var place ib.Place
	return func(v *sm.View) {
		if t == nil || v.Fabric == nil {
			return
		}
		s.look(v)
		if v.State != ib.SMMaster || !v.Settled {
			return
		}
		id := v.Fabric.PortByGUID(v.GUID)
		if id == topo.None || v.GUID == port && v.Fabric.PlaceOf(id) == place {
			return
		}
		port, place = v.GUID, v.Fabric.PlaceOf(id)
		at, by := place, port
		go func() {
			err := instances.Update(ctx, s.store, s.name, time.Now().UTC().Round(0), func(i *instances.Instance) { i.Port, i.Place = by, at })
			if err != nil && ctx.Err() == nil {
				s.log.Warn("where this instance is attached was not recorded; another one takes its port for a host's", "error", err)
			}
		}()
	}
}
