package rmpp

import (
	"errors"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// half opens a transaction that is never continued.
func half(table *Table[int], now time.Time, p Party[int], tid ib.TID, s *sink) error {
	return table.Send(now, p, head(tid, mad.MethodGetTableResp), NewBytes(make([]byte, 1000)), 1000, s)
}

// TestHalfOpen has one port open as much as it can: it gets its share, loses it after
// the timeouts, and others are served meanwhile.
func TestHalfOpen(t *testing.T) {
	table, s := newTable(t, Config{Sessions: 32, PerPort: 4}), &sink{}
	refused := 0
	for tid := range ib.TID(100) {
		// Both ways in: answers that it asks for, and messages that it begins.
		from := party(7)
		from.LID += ib.LID(tid % 8) // one port with LMC 3
		from.Port = 7
		if tid%2 == 0 {
			if err := half(table, epoch, from, tid, s); errors.Is(err, ErrNoRoom) {
				refused++
			}
			s.take()
			continue
		}
		m := with(question(1, 5), func(m *mad.MAD) { m.SetTID(tid) })
		if o, _ := table.Take(epoch, m, from, s); o != Used {
			t.Fatal(o)
		}
		if s.one(t).RMPPType() == mad.RMPPStop {
			refused++
		}
		checkTable(t, table)
	}
	if st := table.Stats(); len(table.sessions) != 4 || refused != 96 || st.Refused != 96 || st.Sending != 2 || st.Receiving != 2 {
		t.Errorf("%d open, %d refused, %+v", len(table.sessions), refused, st)
	}
	if err := half(table, epoch, party(20), 1, s); err != nil {
		t.Errorf("another port: %v", err)
	}
	now := epoch
	for !table.Next().IsZero() {
		now = table.Next()
		table.Expire(now, s)
		checkTable(t, table)
	}
	if st := table.Stats(); now.Sub(epoch) != 40*time.Second || st.Aborts(mad.RMPPTMR) != 3 || st.Aborts(mad.RMPPT2L) != 2 || len(table.sessions)+len(table.ports) != 0 {
		t.Errorf("after %v: %+v", now.Sub(epoch), st)
	}
}

// TestOwnRoom has a port at its limit: a transaction whose peer is silent is evicted for a new one, and an active
// transaction is not.
func TestOwnRoom(t *testing.T) {
	table, s := newTable(t, Config{PerPort: 3}), &sink{}
	for tid := range ib.TID(3) {
		if err := half(table, epoch.Add(time.Duration(tid)*time.Second), party(7), tid, s); err != nil {
			t.Fatal(err)
		}
	}
	sent := s.take()
	now := epoch.Add(2*time.Second - 1)
	if err := half(table, now, party(7), 10, s); !errors.Is(err, ErrNoRoom) {
		t.Errorf("before the timeout: %v", err)
	}
	now = now.Add(time.Second)
	table.Take(now, control(&sent[0], mad.RMPPAck, 0, 1, 2), party(7), s)
	s.take()
	if err := half(table, now, party(7), 10, s); !errors.Is(err, ErrNoRoom) {
		t.Errorf("nothing is silent for long: %v", err)
	}
	now = now.Add(1)
	if err := half(table, now, party(7), 10, s); err != nil {
		t.Errorf("after the timeout: %v", err)
	}
	got := s.take()
	if len(got) != 2 || got[0].RMPPType() != mad.RMPPStop || got[0].RMPPStatus() != mad.RMPPResX || got[0].TID() != 1 || got[1].TID() != 10 {
		t.Errorf("sent %v", headers(got))
	}
	if len(s.ended) != 1 || s.ended[0].Cause != Stopped || s.ended[0].Key.TID != 1 || table.Stats().Evicted != 1 {
		t.Errorf("ended %v", s.ended)
	}
	checkTable(t, table)
}

// TestAllRoomTaken has accomplices fill the table: each port that comes still gets
// room, as long as another has at least two more.
func TestAllRoomTaken(t *testing.T) {
	table, s := newTable(t, Config{Sessions: 12, PerPort: 4}), &sink{}
	for lid := range ib.LID(3) {
		for tid := range ib.TID(4) {
			if err := half(table, epoch.Add(time.Duration(tid)), party(lid+1), tid, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for lid := range ib.LID(9) {
		if err := half(table, epoch.Add(time.Second), party(lid+10), 1, s); err != nil {
			t.Fatalf("victim %d: %v", lid, err)
		}
		checkTable(t, table)
	}
	for lid := range ib.LID(12) {
		if n := table.ports[lid+1]; lid < 3 && n.count != 1 {
			t.Errorf("port %d has %d", lid+1, n.count)
		}
	}
	for _, e := range s.ended {
		if e.Key.LID > 3 || e.Key.TID == 3 {
			t.Errorf("ended %+v, not what was silent longest", e)
		}
	}
	s.take()
	if err := half(table, epoch.Add(time.Second), party(30), 1, s); !errors.Is(err, ErrNoRoom) {
		t.Errorf("all have one: %v", err)
	}
	if err := half(table, epoch.Add(time.Second), party(10), 2, s); !errors.Is(err, ErrNoRoom) {
		t.Errorf("one wants a second: %v", err)
	}
	s.none(t)
}

// TestConfig checks that invalid values are refused.
func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{Sessions: -1},
		{PerPort: 5000},
		{Window: 1},
		{Window: 5000},
		{Burst: -1},
		{Step: -5},
		{Timeout: -1},
		{Retries: -1},
		{SendLimit: -1},
		{MaxMessage: 10},
		{MaxMessage: 1 << 30},
		{ReceiveWindow: 65},
		{ReceiveLimit: -1},
		{Remember: -1},
		{Remembered: -1},
	} {
		if _, err := New[int](c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	table := newTable(t, Config{})
	if c := table.cfg; c.Sessions != 4096 || c.Window != 64 || c.Timeout != 2*time.Second || len(c.Accept) != 1 || c.MaxMessage != 8184 {
		t.Errorf("defaults are %+v", c)
	}
}
