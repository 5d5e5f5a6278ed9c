package sm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// trapFrom steps in a trap as an end port with this LID would send it.
func (e *env) trapFrom(lid ib.LID, num mad.TrapNum) {
	e.t.Helper()
	in := &sm.Received{LID: lid}
	mad.NewSMP(&in.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(e.seq)}, nil, ib.MKey{})
	if err := mad.Encode(in.MAD.Data(), &mad.NoticeHeader{IsGeneric: true, TrapNumber: num, IssuerLID: lid}); err != nil {
		e.t.Fatal(err)
	}
	e.step(in)
}

func (e *env) lidOf(h *endPort) ib.LID {
	f := e.view.Fabric
	return f.Port(f.PortByGUID(h.node.PortGUID(h.num))).LID
}

// TestTrapFlood: a host that sends a thousand traps a second, each with another
// name when asked, costs a bounded number of requests, does not unsettle the
// fabric and does not delay that a true change elsewhere is seen.
func TestTrapFlood(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	bad, other := hs[2], hs[5]
	names := 0
	e.hostile = map[string]liar{bad.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 || r.MAD.Attr() != mad.AttrNodeDescription {
			return mad.MAD{}, false
		}
		names++
		m := r.MAD
		m.Respond(mad.StatusOK)
		copy(m.Data(), fmt.Sprintf("name %d", names))
		return m, true
	}}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(20 * time.Second)
	e.takeEvents()
	before, lid := requests(e), e.lidOf(&bad)
	for range 5000 {
		e.trapFrom(lid, mad.TrapLocalChange)
		e.trapFrom(0xB000+ib.LID(e.steps%1000), mad.TrapLinkStateChange) // no port has those
		e.run(time.Millisecond)
	}
	if n := requests(e) - before; n > 60 {
		t.Errorf("%d requests in five seconds of traps, want at most 60: %v", n, e.smps)
	}
	events := e.takeEvents()
	if e, ok := find(events, func(*sm.Settled) bool { return true }); ok {
		t.Errorf("traps of a host unsettled the fabric: %v", e)
	}
	if len(events) > 60 {
		t.Errorf("%d events, want at most 60", len(events))
	}
	e.fab.Unlink(other.node.Name, other.num)
	for range 50 {
		e.trapFrom(lid, mad.TrapLocalChange)
		e.advance(e.now.Add(time.Millisecond))
		for e.next(e.now) {
		}
	}
	e.run(50 * time.Millisecond)
	if _, ok := find(e.takeEvents(), func(p *sm.PortGone) bool { return p.Place == other.place }); !ok {
		t.Error("a cable that was pulled is not seen within 100 ms while a host floods with traps")
	}
}

func requests(e *env) (n int) {
	for _, c := range e.smps {
		n += c
	}
	return n
}

// TestHalfAliveNode checks that a host that answers one request in ten is not reported silent and back all the time.
func TestHalfAliveNode(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	h := hosts(l)[3]
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(20 * time.Second)
	e.takeEvents()
	lid := e.lidOf(&h)
	e.hostile = map[string]liar{h.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		// It says that it is there, and no more.
		return mad.MAD{}, len(rest) == 0 && r.MAD.Attr() != mad.AttrNodeInfo
	}}
	until := e.now.Add(3 * time.Minute)
	for e.now.Before(until) {
		e.trapFrom(lid, mad.TrapLocalChange)
		e.run(100 * time.Millisecond)
	}
	silent, back := 0, 0
	for _, ev := range e.takeEvents() {
		switch ev.(type) {
		case *sm.NodeUnreachable:
			silent++
		case *sm.NodeBack:
			back++
		}
	}
	if silent == 0 || silent > 10 || back > 10 {
		t.Errorf("told silent %d times and back %d times in three minutes, want 1 to 10", silent, back)
	}
}

// TestGravestProblemsFirst checks that security problems are not pushed out of the list by a crowd of dead links.
func TestGravestProblemsFirst(t *testing.T) {
	l := tree(t, 160, 36)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	e.hostile = map[string]liar{}
	for _, h := range hs[10:130] {
		e.hostile[h.node.Name] = func([]ib.PortNum, *sm.Request) (mad.MAD, bool) { return mad.MAD{}, true }
	}
	bad := hs[140]
	e.hostile[bad.node.Name] = poser(49152)
	e.start()
	e.want(sm.Intent{Revision: 1, Hosts: places(hs)})
	e.run(5 * time.Second)
	p := e.problems()
	if len(p) != 101 || !strings.Contains(p[0], "a switch answers behind") || !strings.Contains(p[100], "and 21 more") {
		t.Errorf("%d problems, the first %q, the last %q; want 101: the posing switch first, and that there are 21 more", len(p), p[:min(len(p), 1)], p[max(0, len(p)-1):])
	}
}
