package threats

import (
	"bytes"
	"encoding/binary"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
)

// throttle is T53.
func throttle(s *drill.Scene) {
	c := classAttack{class: mad.ClassCongestionControl, kind: keys.CCKey, report: violation.BadCCKey, name: "settings of congestion control"}
	c.play(s, func(device string, sw bool) mad.AttrID {
		if sw {
			return mad.CCAttrSwitchSetting
		}
		return mad.CCAttrCASetting
	})
}

// registers is T54.
func registers(s *drill.Scene) {
	c := classAttack{class: mad.ClassVendorVS, kind: keys.VSKey, report: violation.BadVSKey, name: "registers"}
	c.play(s, func(string, bool) mad.AttrID { return mad.VSAttrConfigSpaceAccess })
}

// classAttack reads and writes an attribute of a class on all devices that h1 reaches.
type classAttack struct {
	class  mad.Class
	kind   keys.Kind
	report violation.Kind
	name   string // of the attribute that is read and written
}

func (c *classAttack) play(s *drill.Scene, attr func(device string, sw bool) mad.AttrID) {
	t := s.Site(shared())
	t.Victim("h2", "h6")
	t.Victim("h5", "h3")
	h1, began := t.Attacker("h1"), t.Now()
	for _, w := range ways(t) {
		t.Attack()
		s.Tried("h1 reads and writes %s of %s, %s, under no key, under wrong ones and under what it shows as its key", c.name, w.to, w.what)
		before := t.ClassKey(w.to, c.class)
		what := attr(w.to, t.EndPortOf(w.to) == 0)
		q := drill.GMP{To: w.to, PKey: w.pkey, Class: c.class}
		shown := h1.KeyShown(q)
		s.Check(shown.IsZero(), "%s shows its %v to h1", w.to, c.kind)
		for _, key := range []ib.MKey{{}, ib.NewMKey(1), ib.NewMKey(s.Seed() ^ 0xBADC0FFEE), shown} {
			q.Key = key
			q.Attr, q.Set, q.Data = what, false, nil
			s.Check(h1.Request(q) == nil, "%s shows %s to h1", w.to, c.name)
			q.Set, q.Data = true, drill.Filled(0xEE)
			s.Check(h1.Request(q) == nil, "%s takes %s from h1", w.to, c.name)
			q.Attr, q.Data = keyAttr(c.class), drill.Filled(0)
			s.Check(h1.Request(q) == nil, "%s lets h1 take its %v away", w.to, c.kind)
		}
		after := t.ClassKey(w.to, c.class)
		kept := t.Fabric.ClassSetting(w.to, t.EndPortOf(w.to), c.class, what, 0)
		held := s.Check(!bytes.Contains(kept, []byte{0xEE, 0xEE}), "%s has %s of h1's making", w.to, c.name)
		held = s.Check(after.Key == before.Key && after.Protect == before.Protect, "the %v of %s was changed", c.kind, w.to) && held
		if refused := after.Violations - before.Violations; held && s.Check(refused >= 9, "%s was reached by %d requests: that proves nothing", w.to, refused) {
			s.Stopped("%s, %s, refused %d requests without its %v", w.to, w.what, refused, c.kind)
		}
		t.Reported(2*time.Second, "who it was that "+w.to+" refused", wrongClassKey(t, c.report, "h1", w.to))
		t.Reported(2*time.Second, "what "+w.to+" refused", refusedBy(t, w.to, c.kind))
	}
	t.At = began
	shutOut(t, "h3")
	s.Must(t.Settle(drill.SettleTime))
	c.exact(s, attr)
}

// keyAttr is the attribute of a class that holds its key.
func keyAttr(c mad.Class) mad.AttrID {
	k, _ := mad.LookupKeyClass(c)
	return k.KeyAttr
}

// shutOut is how an attack of h1 from inside a partition ends: an operator marks the port that was reported.
func shutOut(t *drill.Site, server string) {
	const host = "h1"
	place := t.Place(host, 1)
	t.Step(&sm.HealthMarked{Place: place, Mark: health.MarkUnhealthy, Reason: "wrong keys"})
	if t.Isolated(10*time.Second, host+" does not reach "+server+" any longer, and its port is closed", func() bool {
		return !t.Open(host) && t.Send(host, server, drill.KeyA).Fate != sim.Delivered
	}) {
		t.Scene.Stopped("port %v, which the report names, was marked by an operator and closed", place)
	}
}

// exact is the same on switches that do not let a limited member call itself full:
// none of their own requests come in.
func (c *classAttack) exact(s *drill.Scene, attr func(device string, sw bool) mad.AttrID) {
	o := shared()
	o.Device().InboundBaseOnly = false
	t := s.Site(o)
	t.Victim("h2", "h6")
	h1 := t.Attacker("h1")
	s.Tried("the same to switches that look at the membership that a packet claims")
	t.Attack()
	for _, w := range ways(t)[2:] {
		before := t.ClassKey(w.to, c.class).Violations
		for _, pkey := range []ib.PKey{ib.DefaultPKeyLimited, ib.DefaultPKeyFull, drill.KeyA} {
			h1.Request(drill.GMP{To: w.to, PKey: pkey, Class: c.class, Set: true, Attr: attr(w.to, true), Data: drill.Filled(0xEE)})
		}
		kept := t.Fabric.ClassSetting(w.to, 0, c.class, attr(w.to, true), 0)
		if s.Check(t.ClassKey(w.to, c.class).Violations == before && len(kept) == 0, "requests of h1 reached %s", w.to) {
			s.Stopped("no request of h1 reaches %s: both are limited members of the default partition", w.to)
		}
	}
	t.Reported(2*time.Second, "the dropped packets", t.PKeyViolation("h1", ib.DefaultPKeyLimited, ib.DefaultPKeyFull, drill.KeyA))
	s.Must(t.Settle(drill.SettleTime))
}

// falseNeighbours is T55.
func falseNeighbours(s *drill.Scene) {
	o := shared()
	o.SwitchesTalk = true
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Victim("h5", "h3")
	h1 := t.Attacker("h1")
	const class = mad.ClassVendorN2N
	neighboursBelieve(t)
	began := t.Now()
	planted := ib.NewMKey(0xBADC0FFEE)
	for _, w := range ways(t)[2:] {
		w.pkey, w.what = ib.DefaultPKeyLimited, "which is a full member of the default partition, as all switches"
		t.Attack()
		s.Tried("h1 writes to %s a node key and a neighbour of its own, and reports to it under that key, under none and under wrong ones that links have failed: %s", w.to, w.what)
		before := t.ClassKey(w.to, class)
		var info mad.N2NNeighborsInfo
		info.Neighbor[0] = mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: t.LIDOf(w.to), Key: planted}
		info.Neighbor[1] = mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: t.LID("h1"), Key: planted}
		for _, key := range []ib.MKey{{}, ib.NewMKey(1), planted} {
			q := drill.GMP{To: w.to, PKey: w.pkey, Class: class, Set: true, Attr: mad.N2NAttrNeighborsInfo, Key: key, Data: drill.With(s, &info)}
			s.Check(h1.Request(q) == nil, "%s takes neighbours from h1", w.to)
			m := sim.Forged{SLID: t.LID("h1"), DLID: t.LIDOf(w.to), SQP: 1, DQP: 1, PKey: w.pkey}
			m.MAD.SetHeader(mad.Header{Class: class, ClassVersion: 1, Method: mad.MethodSend, Attr: mad.AttrNotice, TID: 7})
			m.MAD.SetMKey(key)
			s.Must(t.Fabric.InjectMAD(drill.Port("h1"), m))
			t.Collect()
		}
		after := t.ClassKey(w.to, class)
		held := s.Check(after.Notified == before.Notified, "%s believed %d tales of h1", w.to, after.Notified-before.Notified)
		refused := after.Violations - before.Violations + after.NodeViolations - before.NodeViolations
		if s.Check(refused >= 6, "%s refused %d of 6 MADs of h1", w.to, refused) && held {
			s.Stopped("%s refused %d MADs without its manager key or its node key", w.to, refused)
		}
		t.Reported(2*time.Second, "who it was that "+w.to+" refused", wrongClassKey(t, violation.BadN2NKey, "h1", w.to))
		t.Reported(2*time.Second, "what "+w.to+" refused", refusedBy(t, w.to, keys.N2NKey))
	}
	t.At = began
	shutOut(t, "h5")
	s.Must(t.Settle(drill.SettleTime))
	neighboursBelieve(t)
}

// neighboursBelieve demands that leaf switches accept the notifications of a spine switch.
func neighboursBelieve(t *drill.Site) {
	const class = mad.ClassVendorN2N
	leaf := t.SwitchPort("h1", 1).Node
	before := t.ClassKey(leaf, class).Notified
	t.Scene.Must(t.Fabric.NotifyNeighbors("spine1"))
	t.Collect()
	t.Scene.Check(t.ClassKey(leaf, class).Notified > before, "%s does not believe its neighbour", leaf)
}

// buriedLog is T58.
func buriedLog(s *drill.Scene) {
	t := s.Site(shared())
	t.Victim("h2", "h6")
	const class, turns, each, forged = mad.ClassCongestionControl, 1000, 1000, 100
	s.Tried("h1 sends %d congestion control MADs with wrong keys to the server that it shares, in 100 s, and %d traps that report as many more, each of another attribute; h5 tries to read a register of the same server, once", turns*each, turns*forged)
	h5 := t.Attacker("h5")
	wrong := sim.Forged{SLID: t.LID("h1"), DLID: t.LID("h3"), SQP: 1, DQP: 1, PKey: drill.KeyA}
	wrong.MAD.SetHeader(mad.Header{Class: class, ClassVersion: 2, Method: mad.MethodSet, Attr: mad.CCAttrCASetting})
	drill.Filled(0xEE)(wrong.MAD[64:])
	trap := sim.Forged{SLID: t.LID("h3"), DLID: t.LID("sm"), SQP: 1, DQP: 1, PKey: ib.DefaultPKeyLimited}
	trap.MAD.SetHeader(mad.Header{Class: class, ClassVersion: 2, Method: mad.MethodTrap, Attr: mad.AttrNotice})
	tale := mad.NoticeKeyCC{
		NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, ProducerType: uint32(ib.NodeCA), IssuerLID: t.LID("h3")},
		SLID:         t.LID("h2"), Method: mad.MethodGet,
	}
	t.Attack()
	began, quiet := t.At, t.At
	for turn := range turns {
		for i := range each {
			n := uint64(turn*each + i)
			wrong.MAD.SetTID(ib.TID(n))
			binary.BigEndian.PutUint64(wrong.MAD[24:], n|1<<63) // in place of the key: each ib.MKey would be kept
			s.Must(t.Fabric.InjectMAD(drill.Port("h1"), wrong))
		}
		for i := range forged {
			trap.MAD.SetTID(ib.TID(1 + turn*forged + i))
			tale.AttributeID = mad.AttrID(turn*forged + i)
			s.Must(mad.Encode(trap.MAD[64:], &tale))
			s.Must(t.Fabric.InjectMAD(drill.Port("h1"), trap))
		}
		t.Collect()
		if turn == turns/2 {
			m := h5.Request(drill.GMP{To: "h3", PKey: drill.KeyA, Class: mad.ClassVendorVS, Attr: mad.VSAttrConfigSpaceAccess})
			s.Check(m == nil, "h3 shows registers to h5")
			quiet = t.Now()
		}
		t.Run(100 * time.Millisecond)
	}
	t.Run(10 * time.Second)
	kept := t.Fabric.ClassSetting("h3", 1, class, mad.CCAttrCASetting, 0)
	s.Check(len(kept) == 0, "h3 has settings of h1's making")
	t.Reported(time.Second, "what h3 refused", refusedBy(t, "h3", keys.CCKey))
	loudest := t.Place("h1", 1)
	t.Reported(time.Second, "the loud one", drill.Is(func(e *violation.Violation) bool { return e.Kind == violation.BadCCKey && e.Place == loudest }))
	t.At = quiet
	t.Reported(time.Second, "the quiet one", wrongClassKey(t, violation.BadVSKey, "h5", "h3"))
	t.At = began
	lines := 0
	for _, h := range t.Since(t.Begun) {
		if loud(h.Event) {
			lines++
		}
	}
	if s.Check(lines < 300, "%d MADs and %d traps filled %d lines of the log", turns*each, turns*forged, lines) {
		s.Stopped("%d MADs and %d traps are reported in %d lines, at numbers 1, 2, 5, 10, 20, 50 and so on", turns*each, turns*forged, lines)
	}
	total := t.View().Violations.Totals[violation.BadCCKey]
	if s.Check(total.Quiet > 0, "of %d reports all are in the log", total.Reported) {
		drill.Note(&s.Result.Reported, "of %d reports %d are counted and not in the log", []any{total.Reported, total.Quiet})
	}
	shutOut(t, "h3")
	s.Must(t.Settle(drill.SettleTime))
}

// loud reports whether an event about violations or traps is for the log.
func loud(e sm.Event) bool {
	switch e := e.(type) {
	case *sm.ClassKeyViolation:
		return !e.Quiet()
	case *sm.ClassKeyFalseTrap:
		return true
	default:
		return aboutTrap(e)
	}
}
