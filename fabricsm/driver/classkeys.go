package driver

import (
	"slices"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// classKeys is the manager of the keys of classes.
type classKeys struct {
	l       *loop
	run     *beside
	manager *keymgr.Manager
	got     keymgr.Received
	seen    keymgr.Seen
	did     keymgr.Output // of the last step
}

func (l *loop) initKeys() {
	if !l.o.Core.ClassKeys.On() {
		return
	}
	l.keys = &classKeys{l: l, manager: keymgr.New(l.o.Core.ClassKeys, l.core)}
	l.keys.run = newBeside(l.keys, l.o.Timeout)
	l.besides = append(l.besides, l.keys.run)
}

func (k *classKeys) owns(p *transport.Packet) bool {
	_, ok := mad.LookupKeyClass(p.MAD.Class())
	return ok
}

func (k *classKeys) received(p *transport.Packet) {
	l := k.l
	if !l.admits(p) {
		return
	}
	l.trap = sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	l.step(&l.trap) // to be listed
	k.got = keymgr.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
	k.step(&k.got)
}

func (k *classKeys) replied(r *sm.Reply) { k.step((*keymgr.Reply)(r)) }

func (k *classKeys) woken() { k.step(&keymgr.Woken{}) }

func (k *classKeys) shown(v *sm.View) {
	k.seen.View = v
	k.step(&k.seen)
}

// step advances the manager and gathers the work that it requests. Without a manager nothing happens.
func (k *classKeys) step(in keymgr.Input) {
	if k == nil {
		return
	}
	l, out := k.l, &k.did
	*out = k.manager.Step(l.now, in)
	l.keep(out.Save)
	for i := range out.Answer {
		a := &out.Answer[i]
		l.send = append(l.send, transport.Packet{MAD: a.MAD, LID: a.LID, QP: gmpQP})
	}
	l.request(k.run, out.Send)
	k.run.wake = out.Wake
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
