package driver

import (
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// timeouts knows which requests are out, what their answers must look like, and
// when each is given up. All wait equally long, so the order of sending is the
// order of expiry.
type timeouts struct {
	wait   time.Duration
	random *rand.ChaCha8
	known  transactions
	flight []flight
	free   []int32 // places in flight
	fifo   []sent
	head   int
	new    int // first entry that was not stamped yet

	managers int           // questions to other subnet managers that are out
	slack    time.Duration // how much longer all are waited for, in a flood
}

// flight is the record of a request that is out.
type flight struct {
	tid   transaction // 0: the place is free
	id    sm.RequestID
	lid   ib.LID // destination of one that is routed by LID
	class mad.Class
	attr  mad.AttrID
	mod   uint32
	route mad.Route // of a directed one
	again again
}

type sent struct {
	tid   transaction
	place int32
	due   time.Time
}

func (t *timeouts) init(wait time.Duration) {
	t.wait = wait
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	t.random = rand.NewChaCha8(seed)
	t.known.grow()
}

// begin records a request that is about to be sent, and sets its transaction id.
func (t *timeouts) begin(r *sm.Request, m *mad.MAD) {
	tid := t.draw()
	m.SetTID(ib.TID(tid))
	if len(t.free) == 0 {
		t.flight = append(t.flight, flight{})
		t.free = append(t.free, int32(len(t.flight)-1))
	}
	place := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	f := &t.flight[place]
	f.tid, f.id, f.lid, f.class, f.attr, f.mod = tid, r.ID, r.LID, m.Class(), m.Attr(), m.Mod()
	if m.IsDR() {
		f.route = m.Route()
	}
	f.again = again{}
	if repeatable(m) {
		f.again.packet = transport.Packet{MAD: *m, LID: r.LID}
	}
	t.known.begin(tid, place)
	t.fifo = append(t.fifo, sent{tid: tid, place: place})
}

// draw returns a transaction id that is not out and was not lately.
func (t *timeouts) draw() transaction {
	for {
		if tid := transaction(t.random.Uint64()); tid != 0 && !t.known.has(tid) {
			return tid
		}
	}
}

// stamp starts the time of all requests begun since the last stamp.
func (t *timeouts) stamp(now time.Time) {
	for ; t.new < len(t.fifo); t.new++ {
		e := &t.fifo[t.new]
		e.due = now.Add(t.wait)
		f := &t.flight[e.place]
		if f.tid == e.tid && f.again.packet.LID != 0 {
			f.again.at, f.again.pause = now.Add(againAfter), againAfter
			if f.askedManager() {
				t.managers++
			}
		}
	}
}

// verdict says what a received answer is.
type verdict uint8

const (
	stray  verdict = iota // to nothing that was asked: forged, or of another life
	late                  // to a request that was answered or given up before
	taken                 // to a request, which is no longer out
	forged                // it names a request and is no answer to that
)

// end takes an answer. Only one that could come from the destination of the request is accepted; otherwise the request
// stays open.
func (t *timeouts) end(p *transport.Packet) (sm.RequestID, verdict) {
	i := t.known.find(transaction(p.MAD.TID()))
	switch e := &t.known.at[i]; {
	case e.tid == 0:
		return 0, stray
	case e.place == over:
		return 0, late
	case !p.Undelivered && !t.flight[e.place].answeredBy(p):
		return 0, forged
	}
	return t.forget(i), taken
}

// forget ends the request that is out whose transaction is known by an index.
func (t *timeouts) forget(i int) sm.RequestID {
	place := t.known.at[i].place
	t.known.end(i)
	t.free = append(t.free, place)
	t.flight[place].tid = 0
	if t.flight[place].askedManager() {
		t.managers--
	}
	return t.flight[place].id
}

// waits returns how many requests are out.
func (t *timeouts) waits() int { return t.known.out }

// answeredBy reports whether an answer is of the requested kind and came the way it had to (IBTA volume 1, 13.4.6.4 and
// 14.2.2).
func (f *flight) answeredBy(p *transport.Packet) bool {
	m := &p.MAD
	if m.Class() != f.class || m.Method() != mad.MethodGetResp || m.Attr() != f.attr || m.Mod() != f.mod || m.BaseVersion() != 1 {
		return false
	}
	if m.IsDR() {
		return m.Returning() && m.Route() == f.route
	}
	return p.LID == f.lid
}

// next returns when the oldest request expires.
func (t *timeouts) next() (time.Time, bool) {
	t.skip()
	if t.head >= t.new {
		return time.Time{}, false
	}
	return t.fifo[t.head].due.Add(t.slack), true
}

// expired returns a request whose time is over, and forgets it.
func (t *timeouts) expired(now time.Time) (sm.RequestID, bool) {
	t.skip()
	if t.head >= t.new || now.Before(t.fifo[t.head].due.Add(t.slack)) {
		return 0, false
	}
	tid := t.fifo[t.head].tid
	t.head++
	return t.forget(t.known.find(tid)), true
}

// skip passes entries that were answered, and frees their memory.
func (t *timeouts) skip() {
	for t.head < t.new {
		if e := &t.fifo[t.head]; t.flight[e.place].tid == e.tid {
			break
		}
		t.head++
	}
	if t.head > 4096 || t.head == len(t.fifo) {
		n := copy(t.fifo, t.fifo[t.head:])
		t.fifo = t.fifo[:n]
		t.new -= t.head
		t.head = 0
	}
}
