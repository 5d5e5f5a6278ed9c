package driver

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// classKeys runs the manager of the keys of classes beside the core, over the same
// port. Its requests are GMPs and have transactions of their own; those of the core
// are SMPs, so neither takes the other's answers.
type classKeys struct {
	manager *keymgr.Manager // nil: there is none
	out     timeouts
	reply   keymgr.Reply
	got     keymgr.Received
	seen    keymgr.Seen
	did     keymgr.Output // of the last step
	wake    time.Time
}

// gmpQP is the queue pair of general management.
const gmpQP = 1

func (l *loop) initKeys() {
	if !l.o.Core.ClassKeys.On() {
		return
	}
	l.keys.manager = keymgr.New(l.o.Core.ClassKeys, l.core)
	l.keys.out.init(l.o.Timeout)
}

// ofKeys reports whether a packet is for the key manager.
func (l *loop) ofKeys(p *transport.Packet) bool {
	if l.keys.manager == nil || p.MAD.IsSMP() {
		return false
	}
	_, ok := mad.LookupKeyClass(p.MAD.Class())
	return ok
}

// takeKeys steps in a GMP of a class with keys.
func (l *loop) takeKeys(p *transport.Packet) {
	k := &l.keys
	if p.Undelivered || p.MAD.Method() == mad.MethodGetResp {
		if id, v := k.out.end(p); v == taken {
			k.reply.ID, k.reply.Outcome = id, sm.Answered
			if p.Undelivered {
				k.reply.Outcome = sm.Undelivered
			}
			k.reply.MAD = p.MAD
			l.stepKeys(&k.reply)
		}
		return
	}
	if !l.admits(p) {
		return
	}
	l.trap = sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	l.step(&l.trap) // to be listed
	k.got = keymgr.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	l.stepKeys(&k.got)
}

// expireKeys steps in requests that were not answered in time, and the wake.
func (l *loop) expireKeys() {
	k := &l.keys
	if k.manager == nil {
		return
	}
	for {
		id, ok := k.out.expired(l.now)
		if !ok {
			break
		}
		k.reply.ID, k.reply.Outcome = id, sm.TimedOut
		l.stepKeys(&k.reply)
	}
	if !k.wake.IsZero() && !l.now.Before(k.wake) {
		l.stepKeys(&keymgr.Woken{})
	}
}

// next returns the earlier of at and the time at which the next work is due.
func (k *classKeys) next(at time.Time) time.Time {
	if k.manager == nil {
		return at
	}
	if due, ok := k.out.next(); ok && due.Before(at) {
		at = due
	}
	if !k.wake.IsZero() && k.wake.Before(at) {
		at = k.wake
	}
	return at
}

// stepKeys advances the key manager and gathers what it wants done.
func (l *loop) stepKeys(in keymgr.Input) {
	k := &l.keys
	if k.manager == nil {
		return
	}
	out := &k.did
	*out = k.manager.Step(l.now, in)
	l.keep(out.Save)
	for i := range out.Answer {
		a := &out.Answer[i]
		l.send = append(l.send, transport.Packet{MAD: a.MAD, LID: a.LID, QP: gmpQP})
	}
	for i := range out.Send {
		r := &out.Send[i]
		l.send = append(l.send, transport.Packet{MAD: r.MAD, LID: r.LID, QP: gmpQP})
		k.out.begin(r, &l.send[len(l.send)-1].MAD)
	}
	k.wake = out.Wake
	for _, e := range out.Events {
		l.tell(e)
	}
	if out.Status != nil && l.o.OnKeys != nil {
		l.o.OnKeys(out.Status)
	}
	for _, j := range slices.Clone(out.Judged) { // last: the core may have a view, which steps the manager again
		l.step(&j)
	}
}
