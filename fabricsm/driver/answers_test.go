package driver

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// narrow is a wire that takes as many packets as a test says.
type narrow struct {
	transport.Port
	room int
	sent []transport.Packet
}

func (n *narrow) TrySend(p []transport.Packet) (int, error) {
	k := min(len(p), n.room)
	n.sent = append(n.sent, p[:k]...)
	n.room -= k
	return k, nil
}

func (n *narrow) TryReceive([]transport.Packet) (int, error) { return 0, nil }
func (n *narrow) Pause(time.Duration) error                  { return nil }
func (n *narrow) Wait() error                                { return nil }

// onNarrow is a loop over such a wire, not begun.
func onNarrow(t *testing.T) (*loop, *poller, *narrow) {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	port, err := sim.New(l).Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	n := &narrow{Port: port}
	loop := newLoop(Options{Port: n})
	loop.now = time.Now()
	return loop, newPoller(n), n
}

func answerTo(tid ib.TID, manager bool) *sm.Response {
	r := &sm.Response{LID: ib.PermissiveLID, Manager: manager}
	mad.NewSMP(&r.MAD, mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrSMInfo, TID: tid}, &mad.Route{}, ib.MKey{})
	return r
}

// TestAnswersWaitBehindRequests: while the wire takes nothing, the number of waiting answers is bounded and the newest are
// kept. Our requests go first, then answers to other managers.
func TestAnswersWaitBehindRequests(t *testing.T) {
	l, p, wire := onNarrow(t)
	const flood = 100_000
	l.answers.add(answerTo(1, true))
	for i := range ib.TID(flood) {
		l.answers.add(answerTo(1000+i, false))
		if i%1000 == 0 {
			if _, err := l.push(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(l.send) + l.answers.others.n + l.answers.managers.n; n > 2*mostAnswers {
		t.Errorf("%d answers wait, want %d at most", n, 2*mostAnswers)
	}
	ask := sm.Request{ID: 1, LID: ib.PermissiveLID}
	mad.NewSMP(&ask.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, &mad.Route{}, ib.MKey{})
	l.send = append(l.send, transport.Packet{MAD: ask.MAD, LID: ask.LID})
	l.answers.add(answerTo(2, true))
	wire.room = 1 << 20
	if _, err := l.push(p); err != nil {
		t.Fatal(err)
	}
	asked, second := -1, -1
	for i := range wire.sent {
		switch m := &wire.sent[i].MAD; {
		case m.Method() == mad.MethodGet:
			asked = i
		case m.TID() == 2:
			second = i
		}
	}
	if asked < 0 || asked > atOnce || second != asked+1 {
		t.Errorf("our request went as number %d, and the answer to a manager as %d: want at most %d, and right after it", asked, second, atOnce)
	}
	if last := wire.sent[len(wire.sent)-1].MAD.TID(); last != 1000+flood-1 {
		t.Errorf("the last answer is that to %d, want the newest", last)
	}
	if len(wire.sent) > 2*mostAnswers+2 || l.answers.dropped == 0 {
		t.Errorf("%d were sent, %d dropped", len(wire.sent), l.answers.dropped)
	}
}

// TestRequestsAreSentAgainInAFlood: during a flood, repeatable requests are sent again with the same transaction id, until
// they are answered or given up; others are not. Without a flood only requests to other subnet managers are sent again.
func TestRequestsAreSentAgainInAFlood(t *testing.T) {
	for _, flood := range []bool{false, true} {
		l, p, wire := onNarrow(t)
		wire.room = 1 << 20
		began := l.now
		kinds := []struct {
			method mad.Method
			attr   mad.AttrID
			again  bool
		}{
			{mad.MethodGet, mad.AttrPortInfo, flood},
			{mad.MethodSet, mad.AttrPKeyTable, flood},
			{mad.MethodSet, mad.AttrPortInfo, false},
			{mad.MethodSet, mad.AttrSMInfo, false},
			{mad.MethodGet, mad.AttrSMInfo, true},
		}
		if flood {
			l.gate.crowding.note(l.now, crowdCount)
		}
		for i, k := range kinds {
			r := sm.Request{ID: sm.RequestID(i + 1), LID: ib.PermissiveLID}
			mad.NewSMP(&r.MAD, mad.Header{Method: k.method, Attr: k.attr}, &mad.Route{}, ib.MKey{})
			l.send = append(l.send, transport.Packet{MAD: r.MAD, LID: r.LID})
			l.out.begin(&r, &l.send[len(l.send)-1].MAD)
		}
		for l.now.Sub(began) < l.out.wait+l.out.slack {
			if _, err := l.push(p); err != nil {
				t.Fatal(err)
			}
			l.now = l.now.Add(time.Millisecond)
		}
		if want := l.out.wait; flood != (l.now.Sub(began) >= 3*want) {
			t.Errorf("flood %v: requests are given up after %v", flood, l.now.Sub(began))
		}
		for _, k := range kinds {
			count, tids := 0, make(map[ib.TID]bool)
			for i := range wire.sent {
				if m := &wire.sent[i].MAD; m.Method() == k.method && m.Attr() == k.attr {
					count++
					tids[m.TID()] = true
				}
			}
			if len(tids) != 1 || k.again != (count > 3) || !k.again && count != 1 || count > 12 {
				t.Errorf("flood %v: %v %v was sent %d times with %d transaction ids", flood, k.method, k.attr, count, len(tids))
			}
		}
		for {
			if _, ok := l.out.expired(l.now.Add(time.Second)); !ok {
				break
			}
		}
		if l.out.managers != 0 {
			t.Errorf("%d questions to managers count as out", l.out.managers)
		}
	}
}
