package rmpp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// TestTranscripts runs the stories in testdata/transcripts: packets of peers to a table, and its output. Commands:
//
//	table [sessions= per-port= window= retries=]
//	answer lid= tid= bytes= [total]    a GetTableResp to a port
//	reply lid= tid= bytes=             a GetMultiResp to a port
//	ack lid= tid= n= window= [multi]   from the port, for an answer
//	stop, abort lid= tid= [status=]    likewise
//	question lid= tid= n= of=          a segment of a GetMulti
//	again lid= tid=                    the GetTable once more
//	wait                               until something is due
//	counts
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		b := &bench{now: epoch}
		datadriven.RunTest(t, path, b.command)
	})
}

// bench is a table on which a story is played.
type bench struct {
	table *Table[int]
	sink  sink
	now   time.Time
}

func (b *bench) command(t *testing.T, d *datadriven.TestData) string {
	num := func(name string) (n int) {
		d.MaybeScanArgs(t, name, &n)
		return n
	}
	tid, from := ib.TID(num("tid")), party(ib.LID(num("lid")))
	var out strings.Builder
	take := func(m *mad.MAD) {
		if o, msg := b.table.Take(b.now, m, from, &b.sink); o == Whole {
			fmt.Fprintf(&out, "a message of %d bytes\n", len(msg.Data))
		}
	}
	send := func(method mad.Method) {
		total := Unknown
		if d.HasArg("total") {
			total = num("bytes")
		}
		if err := b.table.Send(b.now, from, head(tid, method), NewBytes(make([]byte, num("bytes"))), total, &b.sink); err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	answer := head(tid, mad.MethodGetTableResp)
	if d.HasArg("multi") {
		answer.SetMethod(mad.MethodGetMultiResp)
	}
	status := mad.RMPPStatus(num("status"))
	switch d.Cmd {
	case "table":
		b.table = newTable(t, Config{Sessions: num("sessions"), PerPort: num("per-port"), Window: num("window"), Retries: num("retries")})
	case "answer":
		send(mad.MethodGetTableResp)
	case "reply":
		send(mad.MethodGetMultiResp)
	case "ack":
		take(control(answer, mad.RMPPAck, status, uint32(num("n")), uint32(num("window"))))
	case "stop":
		take(control(answer, mad.RMPPStop, status, 0, 0))
	case "abort":
		take(control(answer, mad.RMPPAbort, status, 0, 0))
	case "question":
		m := question(uint32(num("n")), uint32(num("of")))
		m.SetTID(tid)
		take(m)
	case "again":
		fmt.Fprintf(&out, "on its way: %v\n", b.table.Repeat(AnswerKey(head(tid, mad.MethodGetTable), from.LID, 1), &b.sink))
	case "wait":
		if b.table.Next().IsZero() {
			return "nothing will be due\n"
		}
		b.now = later(b.now, b.table.Next())
		fmt.Fprintf(&out, "at %v\n", b.now.Sub(epoch))
		b.table.Expire(b.now, &b.sink)
	case "counts":
		s := b.table.Stats()
		fmt.Fprintf(&out, "sending %d receiving %d remembered %d; opened %d done %d refused %d evicted %d; segments %d, %d of them again; ignored %d\n",
			s.Sending, s.Receiving, s.Remembered, s.Opened, s.Done, s.Refused, s.Evicted, s.Segments, s.Resent, s.Ignored)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	checkTable(t, b.table)
	b.tell(&out)
	if out.Len() == 0 {
		return "-\n"
	}
	return out.String()
}

// tell writes the sent packets and the ended transactions.
func (b *bench) tell(out *strings.Builder) {
	to := b.sink.to
	for i, m := range b.sink.take() {
		h := m.RMPPHeader()
		fmt.Fprintf(out, "to %d: %v %d %v", to[i], m.Method(), m.TID(), h.Type)
		switch h.Type {
		case mad.RMPPData:
			fmt.Fprintf(out, " %d", h.Data1)
			if f := strings.TrimPrefix(strings.TrimPrefix(h.Flags.String(), "Active"), "|"); f != "" {
				fmt.Fprintf(out, " %s", f)
			}
			if h.Data2 != 0 || h.Flags.Has(mad.RMPPFirst) {
				fmt.Fprintf(out, " length %d", h.Data2)
			}
		case mad.RMPPAck:
			fmt.Fprintf(out, " %d, window to %d", h.Data1, h.Data2)
		default:
			fmt.Fprintf(out, " %v", h.Status)
		}
		fmt.Fprintln(out)
	}
	for _, e := range b.sink.ended {
		fmt.Fprintf(out, "ended: %v %d with %d: %v", e.Key.Method, e.Key.TID, e.Key.LID, e.Cause)
		if e.Status != mad.RMPPNormal {
			fmt.Fprintf(out, ", %v", e.Status)
		}
		fmt.Fprintln(out)
	}
	b.sink.ended = nil
}
