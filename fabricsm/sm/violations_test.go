package sm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/violation"
)

// offered is what an attacker shows as a key. It may be another device's right
// one, so it must not come out anywhere.
const offered = uint64(0xfeedfacecafebeef)

// TestViolationNamesThePlace: the result of each kind of attack by a host, with the reports that the simulated devices send
// of it.
func TestViolationNamesThePlace(t *testing.T) {
	type try func(t *testing.T, e *env, from, other *endPort)
	inject := func(d func(e *env, from, other *endPort) sim.Data) try {
		return func(t *testing.T, e *env, from, other *endPort) {
			t.Helper()
			if _, err := e.fab.Inject(sim.Endpoint{Node: from.node.Name, Port: from.num}, d(e, from, other)); err != nil {
				t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
		}
	}
	for _, tt := range []struct {
		name string
		do   try
		want violation.Violation // of which are compared: kind, trap, traced, verdict, P_Key, detail, counted
		at   func(e *env, from, other *endPort) ib.Place
	}{
		{
			name: "SubnSet over a directed route",
			do: func(_ *testing.T, e *env, from, _ *endPort) {
				way := mad.MakeRoute(from.num)
				e.forge(from.node.Name, smp(mad.MethodSet, mad.AttrLinearForwardingTable, &way, 0))
			},
			want: violation.Violation{Kind: violation.BadMKey, Trap: 256, By: violation.ByWay, Verdict: violation.Confirmed, Detail: "Set LinearForwardingTable", Counted: 1},
			at:   func(_ *env, _, _ *endPort) ib.Place { return ib.Place{} },
		},
		{
			name: "SubnGet by LID",
			do: func(_ *testing.T, e *env, from, other *endPort) {
				m := smp(mad.MethodGet, mad.AttrPortInfo, nil, e.lidOf(other))
				m.SLID = e.lidOf(from)
				e.forge(from.node.Name, m)
			},
			want: violation.Violation{Kind: violation.BadMKey, Trap: 256, By: violation.ByLID, Verdict: violation.Confirmed, Detail: "Get PortInfo", Counted: 1},
			at:   func(_ *env, _, other *endPort) ib.Place { return other.place },
		},
		{
			name: "data with a tenant's P_Key",
			do: inject(func(e *env, from, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(from), DLID: e.lidOf(other), PKey: 0x8002, DestQP: 9, Payload: 64}
			}),
			want: violation.Violation{Kind: violation.BadPKey, Trap: 259, By: violation.ByPort, PKey: 0x8002, Detail: "stopped by the switch"},
			at:   func(_ *env, from, _ *endPort) ib.Place { return from.place },
		},
		{
			name: "data with a tenant's P_Key under another's LID",
			do: inject(func(e *env, _, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(other), DLID: e.lidOf(other), PKey: 0x8002, DestQP: 9, Payload: 64}
			}),
			want: violation.Violation{Kind: violation.BadPKey, Trap: 259, By: violation.ByPort, PKey: 0x8002, Detail: "stopped by the switch"},
			at:   func(_ *env, from, _ *endPort) ib.Place { return from.place },
		},
		{
			name: "datagram with a wrong Q_Key",
			do: inject(func(e *env, from, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(from), DLID: e.lidOf(other), PKey: 0x8001, DestQP: 1, QKey: 0xfeedface, Payload: 64}
			}),
			want: violation.Violation{Kind: violation.BadQKey, Trap: 258, By: violation.ByLID, Verdict: violation.Confirmed, Detail: "queue pair 0x1", Counted: 1},
			at:   func(_ *env, _, other *endPort) ib.Place { return other.place },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, hs := settledKeyed(t)
			from, other := &hs[0], &hs[1]
			before := e.sets()
			tt.do(t, e, from, other)
			e.run(3 * time.Second)
			events := e.takeEvents()
			noSecrets(t, events)
			if got := loud(events, tt.want.Kind); !slices.Equal(got, []uint64{1}) && !slices.Equal(got, []uint64{1, 1}) {
				t.Errorf("told with counts %v, want it told when it came, and once more when it was proven", got)
			}
			rows := e.listed(tt.want.Kind)
			if len(rows) != 1 {
				t.Fatalf("%d rows, want 1: %+v; all %+v", len(rows), rows, e.view.Violations)
			}
			got := rows[0]
			if got.Place != from.place || got.GUID != from.node.PortGUID(from.num) {
				t.Errorf("source %v, port %v; want %v, port %v", got.Place, got.GUID, from.place, from.node.PortGUID(from.num))
			}
			if want := tt.at(e, from, other); got.ReporterPlace != want || got.Reporter == 0 {
				t.Errorf("reported by %v at %v, want %v", got.Reporter, got.ReporterPlace, want)
			}
			if got.Count != 1 || got.First.IsZero() || got.Last.Before(got.First) {
				t.Errorf("count %d, from %v to %v", got.Count, got.First, got.Last)
			}
			short := violation.Violation{Kind: got.Kind, Trap: got.Trap, By: got.By, Verdict: got.Verdict, PKey: got.PKey, Detail: got.Detail, Counted: got.Counted}
			if d := cmp.Diff(tt.want, short); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if n := e.sets() - before; n != 0 {
				t.Errorf("%d Sets followed", n)
			}
		})
	}
}

// TestTraceIsNotFooled: a sender that writes hops into the return path, as if its
// SMP came from further away, is found where it is.
func TestTraceIsNotFooled(t *testing.T) {
	e, hs := settledKeyed(t)
	from := &hs[0]
	way := mad.MakeRoute(9, 9, from.num) // two hops that are said to be over
	m := smp(mad.MethodSet, mad.AttrPortInfo, &way, 0)
	m.MAD.SetHopPointer(2)
	m.MAD.ReturnPath()[1], m.MAD.ReturnPath()[2] = 2, 3
	e.forge(from.node.Name, m)
	e.run(3 * time.Second)
	for _, v := range e.listed(violation.BadMKey) {
		if v.By != violation.ByWay || v.Place != from.place {
			t.Errorf("%v: want it traced to %v", &v, from.place)
		}
	}
	way = mad.MakeRoute(from.num)
	f := notice(t, e.lidOf(from), e.view.LID, 9, &mad.Trap256{
		NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey}, Method: mad.MethodSet,
		DRNotice: true, DRHopCount: 29, DRReturnPath: [30]ib.PortNum{29: 77, 28: 255}, DrSLID: ib.PermissiveLID, MKey: ib.NewMKey(offered),
	})
	e.forge(from.node.Name, f)
	e.run(3 * time.Second)
	noSecrets(t, e.takeEvents())
	if rows := e.listed(violation.BadMKey); !slices.ContainsFunc(rows, func(v violation.Violation) bool { return v.Place.IsZero() && v.Verdict == violation.Refuted }) {
		t.Errorf("a way that leads nowhere: %+v", rows)
	}
}

// TestForgedTrapsFrameNobody: a host sends traps in the name of switches and of other hosts that accuse a third host.
// Nothing happens to the third, the reports are refuted or reported as forged, and nothing is written.
func TestForgedTrapsFrameNobody(t *testing.T) {
	e, hs := settledKeyed(t)
	often := health.Rule{Count: 3, Window: time.Hour, Action: health.Disable}
	e.cfg.Health = health.Config{Noisy: often}
	e.start()
	e.want(e.intent)
	e.mustSettle(time.Minute)
	e.takeEvents()
	attacker, victim, witness := &hs[0], &hs[1], &hs[2]
	to := e.view.LID
	leaf := e.fab.PortInfo(victim.peer, 0).LID
	head := func(num mad.TrapNum, issuer ib.LID) mad.NoticeHeader {
		return mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: num, IssuerLID: issuer}
	}
	before := e.sets()
	for i := range 40 {
		tid := ib.TID(100 + 10*i)
		v, w := e.lidOf(victim), e.lidOf(witness)
		for _, m := range []*sim.Forged{
			notice(t, w, to, tid, &mad.Trap256{NoticeHeader: head(mad.TrapBadMKey, w), LID: v, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo, MKey: ib.NewMKey(offered)}),
			notice(t, w, to, tid+1, &mad.Trap257{NoticeHeader: head(mad.TrapBadPKey, w), LIDADDR1: v, LIDADDR2: w, Key: 0x8001}),
			notice(t, leaf, to, tid+2, &mad.Trap256{NoticeHeader: head(mad.TrapBadMKey, leaf), LID: v, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo}),
			notice(t, w, to, tid+3, &mad.Trap256{NoticeHeader: head(mad.TrapBadMKey, leaf), LID: v, Method: mad.MethodSet}),  // another issuer
			notice(t, v, to, tid+4, &mad.Trap144{NoticeHeader: head(mad.TrapLocalChange, v), LID: v}),                        // noise
			notice(t, w, to, tid+5, &mad.Trap64{NoticeHeader: head(mad.TrapGIDOutOfService, w)}),                             // the SA's
			notice(t, w, to, tid+6, &mad.Trap128{NoticeHeader: head(mad.TrapLinkStateChange, w), SwitchLID: w}),              // a host is no switch
			notice(t, leaf, to, tid+7, &mad.Trap259{NoticeHeader: head(mad.TrapBadPKeySwitch, leaf), PKey: 1, PortNum: 200}), // no such port
		} {
			e.forge(attacker.node.Name, m)
		}
		e.run(100 * time.Millisecond)
	}
	e.run(5 * time.Second)
	events := e.takeEvents()
	noSecrets(t, events)
	for _, h := range []*endPort{attacker, victim, witness} {
		if s := e.fab.PortInfo(h.peer, h.pnum).PortState; s != ib.PortActive {
			t.Errorf("%s is %v after traps alone", h.node.Name, s)
		}
	}
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d Sets followed", n)
	}
	if u, ok := find(events, func(u *health.Unhealthy) bool { return u.Action != health.Report }); ok {
		t.Errorf("acted upon: %v", u)
	}
	for _, kind := range []violation.Kind{violation.BadMKey, violation.BadPKey} {
		rows := e.listed(kind)
		if len(rows) == 0 {
			t.Errorf("%v is not listed", kind)
		}
		for _, v := range rows {
			if v.Verdict != violation.Refuted || v.Count != 40 || v.Place != victim.place || v.By != violation.ByLID {
				t.Errorf("want 40 refuted reports: %+v", v)
			}
		}
	}
	if total := e.view.Violations.Totals[violation.ForgedTrap].Reported; total != 160 {
		t.Errorf("%d forged traps, want 160: %+v", total, e.listed(violation.ForgedTrap))
	}
}

// TestViolationSequence: a thousand violations are logged by the sequence, are in the stream with their exact number, and
// in the view. Those of a second violator in between are not lost among them.
func TestViolationSequence(t *testing.T) {
	e, hs := settledKeyed(t)
	to := e.view.LID
	w := e.lidOf(&hs[2])
	report := func(tid int, source ib.LID) {
		e.forge(hs[0].node.Name, notice(t, w, to, ib.TID(tid), &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapBadMKey}, LID: source, Method: mad.MethodSet, AttributeID: mad.AttrSMInfo,
		}))
	}
	for i := range 1000 {
		report(10*i+1, e.lidOf(&hs[0]))
		if i%100 == 50 {
			report(10*i+2, e.lidOf(&hs[1]))
		}
		report(10*i+1, e.lidOf(&hs[0])) // once more: it was not repressed
		e.run(5 * time.Millisecond)
	}
	e.run(3 * time.Second)
	last, counts := map[ib.Place]uint64{}, map[ib.Place][]uint64{}
	events := e.takeEvents()
	for _, ev := range events {
		if v, ok := ev.(*violation.Violation); ok && v.Kind == violation.BadMKey {
			if last[v.Place] = v.Count; !v.Quiet && v.Verdict == violation.Claimed {
				counts[v.Place] = append(counts[v.Place], v.Count)
			}
		}
	}
	if want := map[ib.Place]uint64{hs[0].place: 1000, hs[1].place: 10}; !cmp.Equal(want, last) {
		t.Errorf("the last events count (-want +got):\n%s", cmp.Diff(want, last))
	}
	for place, list := range counts {
		if len(list) > 12 || list[0] != 1 {
			t.Errorf("%v: the log is told of %v", place, list)
		}
	}
	if len(events) > 60 {
		t.Errorf("%d events", len(events))
	}
	rows := e.listed(violation.BadMKey)
	if len(rows) != 2 || rows[0].Count != 1000 || rows[1].Count != 10 || rows[0].Repeats == 0 {
		t.Errorf("rows %+v", rows)
	}
}

// TestViolationRowsAreBounded: a host that varies all fields of a report fills the rows of its pool, and no count is lost.
func TestViolationRowsAreBounded(t *testing.T) {
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.Violations = violation.Config{Rows: 64, RowsPerSource: 8}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	way := mad.MakeRoute(hs[3].num)
	e.forge(hs[3].node.Name, smp(mad.MethodSet, mad.AttrSwitchInfo, &way, 0)) // one that is true
	e.run(2 * time.Second)
	e.takeEvents()
	const n = 5000
	told := 0
	for i := range n {
		in := notice(t, 0, 0, ib.TID(i+1), &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapBadMKey}, LID: ib.LID(1 + i%3000), Method: mad.Method(i % 128),
			AttributeID: mad.AttrID(i), MKey: ib.NewMKey(uint64(i)),
		})
		e.step(&sm.Received{MAD: in.MAD, LID: e.lidOf(&hs[i%len(hs)])})
		if i%1000 == 999 {
			e.run(10 * time.Millisecond)
		}
	}
	e.run(5 * time.Second)
	for _, ev := range e.takeEvents() {
		if v, ok := ev.(*violation.Violation); ok && !v.Quiet {
			told++
		}
	}
	rows := e.listed(violation.BadMKey)
	sum, others, confirmed := uint64(0), 0, 0
	for _, v := range rows {
		sum += v.Count
		if v.Others {
			others++
		}
		if v.Verdict == violation.Confirmed {
			confirmed++
		}
	}
	if len(e.view.Violations.Rows) > 64+violation.NumKinds || others == 0 || sum != n+1 {
		t.Errorf("%d rows, %d for others, %d reports, want at most %d rows and %d reports", len(e.view.Violations.Rows), others, sum, 64+violation.NumKinds, n+1)
	}
	if confirmed != 1 {
		t.Errorf("%d rows are confirmed, want the one that was true: claims took its room", confirmed)
	}
	if told > 120 {
		t.Errorf("the log was told %d times of %d reports", told, n)
	}
	if got := e.view.Violations.Totals[violation.BadMKey].Reported; got != n+1 {
		t.Errorf("total %d, want %d", got, n+1)
	}
}

// TestKeyGuessing: a host that tries keys is reported with the number that the device itself counted, although the device
// reports only a sample.
func TestKeyGuessing(t *testing.T) {
	e, hs := settledKeyed(t)
	before := uint64(0) // our own, of the bring-up
	if v := e.view.Violations; v != nil {
		before = v.Totals[violation.BadMKey].Counted
	}
	way := mad.MakeRoute(hs[0].num)
	for i := range 300 {
		m := smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
		m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
		m.MAD.SetTID(ib.TID(i))
		e.forge(hs[0].node.Name, m)
		e.run(20 * time.Millisecond)
	}
	e.run(10 * time.Second)
	events := e.takeEvents()
	noSecrets(t, events)
	guessed := uint64(0)
	for _, ev := range events {
		if g, ok := ev.(*violation.KeyGuessing); ok {
			if guessed = g.Count; g.GUID != e.list.Find(hs[0].peer).PortGUID(0) && g.GUID != e.list.Find(hs[0].peer).GUID {
				t.Errorf("keys of %v are guessed, want those of %s", g.GUID, hs[0].peer)
			}
		}
	}
	if guessed < 200 {
		t.Errorf("told of %d guesses, want 200 or more", guessed)
	}
	total := e.view.Violations.Totals[violation.BadMKey]
	if total.Counted-before != 300 || total.Reported == 0 || total.Reported > 300 {
		t.Errorf("counted %d, reported %d, want 300 counted", total.Counted, total.Reported)
	}
	rows := e.listed(violation.BadMKey)
	if len(rows) != 1 || rows[0].Counted != 300 || rows[0].Verdict != violation.Confirmed {
		t.Errorf("rows %+v", rows)
	}
}

// TestLapsedProtection: a device whose lease ran out is reported, and protected again, under
// another key: the one that each host could read opens nothing.
func TestLapsedProtection(t *testing.T) {
	l := tree(t, 4, 4)
	cfg := keyed(t)
	cfg.MKey.Lease = 2
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	h := hosts(l)[0]
	e.start()
	e.mustSettle(time.Minute)
	e.takeEvents()
	way := mad.MakeRoute(h.num)
	readable := e.fab.PortInfo(h.peer, 0).MKey
	e.mangle = nil
	e.forge(h.node.Name, smp(mad.MethodSet, mad.AttrSwitchInfo, &way, 0))
	e.inbox = nil // the trap is lost, and the subnet manager does nothing for three seconds
	e.now = e.now.Add(3 * time.Second)
	e.advance(e.now)
	e.inbox = nil
	e.run(20 * time.Second)
	e.mustSettle(time.Minute)
	p, ok := find(e.takeEvents(), func(*keyevent.ProtectionLapsed) bool { return true })
	if !ok || p.GUID != l.Find(h.peer).GUID && p.GUID != l.Find(h.peer).PortGUID(0) {
		t.Errorf("told %v", p)
	}
	if now := e.fab.PortInfo(h.peer, 0).MKey; now.Equal(readable) || e.obeys(h, readable) {
		t.Error("the key that everybody could read is still obeyed")
	}
	e.checkKeys()
}
