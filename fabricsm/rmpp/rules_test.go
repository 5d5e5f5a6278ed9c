package rmpp

import (
	"maps"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// question is a segment of a GetMulti of count segments, the last of which is full.
func question(n, count uint32) *mad.MAD {
	m := head(9, mad.MethodGetMulti)
	flags, length := mad.RMPPFlags(0), uint32(0)
	if n == 1 {
		flags |= mad.RMPPFirst
		length = count * segmentLen
	}
	if n == count {
		flags |= mad.RMPPLast
		length = segmentLen
	}
	header(m, mad.RMPPData, flags, mad.RMPPNormal, n, length)
	return m
}

func with(m *mad.MAD, f func(*mad.MAD)) *mad.MAD {
	f(m)
	return m
}

// TestReceiverRules breaks each rule for segments, and finds the status the standard
// has for it.
func TestReceiverRules(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before uint32 // segments of a message of 5 that came before
		m      *mad.MAD
		want   mad.RMPPType // RMPPNone: silence
		status mad.RMPPStatus
		n      uint32 // acknowledged, and
		window uint32 // granted
		left   int    // transactions
	}{
		{"first", 0, question(1, 5), mad.RMPPAck, 0, 1, 17, 1},
		{"whole", 0, question(1, 1), mad.RMPPAck, 0, 1, 1, 0},
		{"first again", 2, question(1, 5), mad.RMPPAck, 0, 2, 17, 1},
		{"second again", 2, question(2, 5), mad.RMPPAck, 0, 2, 17, 1},
		{"out of order", 2, question(4, 5), mad.RMPPNone, 0, 0, 0, 1},
		{"beyond the window", 2, with(question(4, 5), func(m *mad.MAD) { m.SetSegmentNumber(18) }), mad.RMPPNone, 0, 0, 0, 1},
		{"last", 4, question(5, 5), mad.RMPPAck, 0, 5, 17, 0},
		{"unknown message", 0, question(2, 5), mad.RMPPNone, 0, 0, 0, 0},

		{"version 2", 2, with(question(3, 5), func(m *mad.MAD) { m.SetRMPPVersion(2) }), mad.RMPPAbort, mad.RMPPUnV, 0, 0, 0},
		{"version 0 first", 0, with(question(1, 5), func(m *mad.MAD) { m.SetRMPPVersion(0) }), mad.RMPPAbort, mad.RMPPUnV, 0, 0, 0},
		{"type 5", 2, with(question(3, 5), func(m *mad.MAD) { m.SetRMPPType(5) }), mad.RMPPAbort, mad.RMPPBadT, 0, 0, 0},
		{"type 0 first", 0, with(question(1, 5), func(m *mad.MAD) { m.SetRMPPType(0) }), mad.RMPPAbort, mad.RMPPBadT, 0, 0, 0},
		{"data with status", 2, with(question(3, 5), func(m *mad.MAD) { m.SetRMPPStatus(1) }), mad.RMPPAbort, mad.RMPPBadStatus, 0, 0, 0},
		{"first is not 1", 2, with(question(3, 5), func(m *mad.MAD) { m.SetRMPPFlags(mad.RMPPActive | mad.RMPPFirst) }), mad.RMPPAbort, mad.RMPPBadSegment, 0, 0, 0},
		{"1 is not first", 0, with(question(1, 5), func(m *mad.MAD) { m.SetRMPPFlags(mad.RMPPActive) }), mad.RMPPAbort, mad.RMPPBadSegment, 0, 0, 0},
		{"segment 0", 2, with(question(3, 5), func(m *mad.MAD) { m.SetSegmentNumber(0) }), mad.RMPPAbort, mad.RMPPBadSegment, 0, 0, 0},
		{"last too short", 4, with(question(5, 5), func(m *mad.MAD) { m.SetPayloadLength(19) }), mad.RMPPAbort, mad.RMPPBadLength, 0, 0, 0},
		{"last too long", 4, with(question(5, 5), func(m *mad.MAD) { m.SetPayloadLength(221) }), mad.RMPPAbort, mad.RMPPBadLength, 0, 0, 0},
		{"last too early", 2, with(question(3, 5), func(m *mad.MAD) {
			m.SetRMPPFlags(mad.RMPPActive | mad.RMPPLast)
			m.SetPayloadLength(100)
		}), mad.RMPPAbort, mad.RMPPBadLength, 0, 0, 0},
		{"not last", 4, with(question(5, 5), func(m *mad.MAD) { m.SetRMPPFlags(mad.RMPPActive) }), mad.RMPPAbort, mad.RMPPBadLength, 0, 0, 0},
		{"first of 2 is last", 0, with(question(1, 2), func(m *mad.MAD) { m.SetRMPPFlags(mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast) }), mad.RMPPAbort, mad.RMPPBadLength, 0, 0, 0},
		{"promise too long", 0, question(1, 42), mad.RMPPStop, mad.RMPPResX, 0, 0, 0},
		{"promise far too long", 0, with(question(1, 5), func(m *mad.MAD) { m.SetPayloadLength(0xFFFFFFFF) }), mad.RMPPStop, mad.RMPPResX, 0, 0, 0},
		{"method not ours", 0, with(question(1, 5), func(m *mad.MAD) { m.SetMethod(mad.MethodSet) }), mad.RMPPAbort, mad.RMPPUnspecified, 0, 0, 0},
		{"answer to nothing", 0, with(question(1, 5), func(m *mad.MAD) { m.SetMethod(mad.MethodGetTableResp) }), mad.RMPPNone, 0, 0, 0, 0},

		{"stop", 2, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPStop, 0, mad.RMPPResX, 0, 0) }), mad.RMPPNone, 0, 0, 0, 0},
		{"stop with another status", 2, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPStop, 0, mad.RMPPT2L, 0, 0) }), mad.RMPPAbort, mad.RMPPBadStatus, 0, 0, 0},
		{"abort", 2, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPAbort, 0, mad.RMPPTMR, 0, 0) }), mad.RMPPNone, 0, 0, 0, 0},
		{"abort of the class", 2, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPAbort, 0, 200, 0, 0) }), mad.RMPPNone, 0, 0, 0, 0},
		{"abort with another status", 2, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPAbort, 0, mad.RMPPResX, 0, 0) }), mad.RMPPAbort, mad.RMPPBadStatus, 0, 0, 0},
		{"abort of nothing", 0, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPAbort, 0, mad.RMPPResX, 0, 0) }), mad.RMPPNone, 0, 0, 0, 0},
		{"stop of nothing", 0, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPStop, 0, mad.RMPPResX, 0, 0) }), mad.RMPPNone, 0, 0, 0, 0},
		{"ack of nothing", 0, with(question(3, 5), func(m *mad.MAD) { header(m, mad.RMPPAck, 0, 0, 9, 3) }), mad.RMPPNone, 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, s := newTable(t, Config{}), &sink{}
			for n := range tt.before {
				table.Take(epoch, question(n+1, 5), party(7), s)
			}
			s.take()
			tt.m.SetSAKey(key)
			was := *tt.m
			table.Take(epoch, tt.m, party(7), s)
			if *tt.m != was {
				t.Error("the packet was changed")
			}
			checkTable(t, table)
			if got := len(table.sessions); got != tt.left {
				t.Errorf("%d transactions are left, want %d", got, tt.left)
			}
			if tt.want == mad.RMPPNone {
				s.none(t)
				return
			}
			got := s.one(t)
			want := mad.RMPPHeader{
				Version: 1, Type: tt.want, RespTime: mad.NoRespTime, Flags: mad.RMPPActive,
				Status: tt.status, Data1: tt.n, Data2: tt.window,
			}
			if got.RMPPHeader() != want {
				t.Errorf("got %+v, want %+v", got.RMPPHeader(), want)
			}
			if got.Method() != tt.m.Method()^0x80 || got.TID() != 9 || got.SAKeyBits() != 0 {
				t.Errorf("answered with %+v, SM_Key %#x", got.Header(), got.SAKeyBits())
			}
			if tt.want == mad.RMPPAbort && table.stats.Aborts(tt.status) != 1 {
				t.Errorf("%d aborts with %v are counted", table.stats.Aborts(tt.status), tt.status)
			}
		})
	}
}

// TestLastBeforeOthers has segments arrive that contradict a last one that came early.
func TestLastBeforeOthers(t *testing.T) {
	open := func(n uint32) *mad.MAD { // no promise
		return with(question(n, 9), func(m *mad.MAD) { m.SetPayloadLength(0) })
	}
	last := func(n uint32) *mad.MAD {
		return with(open(n), func(m *mad.MAD) {
			m.SetRMPPFlags(mad.RMPPActive | mad.RMPPLast)
			m.SetPayloadLength(21)
		})
	}
	for name, ms := range map[string][]*mad.MAD{
		"beyond the last":         {open(1), last(4), open(5)},
		"two last ones":           {open(1), last(4), last(3)},
		"last before one we have": {open(1), open(4), last(3)},
		"last again, not last":    {open(1), last(4), open(2), open(3), open(4)},
	} {
		table, s := newTable(t, Config{}), &sink{}
		for _, m := range ms {
			s.take()
			table.Take(epoch, m, party(7), s)
		}
		if name == "last again, not last" {
			// Segment 3 made the message whole, so this is one of a message that has
			// arrived.
			if got := s.one(t); got.RMPPType() != mad.RMPPAck || got.SegmentNumber() != 4 {
				t.Errorf("%s: %+v", name, got.RMPPHeader())
			}
			continue
		}
		if got := s.one(t); got.RMPPType() != mad.RMPPAbort || got.RMPPStatus() != mad.RMPPBadLength || len(table.sessions) != 0 {
			t.Errorf("%s: %+v", name, got.RMPPHeader())
		}
	}
}

// TestSenderRules breaks each rule for ACKs, STOPs and ABORTs.
func TestSenderRules(t *testing.T) {
	for _, tt := range []struct {
		name   string
		y      mad.RMPPType
		status mad.RMPPStatus
		n, win uint32
		edit   func(*mad.MAD)
		want   mad.RMPPType // of the sent packet; RMPPNone: silence
		with   mad.RMPPStatus
		cause  Cause
		left   int
	}{
		// Segments 1 to 11 of 50 are out, 1 is acknowledged, 11 is granted.
		{name: "further", y: mad.RMPPAck, n: 11, win: 12, want: mad.RMPPData, left: 1},
		{name: "wider", y: mad.RMPPAck, n: 1, win: 12, want: mad.RMPPData, left: 1},
		{name: "same", y: mad.RMPPAck, n: 1, win: 11, left: 1},
		{name: "older", y: mad.RMPPAck, n: 0, win: 11, left: 1},
		{name: "older and wider", y: mad.RMPPAck, n: 0, win: 20, left: 1},
		{name: "narrower", y: mad.RMPPAck, n: 5, win: 10, left: 1},
		{name: "closed", y: mad.RMPPAck, n: 11, win: 11, left: 1},
		{name: "window too small", y: mad.RMPPAck, n: 5, win: 4, want: mad.RMPPAbort, with: mad.RMPPW2S, cause: Aborted},
		{name: "segment too big", y: mad.RMPPAck, n: 12, win: 20, want: mad.RMPPAbort, with: mad.RMPPS2B, cause: Aborted},
		{name: "ack with status", y: mad.RMPPAck, status: 1, n: 2, win: 20, want: mad.RMPPAbort, with: mad.RMPPBadStatus, cause: Aborted},
		{name: "version 2", y: mad.RMPPAck, n: 2, win: 20, edit: func(m *mad.MAD) { m.SetRMPPVersion(2) }, want: mad.RMPPAbort, with: mad.RMPPUnV, cause: Aborted},
		{name: "type 9", y: 9, n: 2, win: 20, want: mad.RMPPAbort, with: mad.RMPPBadT, cause: Aborted},
		{name: "stop", y: mad.RMPPStop, status: mad.RMPPResX, cause: PeerStopped},
		{name: "stop with status 118", y: mad.RMPPStop, status: mad.RMPPT2L, want: mad.RMPPAbort, with: mad.RMPPBadStatus, cause: Aborted},
		{name: "abort", y: mad.RMPPAbort, status: mad.RMPPT2L, cause: PeerAborted},
		{name: "abort with status 0", y: mad.RMPPAbort, want: mad.RMPPAbort, with: mad.RMPPBadStatus, cause: Aborted},
		{name: "ack of another port", y: mad.RMPPAck, n: 12, win: 2, edit: nil, left: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, s := newTable(t, Config{}), &sink{}
			if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 10_000)), 10_000, s); err != nil {
				t.Fatal(err)
			}
			seg := *s.one(t)
			table.Take(epoch, control(&seg, mad.RMPPAck, 0, 1, 11), party(7), s)
			s.take()
			m := control(&seg, tt.y, tt.status, tt.n, tt.win)
			if tt.edit != nil {
				tt.edit(m)
			}
			from := party(7)
			if tt.name == "ack of another port" {
				from.LID = 8
			}
			table.Take(epoch, m, from, s)
			checkTable(t, table)
			if len(table.sessions) != tt.left {
				t.Errorf("%d transactions are left, want %d", len(table.sessions), tt.left)
			}
			if tt.left == 0 && (len(s.ended) != 1 || s.ended[0].Cause != tt.cause) {
				t.Errorf("ended %+v, want %v", s.ended, tt.cause)
			}
			if tt.want == mad.RMPPNone {
				s.none(t)
				return
			}
			got := s.one(t)
			if got.RMPPType() != tt.want || got.RMPPStatus() != tt.with || got.Method() != mad.MethodGetTableResp {
				t.Errorf("sent %v %+v", got.Method(), got.RMPPHeader())
			}
		})
	}
}

// TestRetries sends again, and then ends the transaction; an ACK resets the number of tries.
func TestRetries(t *testing.T) {
	table, s := newTable(t, Config{Retries: 2}), &sink{}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 1000)), 1000, s); err != nil {
		t.Fatal(err)
	}
	seg := *s.one(t)
	now := epoch
	wait := func() []mad.MAD {
		t.Helper()
		if d := table.Next().Sub(now); d != 2*time.Second {
			t.Fatalf("due after %v", d)
		}
		now = table.Next()
		table.Expire(now.Add(-1), s)
		s.none(t)
		table.Expire(now, s)
		checkTable(t, table)
		return s.take()
	}
	for range 2 {
		if got := wait(); len(got) != 1 || got[0] != seg {
			t.Fatalf("sent %v, want segment 1 again", headers(got))
		}
	}
	table.Take(now, control(&seg, mad.RMPPAck, 0, 1, 3), party(7), s)
	if got := s.take(); len(got) != 2 {
		t.Fatalf("sent %v", headers(got))
	}
	for range 2 {
		if got := wait(); len(got) != 2 || got[0].SegmentNumber() != 2 || got[1].SegmentNumber() != 3 {
			t.Fatalf("sent %v, want segments 2 and 3", headers(got))
		}
	}
	if got := wait(); len(got) != 1 || got[0].RMPPType() != mad.RMPPAbort || got[0].RMPPStatus() != mad.RMPPTMR || got[0].Method() != mad.MethodGetTableResp {
		t.Errorf("sent %v, want ABORT", headers(got))
	}
	if !table.Next().IsZero() || len(s.ended) != 1 || s.ended[0].Status != mad.RMPPTMR {
		t.Errorf("ended %v, due %v", s.ended, table.Next())
	}
}

// TestClosedWindow has a peer that takes all and grants no more: it is asked with a
// segment that it has, never sent one beyond its window.
func TestClosedWindow(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 1000)), 1000, s); err != nil {
		t.Fatal(err)
	}
	seg := *s.one(t)
	now := epoch
	table.Take(now, control(&seg, mad.RMPPAck, 0, 1, 1), party(7), s)
	s.none(t)
	now = table.Next()
	if d := now.Sub(epoch); d != 2*time.Second {
		t.Fatalf("due after %v", d)
	}
	table.Expire(now, s)
	if got := s.one(t); *got != seg {
		t.Fatalf("sent %+v", got.RMPPHeader())
	}
	table.Take(now, control(&seg, mad.RMPPAck, 0, 1, 4), party(7), s)
	if got := s.take(); len(got) != 3 {
		t.Errorf("sent %v", headers(got))
	}
}

// TestTimeLimits ends transactions that go on, but too slowly.
func TestTimeLimits(t *testing.T) {
	t.Run("sender", func(t *testing.T) {
		table, s := newTable(t, Config{}), &sink{}
		if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 100_000)), 100_000, s); err != nil {
			t.Fatal(err)
		}
		seg := *s.one(t)
		now := epoch
		for n := uint32(1); len(s.ended) == 0; n++ {
			now = now.Add(time.Second)
			table.Expire(now, s)
			if len(s.ended) == 0 {
				table.Take(now, control(&seg, mad.RMPPAck, 0, n, n+1), party(7), s)
			}
		}
		sent := s.take()
		if got := &sent[len(sent)-1]; now.Sub(epoch) != 60*time.Second || got.RMPPType() != mad.RMPPAbort || got.RMPPStatus() != mad.RMPPT2L {
			t.Errorf("after %v: %+v", now.Sub(epoch), got.RMPPHeader())
		}
	})
	t.Run("receiver", func(t *testing.T) {
		table, s := newTable(t, Config{}), &sink{}
		for n := range uint32(4) {
			table.Take(epoch.Add(time.Duration(n)*13*time.Second), question(n+1, 5), party(7), s)
		}
		s.take()
		if d := table.Next().Sub(epoch); d != 40*time.Second {
			t.Errorf("due after %v", d)
		}
		table.Expire(table.Next(), s)
		got := s.one(t)
		if got.RMPPType() != mad.RMPPAbort || got.RMPPStatus() != mad.RMPPT2L || got.Method() != mad.MethodGetMultiResp || got.TID() != 9 {
			t.Errorf("%v %+v", got.Header(), got.RMPPHeader())
		}
	})
	t.Run("expected", func(t *testing.T) {
		table, s := newTable(t, Config{}), &sink{}
		if err := table.Expect(epoch, party(1), head(5, mad.MethodGetTable), 1000, 3*time.Second, s); err != nil {
			t.Fatal(err)
		}
		table.Expire(epoch.Add(3*time.Second), s)
		s.none(t)
		if len(s.ended) != 1 || s.ended[0].Status != mad.RMPPT2L || s.ended[0].Key.Method != mad.MethodGetTableResp {
			t.Errorf("ended %+v", s.ended)
		}
	})
}

// TestRemembered has the last segments come again after the message was complete.
func TestRemembered(t *testing.T) {
	table, s := newTable(t, Config{Remembered: 3}), &sink{}
	now := epoch
	for n := range uint32(3) {
		if o, msg := table.Take(now, question(n+1, 3), party(7), s); (o == Whole) != (n == 2) || o == Whole && len(msg.Data) != 600 {
			t.Fatalf("segment %d: %v", n+1, o)
		}
	}
	s.take()
	again := func(n uint32) {
		t.Helper()
		if o, _ := table.Take(now, question(n, 3), party(7), s); o != Used {
			t.Fatalf("segment %d again: %v", n, o)
		}
		if got := s.one(t); got.SegmentNumber() != 3 || got.NewWindowLast() != 17 {
			t.Errorf("segment %d again: %+v", n, got.RMPPHeader())
		}
	}
	again(3)
	again(1)
	if o, _ := table.Take(now, question(1, 1), party(8), s); o != Whole {
		t.Errorf("a message of another port: %v", o)
	}
	s.take()
	now = now.Add(10*time.Second - 1)
	again(2)
	now = now.Add(1)
	if o, _ := table.Take(now, question(1, 3), party(7), s); o != Used || s.one(t).SegmentNumber() != 1 || len(table.sessions) != 1 {
		t.Error("after ten seconds it is still known")
	}
	// Only so many are known: the oldest is forgotten.
	for n := range ib.LID(10) {
		if o, _ := table.Take(now, question(1, 1), party(100+n), s); o != Whole {
			t.Fatalf("port %d: %v", 100+n, o)
		}
		checkTable(t, table)
	}
	for n, want := range map[ib.LID]Outcome{109: Used, 108: Used, 107: Used, 106: Whole} {
		if o, _ := takeAgain(table, s, now, n); o != want {
			t.Errorf("port %d: %v, want %v", n, o, want)
		}
	}
}

// takeAgain takes a message of one port again, on an unchanged table: its memory is restored.
func takeAgain(table *Table[int], s *sink, now time.Time, lid ib.LID) (Outcome, Message) {
	was := table.memory
	table.memory.at, table.memory.fifo = maps.Clone(was.at), slices.Clone(was.fifo)
	defer func() { table.memory = was }()
	return table.Take(now, question(1, 1), party(lid), s)
}

// TestTooLong has messages that do not say how long they are: they are stopped where
// they would become longer than we take.
func TestTooLong(t *testing.T) {
	for _, tt := range []struct {
		last uint32 // PayloadLength of segment 3, or 0 if it is not the last
		want mad.RMPPType
	}{
		{20 + 100, mad.RMPPAck},
		{20 + 101, mad.RMPPStop},
		{0, mad.RMPPNone}, // the fourth is too much
	} {
		table, s := newTable(t, Config{MaxMessage: 500}), &sink{}
		seg := func(n uint32, flags mad.RMPPFlags, length uint32) {
			s.take()
			m := head(9, mad.MethodGetMulti)
			header(m, mad.RMPPData, flags, 0, n, length)
			table.Take(epoch, m, party(7), s)
			checkTable(t, table)
		}
		seg(1, mad.RMPPFirst, 0)
		seg(2, 0, 0)
		if tt.last != 0 {
			seg(3, mad.RMPPLast, tt.last)
			if got := s.one(t); got.RMPPType() != tt.want || len(table.sessions) != 0 {
				t.Errorf("%d bytes: %+v", tt.last, got.RMPPHeader())
			}
			continue
		}
		seg(3, 0, 0)
		s.none(t)
		seg(4, 0, 0)
		if got := s.one(t); got.RMPPType() != mad.RMPPStop || got.RMPPStatus() != mad.RMPPResX || len(table.sessions) != 0 {
			t.Errorf("a fourth segment: %+v", got.RMPPHeader())
		}
		if s.ended[0].Cause != Stopped || s.ended[0].Sending || table.Stats().Stops != 1 {
			t.Errorf("ended %+v", s.ended)
		}
	}
}

// TestPlain leaves MADs alone that RMPP does not carry, with any contents of the RMPP header: srp_daemon fills in version
// and type of requests.
func TestPlain(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	m := head(5, mad.MethodGetTable)
	m.SetRMPPVersion(1)
	m.SetRMPPType(mad.RMPPData)
	other := question(1, 1)
	h := other.Header()
	h.Class = mad.ClassPerf
	other.SetHeader(h)
	for _, m := range []*mad.MAD{m, other} {
		if o, _ := table.Take(epoch, m, party(7), s); o != Plain {
			t.Errorf("%v: %v", m.Header(), o)
		}
	}
	s.none(t)
}

// TestGrantedAhead answers a message of segments with the window that its sender
// granted, whether that came before the answer or after.
func TestGrantedAhead(t *testing.T) {
	for _, early := range []bool{true, false} {
		table, s := newTable(t, Config{}), &sink{}
		if o, _ := table.Take(epoch, question(1, 1), party(7), s); o != Whole {
			t.Fatal(o)
		}
		grant := control(s.one(t), mad.RMPPAck, 0, 0, 20)
		if early {
			table.Take(epoch, grant, party(7), s)
			s.none(t)
		}
		if err := table.Send(epoch, party(7), head(9, mad.MethodGetMultiResp), NewBytes(make([]byte, 10_000)), 10_000, s); err != nil {
			t.Fatal(err)
		}
		if !early {
			s.one(t)
			table.Take(epoch, grant, party(7), s)
		}
		sent := s.take()
		if n := sent[len(sent)-1].SegmentNumber(); n != 20 {
			t.Errorf("early %v: sent up to %d, want 20", early, n)
		}
		table.Take(epoch, control(&sent[0], mad.RMPPAck, 0, 20, 30), party(7), s)
		if got := s.take(); len(got) != 10 {
			t.Errorf("early %v: then sent %v", early, headers(got))
		}
	}
}

// TestCancel ends transactions without a word.
func TestCancel(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	srcs := [3]*Bytes{}
	for tid := range ib.TID(3) {
		srcs[tid] = NewBytes(make([]byte, 1000))
		if err := table.Send(epoch, party(7), head(tid, mad.MethodGetTableResp), srcs[tid], 1000, s); err != nil {
			t.Fatal(err)
		}
	}
	s.take()
	table.Cancel(Key{TID: 1, LID: 7, QP: 1, Method: mad.MethodGetTableResp}, s)
	checkTable(t, table)
	if len(table.sessions) != 2 || len(s.ended) != 1 || s.ended[0].Source != Source(srcs[1]) || s.ended[0].Cause != Cancelled {
		t.Errorf("%d left, ended %v", len(table.sessions), s.ended)
	}
	table.Drop(8, s)
	table.Drop(7, s)
	s.none(t)
	checkTable(t, table)
	if len(table.sessions) != 0 || len(s.ended) != 3 || !table.Next().IsZero() {
		t.Errorf("%d left, ended %v", len(table.sessions), s.ended)
	}
}
