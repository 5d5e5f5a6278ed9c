package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// storms are what a host floods the subnet manager with, in its own name and in
// those of others.
func storms(t testing.TB, e *env, hs []endPort) map[string]*sim.Forged {
	t.Helper()
	to, own, other := e.view.LID, e.lidOf(&hs[0]), e.lidOf(&hs[1])
	leaf := e.fab.PortInfo(hs[2].peer, 0).LID
	head := func(n mad.TrapNum) mad.NoticeHeader { return mad.NoticeHeader{IsGeneric: true, TrapNumber: n} }
	return map[string]*sim.Forged{
		"local change":               notice(t, own, to, 1<<20, &mad.Trap144{NoticeHeader: head(mad.TrapLocalChange), LID: own}),
		"local change of another":    notice(t, other, to, 2<<20, &mad.Trap144{NoticeHeader: head(mad.TrapLocalChange), LID: other}),
		"link state of a switch":     notice(t, leaf, to, 3<<20, &mad.Trap128{NoticeHeader: head(mad.TrapLinkStateChange), SwitchLID: leaf}),
		"wrong M_Key":                notice(t, own, to, 4<<20, &mad.Trap256{NoticeHeader: head(mad.TrapBadMKey), LID: other, Method: mad.MethodSet}),
		"wrong M_Key at a switch":    notice(t, leaf, to, 5<<20, &mad.Trap256{NoticeHeader: head(mad.TrapBadMKey), LID: other, Method: mad.MethodSet}),
		"wrong P_Key at a switch":    notice(t, leaf, to, 6<<20, &mad.Trap259{NoticeHeader: head(mad.TrapBadPKeySwitch), LIDADDR1: other, PKey: 1, PortNum: 1, SwitchLID: leaf}),
		"from a LID that nobody has": notice(t, 0xB000, to, 7<<20, &mad.Trap144{NoticeHeader: head(mad.TrapLocalChange)}),
	}
}

// TestTrapStorm: a hundred thousand traps a second cost a bounded number of requests, no sweep and few events; all are
// counted. In the meantime a cable that is pulled is seen as fast, and a host that comes is brought up as fast, as without
// them.
func TestTrapStorm(t *testing.T) {
	e, hs := settledKeyed(t)
	all := storms(t, e, hs)
	quiet := e.reaction(&hs[5], nil)
	for name, storm := range all {
		t.Run(name, func(t *testing.T) {
			e.takeEvents()
			before, sets := requests(e), e.sets()
			const ticks, each = 200, 100 // of a millisecond
			for range ticks {
				e.storm(&hs[0], storm, each)
			}
			// With the checks of the global pace, what a switch is read after a trap, and a second's audit.
			if n := requests(e) - before; n > 120 {
				t.Errorf("%d requests in %d ms with %d traps, want at most 120: %v", n, ticks, ticks*each, e.smps)
			}
			if n := e.sets() - sets; n > 2 { // PortStateChange may be cleared
				t.Errorf("%d Sets", n)
			}
			if events := e.takeEvents(); len(events) > 80 {
				t.Errorf("%d events", len(events))
			}
			took := e.reaction(&hs[5], func() { e.storm(&hs[0], storm, each) })
			if took > quiet+20*time.Millisecond {
				t.Errorf("a host is gone and back after %v, without a storm after %v", took, quiet)
			}
			e.run(2 * time.Second)
			e.mustSettle(10 * time.Second)
			if got := e.view.Violations.Totals[violation.TrapStorm].Reported; got == 0 {
				t.Error("the storm is not reported")
			}
		})
	}
	sum := uint64(0)
	for _, total := range e.view.Violations.Totals {
		if total.Kind != violation.TrapStorm {
			sum += total.Reported + total.Repeated
		}
	}
	if traps := e.view.Counters.Traps; sum < traps {
		t.Errorf("%d of %d traps are counted by kind", sum, traps)
	}
	if lost := e.fab.Stats().Overflowed; lost != 0 {
		t.Fatalf("the station lost %d packets: it was not read in time", lost)
	}
}

// storm lets a millisecond pass in which so many copies of a datagram come.
func (e *env) storm(from *endPort, m *sim.Forged, n int) {
	e.t.Helper()
	for range n {
		m.MAD.SetTID(m.MAD.TID() + 1)
		e.forge(from.node.Name, m)
	}
	e.steps = 0
	e.run(time.Millisecond)
}

// reaction pulls the cable of a host, plugs it in again and returns the time until its port is active. tick is called all
// the while.
func (e *env) reaction(h *endPort, tick func()) time.Duration {
	e.t.Helper()
	if tick == nil {
		tick = func() { e.run(time.Millisecond) }
	}
	began := e.now
	if err := e.fab.Unlink(h.node.Name, h.num); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	gone := func() bool {
		_, ok := find(e.events, func(p *sm.PortGone) bool { return p.Place == h.place })
		return ok
	}
	for !gone() {
		if tick(); e.now.Sub(began) > 20*time.Second {
			e.t.Fatal("that a cable was pulled is not seen")
		}
	}
	if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	for e.fab.PortInfo(h.node.Name, h.num).PortState != ib.PortActive {
		if tick(); e.now.Sub(began) > 20*time.Second {
			e.t.Fatal("the host is not brought up")
		}
	}
	e.takeEvents()
	return e.now.Sub(began)
}

// BenchmarkTrapStorm steps one trap of a storm: the cost of a packet of an attacker.
func BenchmarkTrapStorm(b *testing.B) {
	l := tree(b, 64, 16)
	e := newEnv(b, l, sim.Options{LoseSilently: true}, keyed(b), 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	in := make([]*sm.Received, 0, len(hs))
	for i := range hs {
		lid := e.lidOf(&hs[i])
		m := notice(b, lid, e.view.LID, ib.TID(i+1), &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapBadMKey}, LID: lid, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo,
		})
		in = append(in, &sm.Received{MAD: m.MAD, LID: lid})
	}
	before, now := requests(e), e.now
	sent := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r := in[i%len(in)]
		r.MAD.SetTID(ib.TID(i + 1))
		now = now.Add(time.Microsecond)
		sent += len(e.core.Step(now, r).Send)
	}
	b.StopTimer()
	b.ReportMetric(float64(sent+requests(e)-before)/float64(b.N), "SMPs/op")
}
