package driver

import (
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// mostAnswers is how many answers wait to be sent, of each of two kinds. A request without an answer is sent again by its
// requester.
const mostAnswers = 512

// answers are responses to requests of others that wait while the wire has no room. They
// are sent after all requests of this manager, and those to subnet managers with which we work go before others. When
// there are too many the oldest is dropped: its timeout at the requester ends first.
type answers struct {
	managers, others waiting
	dropped          uint64
}

// waiting is a ring.
type waiting struct {
	ring []transport.Packet
	head int
	n    int
}

// add has an answer wait.
func (a *answers) add(r *sm.Response) {
	to := &a.others
	if r.Manager {
		to = &a.managers
	}
	if to.n == mostAnswers {
		to.head = (to.head + 1) % mostAnswers
		to.n--
		a.dropped++
	}
	if to.ring == nil {
		to.ring = make([]transport.Packet, mostAnswers)
	}
	to.ring[(to.head+to.n)%mostAnswers] = transport.Packet{MAD: r.MAD, LID: r.LID, QP: r.QP}
	to.n++
}

// atOnce is how many answers are sent before requests of this manager are sent again.
const atOnce = 64

// take appends the answers that are sent next to a slice.
func (a *answers) take(to []transport.Packet) []transport.Packet {
	for _, w := range []*waiting{&a.managers, &a.others} {
		for ; w.n > 0 && len(to) < atOnce; w.n-- {
			to = append(to, w.ring[w.head])
			w.head = (w.head + 1) % mostAnswers
		}
	}
	return to
}

// clear drops all.
func (a *answers) clear() { a.managers.n, a.others.n = 0, 0 }
