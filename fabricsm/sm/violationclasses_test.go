package sm_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// with encodes a notice.
func with[T any](n *T) func([]byte) error {
	return func(b []byte) error { return mad.Encode(b, n) }
}

// TestClassTraps: a device that reports a wrong key of a class is answered under its own key; a trap with a key that the
// device does not have is reported as forged.
func TestClassTraps(t *testing.T) {
	e, hs := settledKeyed(t)
	source, reporter := &hs[0], &hs[1]
	s, r := e.lidOf(source), e.lidOf(reporter)
	for _, tt := range []struct {
		name   string
		class  mad.Class
		encode func([]byte) error
		key    uint64
		kind   violation.Kind
		answer bool
	}{
		{"CC", mad.ClassCongestionControl, with(&mad.NoticeKeyCC{NoticeHeader: mad.NoticeHeader{IsGeneric: true, IssuerLID: r}, SLID: s, Method: mad.MethodSet, AttributeID: 0x16, CCKey: ib.NewMKey(offered)}), 0, violation.BadCCKey, true},
		{"VS", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, Method: mad.MethodGet, AttributeID: 0x50, Key: ib.NewMKey(offered)}), 0, violation.BadVSKey, true},
		{"N2N", mad.ClassVendorN2N, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, Method: mad.MethodSend, Key: ib.NewMKey(offered)}), 0, violation.BadN2NKey, true},
		{"N2N neighbour", mad.ClassVendorN2N, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s, TrapNumberInPayload: 1}), 0, violation.N2NMisconfigured, true},
		{"key of no epoch", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: r}, SLID: s}), offered, violation.ForgedTrap, false},
		{"another issuer", mad.ClassVendorVS, with(&mad.NoticeKeyVS{NoticeHeader: mad.NoticeHeader{IssuerLID: s}, SLID: s}), 0, violation.ForgedTrap, false},
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
			if len(rows) != before+1 && tt.kind != violation.ForgedTrap {
				t.Fatalf("rows %+v", e.view.Violations.Rows)
			}
			if tt.kind != violation.ForgedTrap && (rows[0].Place != source.place || rows[0].ReporterPlace != reporter.place || rows[0].By != violation.ByLID) {
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

// TestSMKeyRows: subnet managers that are not trusted are listed with their places and with exact counts.
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
	for _, v := range e.listed(violation.BadSMKey) {
		switch {
		case v.Detail == "HANDOVER" && v.Place == placeOf(l, "h3") && v.Count == 30 && v.By == violation.ByWay:
			commands++
		case v.Detail == "answer to Get SMInfo" && v.Place == placeOf(l, "h2") && v.Count > 0:
			answers++
		default:
			t.Errorf("row %+v", v)
		}
	}
	if commands != 1 || answers != 1 {
		t.Errorf("rows %+v", e.listed(violation.BadSMKey))
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

// TestClassTrapsAreJudged: where keys of classes are managed, the core lists their traps, leaves the answer to the key
// manager, and takes its verdict.
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
		want            violation.Verdict
	}{{counted: 3, unsure: true, want: violation.Claimed}, {want: violation.Refuted}, {earlier: true, want: violation.Confirmed}, {counted: 12, want: violation.Confirmed}, {want: violation.Confirmed}} {
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
		if rows := e.listed(violation.BadVSKey); len(rows) != 1 || rows[0].Verdict != tt.want || rows[0].Place != hs[0].place {
			t.Errorf("after %d were counted: %+v", tt.counted, rows)
		}
	}
	if rows := e.listed(violation.BadVSKey); rows[0].Counted != 12 {
		t.Errorf("counted %d, want 12", rows[0].Counted)
	}
}
