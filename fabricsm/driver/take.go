package driver

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// take steps in packets that were received and sifted: answers to this manager first, so
// that no flood delays them.
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

// takeAnswer takes an answer to a request of this manager, and reports whether the packet
// needs no more work.
func (l *loop) takeAnswer(p *transport.Packet) bool {
	if b := l.owner(p); b != nil {
		b.take(p)
		return true
	}
	if !isAnswer(p) {
		return p.Undelivered // a TrapRepress or an answer that was not delivered
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

// isAnswer reports whether a packet is an answer to a request, or a request that came back.
func isAnswer(p *transport.Packet) bool {
	return p.MAD.IsSMP() && (p.Undelivered || p.MAD.Method() == mad.MethodGetResp)
}
