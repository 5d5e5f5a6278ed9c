package driver

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// take steps in what was received, and sifted: what answers ourselves first, so that no
// flood holds it up.
func (l *loop) take(buf []transport.Packet) {
	l.now = time.Now()
	l.later = l.later[:0]
	for i := range buf {
		if !l.takeAnswer(&buf[i]) {
			l.later = append(l.later, i)
		}
	}
	for _, i := range l.later {
		p := &buf[i]
		l.trap = sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP}
		if l.sa != nil {
			l.sa.forward(&l.trap)
		}
		l.step(&l.trap)
	}
}

// takeAnswer takes what ends a request of ours, and reports whether nothing is left to do
// with a packet.
func (l *loop) takeAnswer(p *transport.Packet) bool {
	switch {
	case l.ofKeys(p):
		l.takeKeys(p)
		return true
	case l.ofCounters(p):
		l.takeCounters(p)
		return true
	case !isAnswer(p):
		return p.Undelivered // a TrapRepress or an answer that nobody took
	}
	switch id, v := l.out.end(p); {
	case v == taken:
		l.reply.ID, l.reply.Outcome = id, sm.Answered
		if p.Undelivered {
			l.reply.Outcome = sm.Undelivered
		}
		l.reply.MAD = p.MAD
		l.step(&l.reply)
		return true
	case v == late || p.Undelivered:
		return true // it was accounted for
	default:
		return !l.admits(p) // to nothing that was asked
	}
}

// isAnswer tells answers to requests, and requests come back, from what others
// ask.
func isAnswer(p *transport.Packet) bool {
	return p.MAD.IsSMP() && (p.Undelivered || p.MAD.Method() == mad.MethodGetResp)
}
