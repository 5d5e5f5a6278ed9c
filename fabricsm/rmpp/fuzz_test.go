package rmpp

import (
	"bytes"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// FuzzTake steps a small table with packets, requests to send and time, all made of the input, and checks the bounds of its
// state and output.
func FuzzTake(f *testing.F) {
	step := func(op, lid byte, m *mad.MAD) []byte {
		return append([]byte{op, lid}, m[:headLen]...)
	}
	seg := question(1, 3)
	f.Add(bytes.Join([][]byte{step(0, 1, seg), step(0, 1, question(2, 3)), step(0, 1, question(3, 3)), step(0, 1, question(3, 3))}, nil))
	f.Add(bytes.Join([][]byte{step(0x81, 1, seg), step(0, 2, question(1, 1)), step(0, 1, question(3, 3)), step(0xF2, 1, seg)}, nil))
	answer := head(9, mad.MethodGetMultiResp)
	for _, ack := range []*mad.MAD{
		control(answer, mad.RMPPAck, 0, 1, 65), control(answer, mad.RMPPAck, 0, 0, 9), control(answer, mad.RMPPAck, 0, 1, 0),
		control(answer, mad.RMPPStop, 1, 0, 0), control(answer, mad.RMPPAbort, 118, 0, 0), control(answer, 9, 0, 0, 0),
	} {
		f.Add(bytes.Join([][]byte{step(0x81, 1, answer), step(0, 1, ack), step(0, 1, ack), step(0xF2, 1, seg), step(0xF2, 1, seg)}, nil))
	}
	f.Add(bytes.Join([][]byte{step(3, 1, seg), step(0, 1, with(question(1, 3), func(m *mad.MAD) { m.SetMethod(mad.MethodGetMultiResp) }))}, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		table, s := newTable(t, Config{Sessions: 6, PerPort: 3, Window: 5, Burst: 4, Step: 8, Remembered: 3, ReceiveWindow: 3, MaxMessage: 1000}), &sink{}
		now := epoch
		for len(in) > 2 {
			op, lid := in[0], in[1]
			var m mad.MAD
			in = in[2+copy(m[:headLen], in[2:]):]
			now = now.Add(time.Duration(op>>2) * 100 * time.Millisecond)
			p := party(ib.LID(1 + lid%5))
			switch op & 3 {
			case 0:
				o, msg := table.Take(now, &m, p, s)
				if o == Whole && (len(msg.Data) > 1000 || msg.Head == nil) {
					t.Fatalf("a message of %d bytes", len(msg.Data))
				}
				if n := len(s.sent); n > 4+1 {
					t.Fatalf("a packet made us send %d", n)
				}
			case 1:
				if err := table.Send(now, p, &m, NewBytes(make([]byte, int(lid)*8)), Unknown-int(op>>2&1)*(Unknown-int(lid)), s); err == nil && len(s.sent) == 0 {
					t.Fatal("nothing was sent")
				}
			case 2:
				table.Expire(now, s)
				if n := len(s.sent); n > 8+4 {
					t.Fatalf("a step sent %d", n)
				}
				for range 50 {
					if table.Next().IsZero() || table.Next().After(now) {
						break
					}
					table.Expire(now, s)
				}
				if next := table.Next(); !next.IsZero() && !next.After(now) {
					t.Fatal("always something due")
				}
			case 3:
				_ = table.Expect(now, p, &m, 700, time.Minute, s)
			}
			checkTable(t, table)
			for i := range s.sent {
				if r := s.sent[i].RMPPHeader(); r.Version != 1 || r.Type < mad.RMPPData || r.Type > mad.RMPPAbort || !r.Flags.Has(mad.RMPPActive) {
					t.Fatalf("sent %+v", r)
				}
			}
			s.take()
		}
		for _, e := range s.ended {
			if (e.Cause == Aborted || e.Cause == Stopped) == (e.Status == mad.RMPPNormal) && e.Cause != PeerAborted && e.Cause != PeerStopped {
				t.Fatalf("ended %+v", e)
			}
		}
		for n := 0; !table.Next().IsZero(); n++ {
			if n > 10_000 {
				t.Fatal("no end")
			}
			now = later(now, table.Next())
			table.Expire(now, s)
		}
		checkTable(t, table)
	})
}

// FuzzReassemble reassembles segments that need not fit together.
func FuzzReassemble(f *testing.F) {
	f.Add([]byte{})
	for _, n := range []uint32{1, 2, 3} {
		var all []byte
		for i := range n {
			all = append(all, question(i+1, n)[:]...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		segs := make([]mad.MAD, len(in)/mad.Size)
		for i := range segs {
			segs[i] = mad.MAD(in[i*mad.Size:])
		}
		data, err := Reassemble(segs)
		if len(data) > len(segs)*mad.SADataSize || err == nil && len(segs) == 0 {
			t.Fatalf("%d bytes of %d segments: %v", len(data), len(segs), err)
		}
		if err != nil || len(segs) > 41 || segs[0].Class() != mad.ClassSubnAdm || segs[0].Method().IsResponse() {
			return
		}
		// A receiver takes every message that Reassemble accepts.
		table, s := newTable(t, Config{Accept: []mad.Method{segs[0].Method()}, MaxMessage: 41 * mad.SADataSize}), &sink{}
		for i := range segs {
			if o, msg := table.Take(epoch, &segs[i], party(7), s); (o == Whole) != (i == len(segs)-1) || o == Whole && !bytes.Equal(msg.Data, data) {
				t.Fatalf("segment %d of %d: outcome %d", i+1, len(segs), o)
			}
		}
	})
}
