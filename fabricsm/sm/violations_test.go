package sm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// offered is what an attacker shows as a key. It may be another device's right
// one, so it must not come out anywhere.
const offered = uint64(0xfeedfacecafebeef)

// forge sends a datagram from port 1 of a host, with all headers as they are.
func (e *env) forge(from string, m *sim.Forged) {
	e.t.Helper()
	if err := e.fab.InjectMAD(sim.Endpoint{Node: from, Port: 1}, *m); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}

// smp is an SMP that shows the key offered, over a directed route or, if route is
// nil, to a LID.
func smp(method mad.Method, attr mad.AttrID, route *mad.Route, lid ib.LID) *sim.Forged {
	f := &sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID}
	mad.NewSMP(&f.MAD, mad.Header{Method: method, Attr: attr, TID: 0x1234}, route, ib.NewMKey(offered))
	if route == nil {
		f.DLID = lid
	}
	return f
}

// notice is a trap with a notice, in the name of a LID.
func notice[T any](t testing.TB, slid, dlid ib.LID, tid ib.TID, n *T) *sim.Forged {
	t.Helper()
	f := &sim.Forged{SLID: slid, DLID: dlid}
	mad.NewSMP(&f.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: tid}, nil, ib.MKey{})
	if err := mad.Encode(f.MAD.Data(), n); err != nil {
		t.Fatal(err)
	}
	return f
}

// listed gives the violations of the last view of a kind.
func (e *env) listed(kind sm.ReportKind) (out []sm.Violation) {
	if e.view.Violations == nil {
		return nil
	}
	for _, v := range e.view.Violations.Rows {
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	return out
}

// loud gives the counts at which violations of a kind were told to the log.
func loud(events []sm.Event, kind sm.ReportKind) (counts []uint64) {
	for _, ev := range events {
		if v, ok := ev.(*sm.Violation); ok && v.Kind == kind && !v.Quiet {
			counts = append(counts, v.Count)
		}
	}
	return counts
}

// noSecrets fails if an event shows the key that was offered.
func noSecrets(t *testing.T, events []sm.Event) {
	t.Helper()
	for _, ev := range events {
		for _, text := range []string{ev.String(), fmt.Sprintf("%+v", ev)} {
			if strings.Contains(strings.ToLower(text), "feedface") {
				t.Errorf("%T shows a key that was offered: %s", ev, text)
			}
		}
	}
}

// settledKeyed is a settled fabric of two levels with M_Keys; its hosts have LIDs.
func settledKeyed(t *testing.T) (*env, []endPort) {
	t.Helper()
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, keyed(t), 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8001), hs[2].grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(time.Minute)
	e.run(time.Second)
	e.takeEvents()
	return e, hs
}

// TestViolationNamesThePlace: what each kind of attack by a host leads to, with
// the reports that the simulated devices send of it.
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
		want sm.Violation // of which are compared: kind, trap, traced, verdict, P_Key, detail, counted
		at   func(e *env, from, other *endPort) ib.Place
	}{
		{
			name: "SubnSet over a directed route",
			do: func(_ *testing.T, e *env, from, _ *endPort) {
				way := mad.MakeRoute(from.num)
				e.forge(from.node.Name, smp(mad.MethodSet, mad.AttrLinearForwardingTable, &way, 0))
			},
			want: sm.Violation{Kind: sm.BadMKey, Trap: 256, Traced: true, Verdict: sm.Confirmed, Detail: "Set LinearForwardingTable", Counted: 1},
			at:   func(_ *env, _, _ *endPort) ib.Place { return ib.Place{} },
		},
		{
			name: "SubnGet by LID",
			do: func(_ *testing.T, e *env, from, other *endPort) {
				m := smp(mad.MethodGet, mad.AttrPortInfo, nil, e.lidOf(other))
				m.SLID = e.lidOf(from)
				e.forge(from.node.Name, m)
			},
			want: sm.Violation{Kind: sm.BadMKey, Trap: 256, Verdict: sm.Confirmed, Detail: "Get PortInfo", Counted: 1},
			at:   func(_ *env, _, other *endPort) ib.Place { return other.place },
		},
		{
			name: "data with a tenant's P_Key",
			do: inject(func(e *env, from, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(from), DLID: e.lidOf(other), PKey: 0x8002, DestQP: 9, Payload: 64}
			}),
			want: sm.Violation{Kind: sm.BadPKey, Trap: 259, Traced: true, PKey: 0x8002, Detail: "stopped by the switch"},
			at:   func(_ *env, from, _ *endPort) ib.Place { return from.place },
		},
		{
			name: "data with a tenant's P_Key under another's LID",
			do: inject(func(e *env, _, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(other), DLID: e.lidOf(other), PKey: 0x8002, DestQP: 9, Payload: 64}
			}),
			want: sm.Violation{Kind: sm.BadPKey, Trap: 259, Traced: true, PKey: 0x8002, Detail: "stopped by the switch"},
			at:   func(_ *env, from, _ *endPort) ib.Place { return from.place },
		},
		{
			name: "datagram with a wrong Q_Key",
			do: inject(func(e *env, from, other *endPort) sim.Data {
				return sim.Data{SLID: e.lidOf(from), DLID: e.lidOf(other), PKey: 0x8001, DestQP: 1, QKey: 0xfeedface, Payload: 64}
			}),
			want: sm.Violation{Kind: sm.BadQKey, Trap: 258, Verdict: sm.Confirmed, Detail: "queue pair 0x1", Counted: 1},
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
			short := sm.Violation{Kind: got.Kind, Trap: got.Trap, Traced: got.Traced, Verdict: got.Verdict, PKey: got.PKey, Detail: got.Detail, Counted: got.Counted}
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
	for _, v := range e.listed(sm.BadMKey) {
		if !v.Traced || v.Place != from.place {
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
	if rows := e.listed(sm.BadMKey); !slices.ContainsFunc(rows, func(v sm.Violation) bool { return v.Place.IsZero() && v.Verdict == sm.Refuted }) {
		t.Errorf("a way that leads nowhere: %+v", rows)
	}
}

// TestForgedTrapsFrameNobody: a host sends traps in the name of switches and of
// other hosts that accuse a third. Nothing happens to the third, the reports are
// refuted or told as forged, and nothing is written.
func TestForgedTrapsFrameNobody(t *testing.T) {
	e, hs := settledKeyed(t)
	often := sm.HealthRule{Count: 3, Window: time.Hour, Action: sm.Disable}
	e.cfg.Health = sm.HealthConfig{Noisy: often}
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
	if u, ok := find(events, func(u *sm.Unhealthy) bool { return u.Action != sm.Report }); ok {
		t.Errorf("acted upon: %v", u)
	}
	for _, kind := range []sm.ReportKind{sm.BadMKey, sm.BadPKey} {
		rows := e.listed(kind)
		if len(rows) == 0 {
			t.Errorf("%v is not listed", kind)
		}
		for _, v := range rows {
			if v.Verdict != sm.Refuted || v.Count != 40 || v.Place != victim.place || v.Traced {
				t.Errorf("want 40 refuted reports: %+v", v)
			}
		}
	}
	if total := e.view.Violations.Totals[sm.ForgedTrap].Reported; total != 160 {
		t.Errorf("%d forged traps, want 160: %+v", total, e.listed(sm.ForgedTrap))
	}
}

// TestViolationSequence: a thousand violations are told to the log by the
// sequence, in the stream with their exact number, and in the view, while those of
// a second violator in between do not drown.
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
		if v, ok := ev.(*sm.Violation); ok && v.Kind == sm.BadMKey {
			if last[v.Place] = v.Count; !v.Quiet && v.Verdict == sm.Claimed {
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
	rows := e.listed(sm.BadMKey)
	if len(rows) != 2 || rows[0].Count != 1000 || rows[1].Count != 10 || rows[0].Repeats == 0 {
		t.Errorf("rows %+v", rows)
	}
}

// TestViolationRowsAreBounded: whoever varies everything a report can say fills
// the rows of his pool, and no count is lost.
func TestViolationRowsAreBounded(t *testing.T) {
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.Violations = sm.ViolationConfig{Rows: 64, RowsPerSource: 8}
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
		if v, ok := ev.(*sm.Violation); ok && !v.Quiet {
			told++
		}
	}
	rows := e.listed(sm.BadMKey)
	sum, others, confirmed := uint64(0), 0, 0
	for _, v := range rows {
		sum += v.Count
		if v.Others {
			others++
		}
		if v.Verdict == sm.Confirmed {
			confirmed++
		}
	}
	if len(e.view.Violations.Rows) > 64+sm.NumReportKinds || others == 0 || sum != n+1 {
		t.Errorf("%d rows, %d for others, %d reports, want at most %d rows and %d reports", len(e.view.Violations.Rows), others, sum, 64+sm.NumReportKinds, n+1)
	}
	if confirmed != 1 {
		t.Errorf("%d rows are confirmed, want the one that was true: claims took its room", confirmed)
	}
	if told > 120 {
		t.Errorf("the log was told %d times of %d reports", told, n)
	}
	if got := e.view.Violations.Totals[sm.BadMKey].Reported; got != n+1 {
		t.Errorf("total %d, want %d", got, n+1)
	}
}

// TestKeyGuessing: who tries keys is told of by the number that the device itself
// counted, although it reports a sample only.
func TestKeyGuessing(t *testing.T) {
	e, hs := settledKeyed(t)
	before := uint64(0) // our own, of the bring-up
	if v := e.view.Violations; v != nil {
		before = v.Totals[sm.BadMKey].Counted
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
		if g, ok := ev.(*sm.KeyGuessing); ok {
			if guessed = g.Count; g.GUID != e.list.Find(hs[0].peer).PortGUID(0) && g.GUID != e.list.Find(hs[0].peer).GUID {
				t.Errorf("keys of %v are guessed, want those of %s", g.GUID, hs[0].peer)
			}
		}
	}
	if guessed < 200 {
		t.Errorf("told of %d guesses, want 200 or more", guessed)
	}
	total := e.view.Violations.Totals[sm.BadMKey]
	if total.Counted-before != 300 || total.Reported == 0 || total.Reported > 300 {
		t.Errorf("counted %d, reported %d, want 300 counted", total.Counted, total.Reported)
	}
	rows := e.listed(sm.BadMKey)
	if len(rows) != 1 || rows[0].Counted != 300 || rows[0].Verdict != sm.Confirmed {
		t.Errorf("rows %+v", rows)
	}
}

// TestLapsedProtection: a device whose lease ran out is told of, and protected again.
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
	e.mangle = nil
	e.forge(h.node.Name, smp(mad.MethodSet, mad.AttrSwitchInfo, &way, 0))
	e.inbox = nil // the trap is lost, and the subnet manager does nothing for three seconds
	e.now = e.now.Add(3 * time.Second)
	e.advance(e.now)
	e.inbox = nil
	e.run(20 * time.Second)
	e.mustSettle(time.Minute)
	p, ok := find(e.takeEvents(), func(*sm.ProtectionLapsed) bool { return true })
	if !ok || p.GUID != l.Find(h.peer).GUID && p.GUID != l.Find(h.peer).PortGUID(0) {
		t.Errorf("told %v", p)
	}
	e.checkKeys()
}

// with encodes a notice.
func with[T any](n *T) func([]byte) error {
	return func(b []byte) error { return mad.Encode(b, n) }
}

// TestClassTraps: a device that reports a wrong key of a class is answered under
// its own, a trap with a key that it does not have is told as forged.
func TestClassTraps(t *testing.T) {
	e, hs := settledKeyed(t)
	source, reporter := &hs[0], &hs[1]
	s, r := e.lidOf(source), e.lidOf(reporter)
	for _, tt := range []struct {
		name   string
		class  mad.Class
		encode func([]byte) error
		key    uint64
		kind   sm.ReportKind
		answer bool
	}{
		{"CC", mad.ClassCongestionControl, with(&mad.NoticeKeyCC{NoticeHeader: mad.NoticeHeader{IsGeneric: true, IssuerLID: r}, SLID: s, Method: mad.MethodSet, AttributeID: 0x16, CCKey: ib.NewMKey(offered)}), 0, sm.BadCCKey, true},
		{"VS", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, Method: mad.MethodGet, AttributeID: 0x50, Key: ib.NewMKey(offered)}), 0, sm.BadVSKey, true},
		{"N2N", mad.ClassVendorN2N, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, Method: mad.MethodSend, Key: ib.NewMKey(offered)}), 0, sm.BadN2NKey, true},
		{"N2N neighbour", mad.ClassVendorN2N, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, TrapNumberInPayload: 1}), 0, sm.N2NMisconfigured, true},
		{"key of nobody", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s}), offered, sm.ForgedTrap, false},
		{"another issuer", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: s}, SLID: s}), 0, sm.ForgedTrap, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answered []sm.Response
			e.logAnswer = func(a *sm.Response) { answered = append(answered, *a) }
			defer func() { e.logAnswer = nil }()
			in := &sm.Received{LID: r, QP: 1}
			k, _ := mad.LookupKeyClass(tt.class)
			in.MAD.SetHeader(mad.Header{Class: tt.class, ClassVersion: k.Version, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: 77})
			in.MAD.SetMKey(ib.NewMKey(tt.key))
			if err := tt.encode(k.Attribute(&in.MAD)); err != nil {
				t.Fatal(err)
			}
			before := len(e.listed(tt.kind))
			e.step(in)
			e.run(2 * time.Second)
			rows := e.listed(tt.kind)
			if len(rows) != before+1 && tt.kind != sm.ForgedTrap {
				t.Fatalf("rows %+v", e.view.Violations.Rows)
			}
			if tt.kind != sm.ForgedTrap && (rows[0].Place != source.place || rows[0].ReporterPlace != reporter.place || rows[0].Traced) {
				t.Errorf("%+v", rows[0])
			}
			if (len(answered) == 1) != tt.answer {
				t.Fatalf("%d answers", len(answered))
			}
			if tt.answer && (answered[0].MAD.Method() != mad.MethodTrapRepress || answered[0].QP != 1 || answered[0].LID != r || !answered[0].MAD.MKey().IsZero()) {
				t.Errorf("answer %+v", answered[0])
			}
			noSecrets(t, e.takeEvents())
		})
	}
}

// TestSMKeyRows: subnet managers that are not believed are listed with where they
// are, and with exact counts.
func TestSMKeyRows(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 6, Radix: 8})
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{SMKey: rightKey, AuditPeriod: 2 * time.Second}, 1)
	e.cfg.Election.Allowed = []sm.AllowedSM{{GUID: l.Find("h1").PortGUID(1), Place: placeOf(l, "h1")}}
	e.addRogue("h2", mad.SMInfo{Priority: 15, SMState: ib.SMMaster, SMKey: rightKey}) // the right key at the wrong place
	e.start()
	e.mustSettle(10 * time.Second)
	told, ok := find(e.takeEvents(), func(f *sm.ForeignSM) bool { return f.Place == placeOf(l, "h2") })
	if !ok || told.Trusted || told.Path.Len() != 2 || told.Count != 1 || !strings.Contains(told.String(), "path 0,1,") {
		t.Errorf("told %+v", told)
	}
	st, err := e.fab.Station("h3", false)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if s := e.talk(st, mad.MethodSet, mad.SMInfoHandover, mad.SMInfo{GUID: st.GUID(), SMKey: wrongKey, SMState: ib.SMMaster}, 0); s.answered {
			t.Fatalf("answered: %+v", s)
		}
	}
	e.run(2 * time.Second)
	if e.view.State != ib.SMMaster {
		t.Errorf("we are %v", e.view.State)
	}
	var lastCount uint64
	for _, ev := range e.takeEvents() {
		if r, ok := ev.(*sm.SMInfoRefused); ok {
			lastCount = r.Count
		}
	}
	if lastCount != 20 {
		t.Errorf("the last refusal that was told is number %d, want 20", lastCount)
	}
	var commands, answers int
	for _, v := range e.listed(sm.BadSMKey) {
		switch {
		case v.Detail == "HANDOVER" && v.Place == placeOf(l, "h3") && v.Count == 30 && v.Traced:
			commands++
		case v.Detail == "answer to Get SMInfo" && v.Place == placeOf(l, "h2") && v.Count > 0:
			answers++
		default:
			t.Errorf("row %+v", v)
		}
	}
	if commands != 1 || answers != 1 {
		t.Errorf("rows %+v", e.listed(sm.BadSMKey))
	}
}

// TestReplayedCommand: a command of an SM that may, byte for byte as it arrived, is
// worth nothing from another place.
func TestReplayedCommand(t *testing.T) {
	e, peer := inState(t, ib.SMMaster)
	var taken *sm.Received
	seen := func(p *sm.Received) {
		if p.MAD.Method() == mad.MethodSet && p.MAD.Attr() == mad.AttrSMInfo {
			c := *p
			taken = &c
		}
	}
	e.mangle = nil
	e.onArrival = seen
	e.talk(peer, mad.MethodSet, mad.SMInfoDiscover, payload(peer, ib.SMMaster), 0)
	e.onArrival = nil
	if taken == nil {
		t.Fatal("the command did not arrive")
	}
	e.mustSettle(20 * time.Second)
	thief, err := e.fab.Station("h2", false)
	if err != nil {
		t.Fatal(err)
	}
	e.takeEvents()
	lid := e.fab.PortInfo("sm", 1).LID
	var si mad.SMInfo
	if err := mad.Decode(taken.MAD.Data(), &si); err != nil {
		t.Fatal(err)
	}
	for _, to := range []ib.LID{0, lid} {
		for _, control := range smControls {
			if s := e.talk(thief, mad.MethodSet, control, si, to); s.answered {
				t.Errorf("%v of another, repeated: %+v", control, s)
			}
		}
	}
	for _, ev := range e.takeEvents() {
		if c, ok := ev.(*sm.StateChanged); ok {
			t.Errorf("obeyed: %v", c)
		}
	}
}

// TestClassTrapsAreJudged: where keys of classes are given out, the core lists their
// traps, leaves the answer to who gives the keys, and takes his verdict.
func TestClassTrapsAreJudged(t *testing.T) {
	cfg := keyed(t)
	cfg.ClassKeys.VS.Enable = sm.KeyDisable
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	hs := hosts(l)
	e.start()
	e.mustSettle(time.Minute)
	e.logAnswer = func(a *sm.Response) { t.Errorf("the core answers %v of class %v", a.MAD.Method(), a.MAD.Class()) }
	guid := hs[1].node.PortGUID(hs[1].num)
	for _, tt := range []struct {
		counted         uint32
		earlier, unsure bool
		want            sm.Verdict
	}{{counted: 3, unsure: true, want: sm.Claimed}, {want: sm.Refuted}, {earlier: true, want: sm.Confirmed}, {counted: 12, want: sm.Confirmed}, {want: sm.Confirmed}} {
		in := &sm.Received{LID: e.lidOf(&hs[1]), QP: 1}
		k, _ := mad.LookupKeyClass(mad.ClassVendorVS)
		in.MAD.SetHeader(mad.Header{Class: k.Class, ClassVersion: k.Version, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(7 + tt.counted)})
		if err := mad.Encode(k.Attribute(&in.MAD), &mad.NoticeKeyVS{SLID: e.lidOf(&hs[0]), Method: mad.MethodSet, AttributeID: 0x50}); err != nil {
			t.Fatal(err)
		}
		e.step(in)
		e.step(&sm.ClassTrapJudged{Kind: keys.VSKey, GUID: guid, Counted: tt.counted, Earlier: tt.earlier, Unsure: tt.unsure})
		e.step(&sm.ClassTrapJudged{Kind: keys.VSKey, GUID: guid}) // of no trap
		e.run(3 * time.Second)
		if rows := e.listed(sm.BadVSKey); len(rows) != 1 || rows[0].Verdict != tt.want || rows[0].Place != hs[0].place {
			t.Errorf("after %d were counted: %+v", tt.counted, rows)
		}
	}
	if rows := e.listed(sm.BadVSKey); rows[0].Counted != 12 {
		t.Errorf("counted %d, want 12", rows[0].Counted)
	}
}
