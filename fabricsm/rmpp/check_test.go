package rmpp

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

var key = ib.NewSAKey(0x1122334455667788)

// checkTable checks the state of a table against its rules.
func checkTable(t testing.TB, x *Table[int]) {
	t.Helper()
	if len(x.sessions) > x.cfg.Sessions || len(x.due) != len(x.sessions) || len(x.memory.at) > x.cfg.Remembered {
		t.Fatalf("%d transactions, %d due, %d remembered", len(x.sessions), len(x.due), len(x.memory.at))
	}
	for i, s := range x.due {
		if s.index != i || x.sessions[s.place] != s || i > 0 && x.before(s, x.due[(i-1)/2]) {
			t.Fatalf("due %d is out of place", i)
		}
		if s.at.After(s.endAt) {
			t.Fatalf("due %v after its end", s.at.Sub(s.endAt))
		}
	}
	total := 0
	for base, p := range x.ports {
		n := 0
		for s := p.head; s != nil; s = s.next {
			n++
			if s.port != p || s.next != nil && s.next.prev != s || x.sessions[s.place] != s {
				t.Fatalf("port %v: its list is broken", base)
			}
		}
		if p.base != base || n != p.count || n == 0 || n > x.cfg.PerPort {
			t.Fatalf("port %v: counts %d, has %d", base, p.count, n)
		}
		total += n
	}
	if total != len(x.sessions) {
		t.Fatalf("ports have %d transactions of %d", total, len(x.sessions))
	}
	listed := 0
	for n, p := range x.byCount {
		for ; p != nil; p = p.next {
			listed++
			if p.count != n || x.ports[p.base] != p || p.next != nil && p.next.prev != p {
				t.Fatalf("port %v with %d is listed under %d", p.base, p.count, n)
			}
		}
	}
	if listed != len(x.ports) {
		t.Fatalf("%d ports are listed of %d", listed, len(x.ports))
	}
	sending := 0
	for at, s := range x.sessions {
		if at != s.place {
			t.Fatal("a transaction is at the wrong place")
		}
		if !at.sending {
			if n := cap(s.recv.buf); n > maxIdleBuffer && n > segments(s.recv.max)*mad.SADataSize || len(s.recv.buf) > segments(s.recv.max)*mad.SADataSize {
				t.Fatalf("holds %d bytes of a message of at most %d", n, s.recv.max)
			}
			continue
		}
		sending++
		d := &s.send
		if d.sent > d.window || uint64(d.sent) > uint64(d.acked)+uint64(d.cap) || len(d.held) > x.cfg.Window+2 && len(d.held) != narrow {
			t.Fatalf("sent %d, acknowledged %d, window %d, holds %d", d.sent, d.acked, d.window, len(d.held))
		}
	}
	if s := x.Stats(); s.Sending != sending || s.Receiving != len(x.sessions)-sending || s.Opened < uint64(len(x.sessions)) {
		t.Fatalf("%+v, with %d transactions, %d of which send", s, len(x.sessions), sending)
	}
}
