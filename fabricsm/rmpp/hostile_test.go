package rmpp

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// endless is a source without an end, which counts its segments.
type endless struct{ made int }

func (e *endless) Fill(seg []byte) (int, Then) {
	e.made += len(seg)
	return len(seg), ThenMore
}

// TestHostilePeers has peers that break the rules. The work, memory and packets that each can cause are bounded.
func TestHostilePeers(t *testing.T) {
	const window = 64
	for _, tt := range []struct {
		name   string
		acks   int // that it sends, each after a millisecond
		ack    func(i int, seg *mad.MAD) *mad.MAD
		made   int // segments at most
		sent   int // packets at most
		within time.Duration
	}{
		{
			name: "never acknowledges", made: 2, sent: 5, within: 8 * time.Second,
		},
		{
			name: "grants all, then is silent", acks: 1,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAck, 0, 1, math.MaxUint32) },
			made: window + 2, sent: 1 + 4*(window+1) + 1, within: 9 * time.Second,
		},
		{
			name: "grants all, again and again", acks: 10_000,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAck, 0, 1, math.MaxUint32) },
			made: window + 2, sent: 1 + 4*(window+1) + 1, within: 9 * time.Second,
		},
		{
			name: "opens the window by one, acknowledging nothing more", acks: 10_000,
			ack:  func(i int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAck, 0, 1, uint32(i+2)) },
			made: window + 2, sent: 1 + 8*(window+1) + 1, within: 20 * time.Second,
		},
		{
			name: "acknowledges backwards", acks: 10_000,
			ack: func(i int, seg *mad.MAD) *mad.MAD {
				n := uint32(max(1, 60-i))
				if i == 0 {
					n = 1
				}
				return control(seg, mad.RMPPAck, 0, n, 65)
			},
			made: 60 + window + 2, sent: 2 + 6*(window+1), within: 20 * time.Second,
		},
		{
			name: "acknowledges beyond", acks: 100,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAck, 0, 1000, math.MaxUint32) },
			made: 2, sent: 2, within: time.Second,
		},
		{
			name: "acknowledges the last there can be", acks: 100,
			ack: func(_ int, seg *mad.MAD) *mad.MAD {
				return control(seg, mad.RMPPAck, 0, math.MaxUint32, math.MaxUint32)
			},
			made: 2, sent: 2, within: time.Second,
		},
		{
			name: "sends ABORTs", acks: 10_000,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAbort, mad.RMPPT2L, 0, 0) },
			made: 2, sent: 1, within: time.Second,
		},
		{
			name: "sends ABORTs without a status", acks: 10_000,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { return control(seg, mad.RMPPAbort, 0, 0, 0) },
			made: 2, sent: 2, within: time.Second,
		},
		{
			name: "sends us our own segments", acks: 10_000,
			ack:  func(_ int, seg *mad.MAD) *mad.MAD { m := *seg; return &m },
			made: 2, sent: 5, within: 12 * time.Second,
		},
		{
			name: "acknowledges one every time before we give up", acks: 10_000,
			ack: func(i int, seg *mad.MAD) *mad.MAD {
				if i%5000 != 0 {
					return control(seg, mad.RMPPAck, 0, 0, 1)
				}
				return control(seg, mad.RMPPAck, 0, uint32(1+i/5000), 10_000)
			},
			made: 2 * (window + 2), sent: 8 * (window + 1), within: 20 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, s, src := newTable(t, Config{Window: window}), &sink{}, &endless{}
			if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), src, Unknown, s); err != nil {
				t.Fatal(err)
			}
			seg := s.take()[0]
			sent, now, over, i := 1, epoch, epoch, 0
			for ; i < tt.acks; i++ {
				now = now.Add(time.Millisecond)
				table.Take(now, tt.ack(i, &seg), party(7), s)
				if n := len(s.sent); n > table.cfg.Burst+1 {
					t.Fatalf("one packet made us send %d", n)
				}
				if next := table.Next(); !next.IsZero() && !next.After(now) {
					table.Expire(now, s)
				}
				checkTable(t, table)
				sent += len(s.take())
				if len(s.ended) == 0 {
					over = now
				}
			}
			for !table.Next().IsZero() {
				over = later(now, table.Next())
				table.Expire(over, s)
				checkTable(t, table)
				sent += len(s.take())
			}
			if made := (src.made + mad.SADataSize - 1) / mad.SADataSize; made > tt.made || sent > tt.sent || over.Sub(epoch) > tt.within {
				t.Errorf("made %d segments, at most %d; sent %d packets, at most %d; took %v, at most %v",
					made, tt.made, sent, tt.sent, over.Sub(epoch), tt.within)
			}
			if len(table.sessions) != 0 || len(s.ended) != 1 {
				t.Errorf("%d left, ended %v", len(table.sessions), s.ended)
			}
			if rings := len(table.idleRings); rings > 1 {
				t.Errorf("%d rings", rings)
			}
		})
	}
}

// TestSlowest has a peer acknowledge as little as keeps a transaction alive: it ends
// at the limit.
func TestSlowest(t *testing.T) {
	table, s, src := newTable(t, Config{}), &sink{}, &endless{}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), src, Unknown, s); err != nil {
		t.Fatal(err)
	}
	seg := s.take()[0]
	now, sent := epoch, 0
	for n := uint32(1); len(s.ended) == 0; n++ {
		for step := table.Next(); len(s.ended) == 0 && step.Sub(now) <= 7*time.Second; step = table.Next() {
			table.Expire(step, s)
		}
		now = now.Add(7 * time.Second)
		if len(s.ended) == 0 {
			table.Take(now, control(&seg, mad.RMPPAck, 0, n, math.MaxUint32), party(7), s)
		}
		sent += len(s.take())
	}
	if s.ended[0].Status != mad.RMPPT2L || sent > 10*4*66 || src.made > (66+10)*mad.SADataSize {
		t.Errorf("ended %+v, sent %d, made %d", s.ended[0], sent, src.made)
	}
}

// TestExpireLeavesRest has many transactions due together: one call does a part, in
// the order in which they became due.
func TestExpireLeavesRest(t *testing.T) {
	table, s := newTable(t, Config{Step: 100}), &sink{}
	for lid := range 50 {
		p := party(ib.LID(7 + lid))
		if err := table.Send(epoch, p, head(5, mad.MethodGetTableResp), &endless{}, Unknown, s); err != nil {
			t.Fatal(err)
		}
		seg := *s.one(t)
		table.Take(epoch, control(&seg, mad.RMPPAck, 0, 1, 21), p, s)
		if n := len(s.take()); n != 20 {
			t.Fatalf("sent %d", n)
		}
	}
	now := epoch.Add(2 * time.Second)
	calls := 0
	var order []int
	for ; !table.Next().After(now); calls++ {
		table.Expire(now, s)
		if n := len(s.sent); n > 100+20 {
			t.Fatalf("one call sent %d", n)
		}
		for i, to := range s.to {
			if i == 0 || to != s.to[i-1] {
				order = append(order, to)
			}
		}
		s.take()
	}
	if calls != 10 || len(order) != 50 {
		t.Errorf("%d calls, %d turns", calls, len(order))
	}
	seen := map[int]bool{}
	for _, to := range order {
		if seen[to] {
			t.Fatalf("%d had two turns", to)
		}
		seen[to] = true
	}
}

// TestNoise throws random packets at transactions that go on.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	table, s := newTable(t, Config{Sessions: 20, PerPort: 5, Remembered: 10}), &sink{}
	now := epoch
	for range 20_000 {
		now = now.Add(time.Duration(rng.IntN(int(50 * time.Millisecond))))
		p := party(ib.LID(1 + rng.IntN(10)))
		methods := [...]mad.Method{mad.MethodGetTable, mad.MethodGetMulti, mad.MethodGetTableResp, mad.MethodGetMultiResp, mad.MethodGet}
		m := head(ib.TID(rng.IntN(4)), methods[rng.IntN(len(methods))])
		if rng.IntN(3) == 0 {
			_ = table.Send(now, p, m, NewBytes(make([]byte, rng.IntN(3000))), Unknown, s)
		}
		version, y, st := uint8(1), mad.RMPPType(1+rng.IntN(4)), mad.RMPPStatus(0)
		if rng.IntN(20) == 0 {
			version, y, st = uint8(rng.IntN(3)), mad.RMPPType(rng.IntN(7)), mad.RMPPStatus(rng.IntN(256))
		}
		if y == mad.RMPPStop || y == mad.RMPPAbort {
			st = [...]mad.RMPPStatus{mad.RMPPResX, mad.RMPPT2L}[rng.IntN(2)]
		}
		n := uint32(rng.IntN(10))
		if x := table.sessions[place{Key{m.TID(), p.LID, 1, m.Method() ^ 0x80}, true}]; x != nil && rng.IntN(3) > 0 {
			n = x.send.sent
		}
		flags := mad.RMPPFlags(rng.IntN(4)) << 1 & mad.RMPPLast
		if n == 1 {
			flags |= mad.RMPPFirst
		}
		header(m, y, flags, st, n, uint32(rng.IntN(230)))
		m.SetRMPPVersion(version)
		table.Take(now, m, p, s)
		if next := table.Next(); !next.IsZero() && !next.After(now) {
			table.Expire(now, s)
		}
		checkTable(t, table)
		s.take()
		s.ended = nil
	}
	if st := table.Stats(); st.Done == 0 || st.Messages == 0 || st.Refused == 0 || st.Evicted == 0 || st.PeerStop == 0 || st.PeerEnd == 0 || st.Aborts(mad.RMPPS2B) == 0 || st.Aborts(mad.RMPPTMR) == 0 {
		t.Errorf("something never happened: %+v", st)
	}
}
