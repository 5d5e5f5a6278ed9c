package testbed

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// KeyManager distributes the keys of management classes; *keymgr.Manager is one.
type KeyManager interface {
	Step(now time.Time, in keymgr.Input) keymgr.Output
}

// gmpQP is the queue pair of general management.
const gmpQP = 1

// classKeys is the manager of the keys of classes beside the core. Its requests are
// GMPs, those of the core SMPs, so neither takes the other's answers.
type classKeys struct {
	manager KeyManager // nil: there is none
	status  *keymgr.Status
	wake    time.Time
}

// startKeys begins the manager of the keys of classes, if any are configured.
func (s *Stage) startKeys(facts []sm.Fact) {
	if !s.SM.ClassKeys.On() {
		return
	}
	if s.newKeys != nil {
		s.keys.manager = s.newKeys(s.SM.ClassKeys, s.core)
	} else {
		s.keys.manager = keymgr.New(s.SM.ClassKeys, s.core)
	}
	s.StepKeys(&keymgr.Started{Facts: facts})
}

// StepKeys passes an input to the manager of the keys of classes at once, and executes its output. Without a manager
// nothing happens.
func (s *Stage) StepKeys(in keymgr.Input) {
	core, m := s.core, s.keys.manager
	if m == nil {
		return
	}
	out := m.Step(s.now, in)
	s.save(out.Save)
	for _, e := range out.Events {
		s.events = append(s.events, Happened{s.Now(), e})
	}
	if out.Status != nil {
		s.keys.status = out.Status
	}
	s.keys.wake = out.Wake
	judged := slices.Clone(out.Judged)
	for i := range out.Answer {
		a := &out.Answer[i]
		s.transmit(transport.Packet{MAD: a.MAD, LID: a.LID, QP: gmpQP})
	}
	for i := range out.Send {
		if s.send(&out.Send[i], ofKeys); s.core != core {
			return // crashed on the way
		}
	}
	for i := range judged { // last: the core may have a view, which steps the manager again
		s.Step(&judged[i])
	}
	if s.OnStep != nil {
		s.OnStep()
	}
}

// alsoKeys passes commands of operators for both managers of keys to the manager of the keys of classes.
func (s *Stage) alsoKeys(in sm.Input) {
	switch in := in.(type) {
	case *sm.ReleaseKeys:
		s.StepKeys(&keymgr.Release{})
	case *sm.ResumeKeys:
		s.StepKeys(&keymgr.Resume{})
	case *sm.RetireKey:
		s.StepKeys(&keymgr.Retire{GUID: in.GUID})
	default:
	}
}

// KeyStatus returns the last status of the manager of the keys of classes, or nil before the first.
func (s *Stage) KeyStatus() *keymgr.Status { return s.keys.status }

// rests reports whether the manager of the keys of classes has nothing left to do.
func (k *classKeys) rests() bool {
	return k.manager == nil || k.status != nil && !k.status.Busy
}

// isForKeys reports whether a packet is for the manager of the keys of classes.
func (s *Stage) isForKeys(p *transport.Packet) bool {
	if s.keys.manager == nil || p.MAD.IsSMP() {
		return false
	}
	_, ok := mad.LookupKeyClass(p.MAD.Class())
	return ok
}

// deliverToKeys passes a GMP to the manager of the keys of classes.
func (s *Stage) deliverToKeys(p *transport.Packet) {
	if p.Undelivered || p.MAD.Method() == mad.MethodGetResp {
		if r := s.out[p.MAD.TID()&tidMask]; r != nil && r.who == ofKeys && r.answeredBy(p) {
			s.end(r)
			s.replied(r, outcomeOf(p), &p.MAD)
		}
		return
	}
	if !s.admits(p) {
		return
	}
	core := s.core
	in := sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	s.Step(&in) // to be listed
	if s.core == core {
		got := keymgr.Received(in)
		s.StepKeys(&got)
	}
}
