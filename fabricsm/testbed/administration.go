package testbed

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// administration is subnet administration beside the core.
type administration struct {
	agent *sa.Agent // nil: there is none
	sight *sa.Sight
	out   sa.Output
}

// Administration returns subnet administration, nil while it is not running.
func (s *Stage) Administration() *sa.Agent { return s.sa.agent }

// startAdministration starts subnet administration with the saved facts, if it is configured.
func (s *Stage) startAdministration() error {
	s.sa = administration{}
	if s.SA == nil {
		return nil
	}
	cfg := *s.SA
	cfg.Subnet = ib.DefaultPrefix
	if s.SM.Prefix != 0 {
		cfg.Subnet = s.SM.Prefix
	}
	var err error
	if s.sa.agent, err = sa.New(cfg); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := s.sa.agent.Restore(s.now, slices.Clone(s.facts), &s.sa.out); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	s.administer()
	return nil
}

// look passes a view to subnet administration.
func (s *Stage) look(v *sm.View) {
	if s.sa.agent == nil {
		s.front.Look(sa.SightAlone(v, limiter.DefaultConfig()))
		return
	}
	s.sa.sight = s.sa.agent.Sight(s.sa.sight, v)
	s.front.Look(s.sa.sight)
	s.sa.agent.Look(s.now, s.sa.sight, &s.sa.out)
	s.administer()
}

// Configure changes the settings of subnet administration.
func (s *Stage) Configure(to *sa.Settings) error {
	if err := s.sa.agent.Configure(s.now, to, &s.sa.out); err != nil {
		return err
	}
	if v := s.View(); v != nil {
		s.look(v)
	}
	s.administer()
	return nil
}

// isForAdministration reports whether a packet is for subnet administration.
func (s *Stage) isForAdministration(p *transport.Packet) bool { return s.sa.agent != nil && p.IsSA() }

func (s *Stage) deliverToAdministration(p *transport.Packet) {
	s.sa.agent.Take(s.now, p, &s.sa.out)
	s.administer()
}

// forward passes a trap to its subscribers.
func (s *Stage) forward(p *transport.Packet) {
	var n mad.Notice
	if s.sa.agent == nil || p.QP != 0 || p.MAD.Method() != mad.MethodTrap || p.MAD.Attr() != mad.AttrNotice || mad.Decode(p.MAD.Data(), &n) != nil {
		return
	}
	s.sa.agent.Forward(s.now, p.LID, &n, &s.sa.out)
	s.administer()
}

func (s *Stage) expireAdministration() {
	s.sa.agent.Expire(s.now, &s.sa.out)
	s.administer()
}

// administer executes the output of subnet administration, in order. Input for the core may lead to a view, and so to more
// output.
func (s *Stage) administer() {
	core := s.core
	o := s.sa.out
	s.sa.out = sa.Output{}
	for _, p := range o.Send {
		s.transmit(p)
	}
	s.save(o.Save)
	for _, p := range o.Held {
		s.transmit(p)
	}
	for _, e := range o.Events {
		s.events = append(s.events, Happened{s.Now(), e})
	}
	for _, in := range o.Tell {
		if s.core == core {
			s.Step(in)
		}
	}
}
