package rmpp

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sink stores the output of a table.
type sink struct {
	sent  []mad.MAD
	to    []int
	ended []End
}

func (s *sink) Send(to int, m *mad.MAD) {
	s.sent = append(s.sent, *m)
	s.to = append(s.to, to)
}

func (s *sink) Ended(e End) { s.ended = append(s.ended, e) }

// take returns the sent packets and clears the list.
func (s *sink) take() []mad.MAD {
	sent := s.sent
	s.sent, s.to = nil, nil
	return sent
}

// one expects a single packet, and returns it.
func (s *sink) one(t *testing.T) *mad.MAD {
	t.Helper()
	sent := s.take()
	if len(sent) != 1 {
		t.Fatalf("sent %d packets, want 1: %v", len(sent), headers(sent))
	}
	return &sent[0]
}

// none expects silence.
func (s *sink) none(t *testing.T) {
	t.Helper()
	if sent := s.take(); len(sent) > 0 {
		t.Fatalf("sent %v, want nothing", headers(sent))
	}
}

func headers(ms []mad.MAD) []mad.RMPPHeader {
	out := make([]mad.RMPPHeader, 0, len(ms))
	for i := range ms {
		out = append(out, ms[i].RMPPHeader())
	}
	return out
}

func newTable(t testing.TB, c Config) *Table[int] {
	t.Helper()
	table, err := New[int](c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func party(lid ib.LID) Party[int] { return Party[int]{LID: lid, QP: 1, Back: int(lid)} }

// head is the header of a message.
func head(tid ib.TID, method mad.Method) *mad.MAD {
	var m mad.MAD
	m.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: tid, Attr: mad.AttrPathRecord,
	})
	m.SetAttributeOffset(8)
	m.SetComponentMask(0x1234)
	return &m
}

// control makes an ACK, STOP or ABORT for the segments of a message.
func control(segment *mad.MAD, y mad.RMPPType, s mad.RMPPStatus, n, window uint32) *mad.MAD {
	var m mad.MAD
	reply(&m, segment[:headLen], y, s, n, window)
	return &m
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// lazy is a source that pauses, and that reports its end only at the next call.
type lazy struct {
	rng  *rand.Rand
	rest []byte
}

func (l *lazy) Fill(seg []byte) (int, Then) {
	if l.rng.IntN(4) == 0 {
		seg = seg[:l.rng.IntN(len(seg))]
	}
	n := copy(seg, l.rest)
	l.rest = l.rest[n:]
	if n == 0 && len(l.rest) == 0 {
		return 0, ThenEnd
	}
	return n, ThenMore
}

// flight is a packet under way.
type flight struct {
	at    time.Time
	up    bool // to the server
	m     mad.MAD
	order int
}

// wire carries packets between two tables, badly.
type wire struct {
	t         *testing.T
	rng       *rand.Rand
	now       time.Time
	loss, dup float64
	jitter    time.Duration
	flights   []flight
	order     int

	client, server   *Table[int]
	toServer, toUser sink
	got              []byte
	whole            int
	asked            func(msg Message) // handles a message in the server

	granted map[mad.Method]uint32 // NewWindowLast that a side has sent, by the method of the segments
}

const (
	clientLID ib.LID = 7
	serverLID ib.LID = 1
)

func (w *wire) carry(s *sink, up bool) {
	for _, m := range s.take() {
		w.check(&m)
		for n := 1; n > 0; n-- {
			if w.rng.Float64() < w.loss {
				continue
			}
			if w.rng.Float64() < w.dup {
				n++
			}
			w.order++
			delay := 5 * time.Microsecond
			if w.jitter > 0 {
				delay += time.Duration(w.rng.Int64N(int64(w.jitter)))
			}
			w.flights = append(w.flights, flight{w.now.Add(delay), up, m, w.order})
		}
	}
}

// check checks a sent packet against the granted windows.
func (w *wire) check(m *mad.MAD) {
	switch m.RMPPType() {
	case mad.RMPPData:
		if n := m.SegmentNumber(); n > max(1, w.granted[m.Method()]) {
			w.t.Fatalf("%v segment %d, beyond the window, which ends at %d", m.Method(), n, w.granted[m.Method()])
		}
	case mad.RMPPAck:
		k := m.Method() ^ responseBit
		w.granted[k] = max(w.granted[k], m.NewWindowLast())
	}
}

// run steps both sides until nothing is left to do.
func (w *wire) run() {
	for steps := 0; ; steps++ {
		if steps > 2_000_000 {
			w.t.Fatal("no end")
		}
		w.carry(&w.toUser, true)
		w.carry(&w.toServer, false)
		checkTable(w.t, w.client)
		checkTable(w.t, w.server)
		next := -1
		for i, f := range w.flights {
			if next < 0 || f.at.Before(w.flights[next].at) || f.at.Equal(w.flights[next].at) && f.order < w.flights[next].order {
				next = i
			}
		}
		at := time.Time{}
		for _, t := range []time.Time{w.client.Next(), w.server.Next()} {
			if !t.IsZero() && (at.IsZero() || t.Before(at)) {
				at = t
			}
		}
		if next < 0 && at.IsZero() {
			return
		}
		if next >= 0 && (at.IsZero() || !at.Before(w.flights[next].at)) {
			f := w.flights[next]
			w.flights = append(w.flights[:next], w.flights[next+1:]...)
			w.now = later(w.now, f.at)
			w.deliver(&f)
			continue
		}
		w.now = later(w.now, at)
		w.client.Expire(w.now, &w.toUser)
		w.server.Expire(w.now, &w.toServer)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *wire) deliver(f *flight) {
	if f.up {
		if o, msg := w.server.Take(w.now, &f.m, party(clientLID), &w.toServer); o == Whole {
			w.asked(msg)
		}
		return
	}
	if o, msg := w.client.Take(w.now, &f.m, party(serverLID), &w.toUser); o == Whole {
		w.whole++
		w.got = bytes.Clone(msg.Data)
	}
}

func newWire(t *testing.T, seed uint64, c Config) *wire {
	client := c
	client.ReceiveWindow = 1 + int(seed*7%64)
	return &wire{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: epoch,
		client: newTable(t, client), server: newTable(t, c),
		granted: map[mad.Method]uint32{},
	}
}

// answer makes the server answer a GetTable, and runs the wire until the end.
func (w *wire) answer(data []byte, src Source, total int) {
	request := head(5, mad.MethodGetTable)
	if err := w.client.Expect(w.now, party(serverLID), request, len(data), 70*time.Second, &w.toUser); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Send(w.now, party(clientLID), head(5, mad.MethodGetTableResp), src, total, &w.toServer); err != nil {
		w.t.Fatal(err)
	}
	w.run()
}

// TestNoLoss sends messages of many lengths over a good wire.
func TestNoLoss(t *testing.T) {
	for _, n := range []int{0, 1, 64, 199, 200, 201, 399, 400, 401, 799, 800, 801, 1000, 12800, 13000, 13001, 13200, 50_000, 200_000} {
		for seed := range uint64(8) {
			w := newWire(t, seed, Config{})
			data := noise(w.rng, n)
			total := Unknown
			var src Source = &lazy{w.rng, data}
			if seed%2 == 1 {
				src, total = NewBytes(data), n
			}
			w.answer(data, src, total)
			if w.whole != 1 || !bytes.Equal(w.got, data) {
				t.Fatalf("%d bytes, seed %d: %d messages of %d bytes; %v %v", n, seed, w.whole, len(w.got), w.toServer.ended, w.toUser.ended)
			}
			if d := w.now.Sub(epoch); d > time.Second {
				t.Errorf("%d bytes, window %d: took %v: somebody waited for a timeout", n, w.client.cfg.ReceiveWindow, d)
			}
			if s := w.server.Stats(); s.Sending != 0 || s.Done != 1 || s.Resent > s.Segments/10+1 {
				t.Errorf("%d bytes: %+v", n, s)
			}
		}
	}
}

// TestLoss loses, doubles and reorders packets: the received data is equal to the sent data, or both sides end.
func TestLoss(t *testing.T) {
	arrived := 0
	for seed := range uint64(300) {
		w := newWire(t, seed, Config{Retries: 1 + int(seed%8), Window: 2 + int(seed%67)})
		w.loss = float64(seed%10) / 40
		w.dup = float64(seed%7) / 30
		w.jitter = time.Duration(seed%5) * 50 * time.Microsecond
		data := noise(w.rng, w.rng.IntN(30_000))
		w.answer(data, &lazy{w.rng, data}, Unknown)
		if w.whole > 1 || w.whole == 1 && !bytes.Equal(w.got, data) {
			t.Fatalf("seed %d: %d messages, %d bytes of %d", seed, w.whole, len(w.got), len(data))
		}
		arrived += w.whole
		for _, s := range []*Table[int]{w.client, w.server} {
			if len(s.sessions) != 0 || len(s.ports) != 0 || len(s.due) != 0 || s.stats.Sending != 0 || s.stats.Receiving != 0 {
				t.Fatalf("seed %d: transactions are left: %+v", seed, s.Stats())
			}
		}
	}
	if arrived < 200 {
		t.Errorf("only %d of 300 messages arrived", arrived)
	}
}

// TestTwoSided asks by segments and is answered by segments.
func TestTwoSided(t *testing.T) {
	arrived := 0
	for seed := range uint64(200) {
		w := newWire(t, seed, Config{Retries: 5})
		w.loss = float64(seed%10) / 60
		w.dup = float64(seed%7) / 40
		w.jitter = time.Duration(seed%5) * 50 * time.Microsecond
		question := noise(w.rng, 1+w.rng.IntN(8184))
		answer := noise(w.rng, w.rng.IntN(30_000))
		asked := 0
		w.asked = func(msg Message) {
			asked++
			if !bytes.Equal(msg.Data, question) || msg.Head.Method() != mad.MethodGetMulti || msg.Head.TID() != 9 {
				t.Errorf("seed %d: the question is %v, %d bytes", seed, msg.Head.Header(), len(msg.Data))
			}
			if err := w.server.Send(w.now, party(clientLID), head(9, mad.MethodGetMultiResp), &lazy{w.rng, answer}, Unknown, &w.toServer); err != nil {
				t.Error(err)
			}
		}
		request := head(9, mad.MethodGetMulti)
		if err := w.client.Expect(w.now, party(serverLID), request, len(answer), 70*time.Second, &w.toUser); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Send(w.now, party(serverLID), request, NewBytes(question), len(question), &w.toUser); err != nil {
			t.Fatal(err)
		}
		w.run()
		if asked > 1 || w.whole > 1 || w.whole == 1 && !bytes.Equal(w.got, answer) {
			t.Fatalf("seed %d: asked %d, answered %d", seed, asked, w.whole)
		}
		arrived += w.whole
		if w.loss == 0 && (w.whole != 1 || w.now.Sub(epoch) > time.Second) {
			t.Errorf("seed %d: answered %d times after %v", seed, w.whole, w.now.Sub(epoch))
		}
	}
	if arrived < 120 {
		t.Errorf("only %d of 200 answers arrived", arrived)
	}
}
