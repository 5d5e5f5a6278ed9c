package sa_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/stage"
	"portcullis/fabricsm/transport"
)

func packetOf(class mad.Class, method mad.Method, lid ib.LID) *transport.Packet {
	p := &transport.Packet{LID: lid, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: class, ClassVersion: 1, Method: method, Attr: mad.AttrNotice})
	return p
}

// One port that floods in classes that nobody serves, and with SMPs, takes nothing from
// others, and is told of by its place.
func TestFrontLimitsEveryClass(t *testing.T) {
	r := newRig(t, nil)
	f := r.Administration().Front()
	now := stage.Epoch.Add(r.Now())
	h1, h2 := r.Fabric.PortInfo("h1", 1).LID, r.Fabric.PortInfo("h2", 1).LID
	kinds := []*transport.Packet{
		packetOf(mad.ClassComMgt, mad.MethodSend, h1), packetOf(mad.ClassPerf, mad.MethodGetResp, h1),
		packetOf(mad.ClassSubn, mad.MethodTrap, h1), packetOf(mad.ClassSubn, mad.MethodGet, h1),
	}
	passed := 0
	for i := range 100_000 {
		if f.Admit(now.Add(time.Duration(i)*time.Microsecond), kinds[i%len(kinds)]) {
			passed++
		}
	}
	now = now.Add(100 * time.Millisecond)
	cfg := limiter.DefaultConfig()
	most := cfg.Other.Node.Burst + cfg.Other.Node.Rate/10 + cfg.Management.Node.Burst + cfg.Management.Node.Rate/10
	if passed > most {
		t.Errorf("%d packets of one port passed in 0.1 s, want at most %d", passed, most)
	}
	for _, p := range kinds {
		other := *p
		other.LID = h2
		if !f.Admit(now, &other) {
			t.Errorf("class %v of another port is dropped", p.MAD.Class())
		}
	}
	if got := testing.AllocsPerRun(100, func() { f.Admit(now, kinds[0]) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
	events := f.Tell(f.Next())
	if len(events) != 1 {
		t.Fatalf("told %v, want one port", events)
	}
	v := events[0].(*sa.Violation)
	if v.Verdict != trust.Flood || v.GUID != r.GUID("h1", 1) || v.Place != r.Place("h1", 1) || v.Count < uint64(100_000-most) {
		t.Errorf("told %v", v)
	}
	s := f.Status()
	if len(s.Violations) != 1 || s.Violations[0].GUID != v.GUID || s.Violations[0].Count != v.Count {
		t.Errorf("listed %v", s.Violations)
	}
	if n := s.Limiter[limiter.Management][limiter.NodeRate] + s.Limiter[limiter.Other][limiter.NodeRate]; n < v.Count || s.Limiter[limiter.Management][limiter.Pass] == 0 {
		t.Errorf("%d are counted as dropped, of %d", n, v.Count)
	}
}

// Directed routes have no LID, and are told apart by the way that they came.
func TestFrontTellsRoutesApart(t *testing.T) {
	f := newRig(t, nil).Administration().Front()
	now := stage.Epoch
	of := func(ports ...byte) *transport.Packet {
		p := packetOf(mad.ClassSubnDR, mad.MethodGet, ib.PermissiveLID)
		copy(p.MAD.ReturnPath(), ports)
		return p
	}
	flood := of(0, 5, 1, 3)
	for range 100_000 {
		f.Admit(now, flood)
	}
	dropped := 0
	for port := byte(1); port <= 100; port++ {
		if !f.Admit(now, of(0, 5, 1, 3, port)) {
			dropped++
		}
	}
	if f.Admit(now, flood) || dropped > 10 {
		t.Errorf("the flood passes, or takes %d of 100 others with it", dropped)
	}
}
