package rmpp

import (
	"math"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
)

// quiet is a sink that keeps the last packet.
type quiet struct {
	m mad.MAD
	n int
}

func (q *quiet) Send(_ int, m *mad.MAD) { q.m, q.n = *m, q.n+1 }
func (q *quiet) Ended(End)              {}

// TestNoAllocations has transactions come and go, and segments flow, without
// allocating.
func TestNoAllocations(t *testing.T) {
	table, q := newTable(t, Config{}), &quiet{}
	now, tid := epoch, head(1, mad.MethodGetTableResp)
	src := &endless{}
	if err := table.Send(now, party(9), head(1<<40, mad.MethodGetTableResp), src, Unknown, q); err != nil {
		t.Fatal(err)
	}
	stream, acked := q.m, uint32(0)
	question, first := question(1, 1), question(1, 2)
	second := *first
	header(&second, mad.RMPPData, mad.RMPPLast, 0, 2, 100)
	var short Bytes
	record := make([]byte, 64)
	for _, tt := range []struct {
		name string
		step func()
	}{
		{"answer of one segment", func() {
			tid.SetTID(tid.TID() + 1)
			short = Bytes{rest: record}
			_ = table.Send(now, party(7), tid, &short, Unknown, q)
			reply(&q.m, tid[:headLen], mad.RMPPAck, 0, 1, 1)
			table.Take(now, &q.m, party(7), q)
		}},
		{"64 segments", func() {
			acked += 64
			if acked == 64 {
				acked = 1
			}
			var ack mad.MAD
			reply(&ack, stream[:headLen], mad.RMPPAck, 0, acked, acked+64)
			table.Take(now, &ack, party(9), q)
		}},
		{"resend", func() {
			now = now.Add(2 * time.Second)
			table.Expire(now, q)
			table.stats = Stats{Sending: table.stats.Sending}
			for _, s := range table.sessions {
				s.tries, s.endAt = 0, now.Add(time.Minute)
			}
		}},
		{"message of one segment", func() {
			question.SetTID(question.TID() + 1)
			now = now.Add(time.Second)
			table.Take(now, question, party(7), q)
		}},
		{"message of two segments", func() {
			first.SetTID(first.TID() + 1)
			second.SetTID(first.TID())
			now = now.Add(time.Second)
			table.Take(now, first, party(8), q)
			table.Take(now, &second, party(8), q)
		}},
		{"ABORT of nothing", func() {
			var m mad.MAD
			reply(&m, question[:headLen], mad.RMPPAbort, mad.RMPPTMR, 0, 0)
			table.Take(now, &m, party(7), q)
		}},
	} {
		for range 200 {
			tt.step()
		}
		before := q.n
		if n := testing.AllocsPerRun(500, tt.step); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
		if q.n == before && tt.name != "ABORT of nothing" {
			t.Errorf("%s: nothing was sent", tt.name)
		}
	}
	if len(table.sessions) != 1 {
		t.Errorf("%d transactions are left", len(table.sessions))
	}
}

// BenchmarkAnswer sends an answer of one segment and takes its ACK.
func BenchmarkAnswer(b *testing.B) {
	table, q := newTable(b, Config{}), &quiet{}
	m := head(1, mad.MethodGetTableResp)
	var short Bytes
	record := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		m.SetTID(m.TID() + 1)
		short = Bytes{rest: record}
		if err := table.Send(epoch, party(7), m, &short, Unknown, q); err != nil {
			b.Fatal(err)
		}
		reply(&q.m, m[:headLen], mad.RMPPAck, 0, 1, 1)
		table.Take(epoch, &q.m, party(7), q)
	}
}

// BenchmarkStream sends 64 segments an ACK.
func BenchmarkStream(b *testing.B) {
	table, q, src := newTable(b, Config{SendLimit: math.MaxInt64}), &quiet{}, &endless{}
	if err := table.Send(epoch, party(7), head(1, mad.MethodGetTableResp), src, Unknown, q); err != nil {
		b.Fatal(err)
	}
	seg := q.m
	b.SetBytes(64 * mad.SADataSize)
	b.ReportAllocs()
	var ack mad.MAD
	for n := uint32(1); b.Loop(); n += 64 {
		reply(&ack, seg[:headLen], mad.RMPPAck, 0, n, n+64)
		table.Take(epoch, &ack, party(7), q)
	}
}
