package driver

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// directed is a request over a route, as the core makes it.
func directed(id sm.RequestID, attr mad.AttrID, mod uint32, route mad.Route) *sm.Request {
	r := &sm.Request{ID: id, LID: ib.PermissiveLID}
	mad.NewSMP(&r.MAD, mad.Header{Method: mad.MethodGet, TID: ib.TID(id), Attr: attr, Mod: mod}, &route, ib.MKey{})
	return r
}

// TestAnswersThatAreBelieved: only what could come from where the request went
// ends it.
func TestAnswersThatAreBelieved(t *testing.T) {
	byLID := &sm.Request{ID: 8, LID: 7}
	mad.NewSMP(&byLID.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, nil, ib.MKey{})
	tests := []struct {
		name    string
		request *sm.Request
		change  func(*transport.Packet)
		want    verdict
	}{
		{"the answer", nil, func(*transport.Packet) {}, taken},
		{"upper half of another", nil, func(p *transport.Packet) { p.MAD.SetTID(p.MAD.TID() | 5<<48) }, taken},
		{"came back undelivered", nil, func(p *transport.Packet) { p.MAD.SetMethod(mad.MethodGet); p.Undelivered = true }, taken},
		{"another transaction", nil, func(p *transport.Packet) { p.MAD.SetTID(p.MAD.TID() ^ 1) }, stray},
		{"predicted transaction", nil, func(p *transport.Packet) { p.MAD.SetTID(7) }, stray},
		{"another attribute", nil, func(p *transport.Packet) { p.MAD.SetAttr(mad.AttrNodeInfo) }, forged},
		{"another modifier", nil, func(p *transport.Packet) { p.MAD.SetMod(4) }, forged},
		{"another route", nil, func(p *transport.Packet) { p.MAD.InitialPath()[1] = 9 }, forged},
		{"another length of route", nil, func(p *transport.Packet) { p.MAD[7] = 1 }, forged},
		{"on the way out", nil, func(p *transport.Packet) { p.MAD.SetReturning(false) }, forged},
		{"routed by LID", nil, func(p *transport.Packet) { p.MAD[1] = byte(mad.ClassSubn) }, forged},
		{"another base version", nil, func(p *transport.Packet) { p.MAD[0] = 2 }, forged},
		{"from the LID asked", byLID, func(*transport.Packet) {}, taken},
		{"from another LID", byLID, func(p *transport.Packet) { p.LID = 8 }, forged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.request
			if r == nil {
				r = directed(7, mad.AttrPortInfo, 3, mad.MakeRoute(1, 5))
			}
			var out timeouts
			out.init(time.Second)
			m := r.MAD
			out.begin(r, &m)
			honest := transport.Packet{MAD: m, LID: r.LID}
			honest.MAD.Respond(mad.StatusOK)
			p := honest
			tt.change(&p)
			id, got := out.end(&p)
			if got != tt.want || got == taken && id != r.ID {
				t.Fatalf("request %d: verdict %d, want %d", id, got, tt.want)
			}
			second := late
			if tt.want != taken {
				second = taken
			}
			if _, got := out.end(&honest); got != second {
				t.Errorf("the honest answer after it: verdict %d, want %d", got, second)
			}
		})
	}
}

// TestTransactionsCannotBePredicted: two runs that send the same have no
// transaction id in common, and none follows from the one before.
func TestTransactionsCannotBePredicted(t *testing.T) {
	const n = 1000
	steps := map[transaction]int{}
	seen := map[transaction]bool{}
	for range 2 {
		var out timeouts
		out.init(time.Second)
		last := transaction(0)
		for i := range n {
			r := directed(sm.RequestID(i+1), mad.AttrNodeInfo, 0, mad.Route{})
			m := r.MAD
			out.begin(r, &m)
			tid := transaction(m.TID())
			steps[tid-last]++
			seen[tid] = true
			last = tid
		}
	}
	if len(seen) < 2*n-2 || len(steps) < 2*n-2 {
		t.Errorf("%d transaction ids and %d distances among %d requests: they can be predicted", len(seen), len(steps), 2*n)
	}
}

// TestExpiredIsLate: an answer after its time is known as such, and not taken
// for a forgery.
func TestExpiredIsLate(t *testing.T) {
	var out timeouts
	out.init(time.Second)
	r := directed(7, mad.AttrNodeInfo, 0, mad.Route{})
	m := r.MAD
	out.begin(r, &m)
	now := time.Unix(1000, 0)
	out.stamp(now)
	if id, ok := out.expired(now.Add(time.Second)); !ok || id != r.ID {
		t.Fatalf("expired: request %d, %v; want %d", id, ok, r.ID)
	}
	m.Respond(mad.StatusOK)
	if _, got := out.end(&transport.Packet{MAD: m, LID: ib.PermissiveLID}); got != late {
		t.Errorf("verdict %d, want late", got)
	}
}
