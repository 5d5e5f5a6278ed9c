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

// transaction is the lower half of a transaction id, which is ours; transports
// own the upper one. It is drawn at random: a host that could predict it could
// answer for another.
type transaction uint32

// timeouts knows which requests are out, what their answers must look like, and
// when each is given up. All wait equally long, so the order of sending is the
// order of expiry.
type timeouts struct {
	wait   time.Duration
	random *rand.ChaCha8
	out    map[transaction]uint32 // place in flight
	flight []flight
	free   []uint32 // places in flight
	fifo   []sent
	head   int
	new    int // first entry that was not stamped yet
	ended  ended
}

// flight is what is remembered of a request that is out.
type flight struct {
	id    sm.RequestID
	lid   ib.LID // destination of one that is routed by LID
	class mad.Class
	attr  mad.AttrID
	mod   uint32
	route mad.Route // of a directed one
}

type sent struct {
	tid transaction
	due time.Time
}

func (t *timeouts) init(wait time.Duration) {
	t.wait = wait
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	t.random = rand.NewChaCha8(seed)
	t.out = make(map[transaction]uint32)
	t.ended.in = make(map[transaction]struct{})
}

// begin notes a request that is about to be sent, and gives it its transaction
// id.
func (t *timeouts) begin(r *sm.Request, m *mad.MAD) {
	tid := t.draw()
	m.SetTID(ib.TID(tid))
	if len(t.free) == 0 {
		t.flight = append(t.flight, flight{})
		t.free = append(t.free, uint32(len(t.flight)-1))
	}
	at := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	f := &t.flight[at]
	*f = flight{id: r.ID, lid: r.LID, class: m.Class(), attr: m.Attr(), mod: m.Mod()}
	if m.IsDR() {
		f.route = m.Route()
	}
	t.out[tid] = at
	t.fifo = append(t.fifo, sent{tid: tid})
}

// draw gives a transaction id that is not out and was not lately.
func (t *timeouts) draw() transaction {
	for {
		tid := transaction(t.random.Uint64())
		if _, out := t.out[tid]; tid != 0 && !out && !t.ended.has(tid) {
			return tid
		}
	}
}

// stamp starts the time of all requests begun since the last stamp.
func (t *timeouts) stamp(now time.Time) {
	for ; t.new < len(t.fifo); t.new++ {
		t.fifo[t.new].due = now.Add(t.wait)
	}
}

// verdict says what a received answer is.
type verdict uint8

const (
	stray  verdict = iota // to nothing that was asked: forged, or of another life
	late                  // to what was answered or given up before
	taken                 // to a request, which is no longer out
	forged                // it names a request and is no answer to that
)

// end takes an answer. Only one that could come from where the request went is
// believed; the request goes on waiting otherwise.
func (t *timeouts) end(p *transport.Packet) (sm.RequestID, verdict) {
	tid := transaction(p.MAD.TID())
	at, ok := t.out[tid]
	switch {
	case !ok && t.ended.has(tid):
		return 0, late
	case !ok:
		return 0, stray
	case !p.Undelivered && !t.flight[at].answeredBy(p):
		return 0, forged
	}
	return t.forget(tid), taken
}

// forget ends a request that is out.
func (t *timeouts) forget(tid transaction) sm.RequestID {
	at := t.out[tid]
	delete(t.out, tid)
	t.free = append(t.free, at)
	t.ended.add(tid)
	return t.flight[at].id
}

// answeredBy reports that an answer is of the kind asked for and came the way
// it had to (IBTA volume 1, 13.4.6.4 and 14.2.2).
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

// next gives when the oldest request expires.
func (t *timeouts) next() (time.Time, bool) {
	t.skip()
	if t.head >= t.new {
		return time.Time{}, false
	}
	return t.fifo[t.head].due, true
}

// expired gives a request whose time is over, and forgets it.
func (t *timeouts) expired(now time.Time) (sm.RequestID, bool) {
	t.skip()
	if t.head >= t.new || now.Before(t.fifo[t.head].due) {
		return 0, false
	}
	tid := t.fifo[t.head].tid
	t.head++
	return t.forget(tid), true
}

// skip passes entries that were answered, and gives their memory back.
func (t *timeouts) skip() {
	for t.head < t.new {
		if _, ok := t.out[t.fifo[t.head].tid]; ok {
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

// maxEnded is how many transactions are remembered after their end.
const maxEnded = 4096

// ended remembers the transactions that ended last, so that a late answer is
// told from one to nothing.
type ended struct {
	in   map[transaction]struct{}
	ring []transaction
	at   int
}

func (e *ended) has(t transaction) bool {
	_, ok := e.in[t]
	return ok
}

func (e *ended) add(t transaction) {
	e.in[t] = struct{}{}
	if len(e.ring) < maxEnded {
		e.ring = append(e.ring, t)
		return
	}
	delete(e.in, e.ring[e.at])
	e.ring[e.at] = t
	e.at = (e.at + 1) % maxEnded
}
