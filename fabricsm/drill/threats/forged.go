package threats

import (
	"math/rand/v2"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/transport"
)

// quietWrites is T38.
func quietWrites(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h4"}})})
	t.Victim("h1", "h5")
	s.Tried("h7 of tenant C writes tenant A's P_Key into the table of its adapter, and another LID into its port, with no SMP on the wire")
	h7 := t.Attacker("h7")
	t.Attack()
	own := mad.PKeyTable{PKey: [mad.PKeysPerBlock]ib.PKey{ib.DefaultPKeyLimited, drill.KeyA, drill.KeyC}}
	s.Check(h7.Ask(drill.SMP{To: "h7", Set: true, Attr: mad.AttrPKeyTable, Data: drill.With(s, &own)}) != nil, "h7 could not write its own table, so nothing is proven")
	lid := t.LID("h7")
	s.Must(t.Fabric.SetLID("h7", 1, t.LID("h1"), 0))
	t.Collect()
	fates := make(map[sim.Fate]int)
	for range 10 {
		r := t.Inject("h7", sim.Data{SLID: lid, DLID: t.LID("h5"), PKey: drill.KeyA, DestQP: 2, Payload: 256})
		fates[r.Fate]++
	}
	if s.Check(fates[sim.Delivered] == 0, "%d of 10 packets of h7 with %v reached h5", fates[sim.Delivered], drill.KeyA) {
		s.Stopped("the switch port has its own table, and drops what h7 may not send: %d of 10 packets", fates[sim.PKeyInbound])
	}
	at := t.SwitchPort("h7", 1)
	in, _ := t.Fabric.ConstraintErrors(at.Node, at.Port)
	t.Counted(in > 0, "the switch port in front of h7 counts %d packets with a wrong P_Key", in)
	repaired := func() bool {
		for _, k := range t.Fabric.PKeys("h7", 1) {
			if k.Base() == drill.KeyA.Base() {
				return false
			}
		}
		return t.LID("h7") == lid
	}
	if t.Isolated(25*time.Minute, "table and LID of h7 are as they were", repaired) {
		s.Stopped("the audit reads each port again, and puts back what differs")
	}
	s.Must(t.Settle(drill.SettleTime))
}

// smpWork is for how long a switch under a flood works on each SMP: that of real ones is not public.
const smpWork = 200 * time.Microsecond

// smpFlood is T39.
func smpFlood(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Firewalled: []string{"h8"}})
	t.Victim("h1", "h5")
	s.Tried("h7 and h8, which is behind a firewall, each send 200 SMPs to their switches and to the adapter of the subnet manager every time anything happens, for a minute")
	var floods []*sim.Flood
	flooded := t.SwitchPort("h7", 1)
	seen := t.Violations(t.SwitchPort("h8", 1).Node)
	for _, host := range []string{"h8", "h7"} {
		t.Attack()
		for _, to := range []string{t.SwitchPort(host, 1).Node, "sm"} {
			m := sim.Forged{SLID: t.LID(host), DLID: ib.PermissiveLID}
			way := t.Route(host, to)
			mad.NewSMP(&m.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, &way, ib.MKey{})
			f, err := t.Fabric.Flood(drill.Port(host), m, 200)
			s.Must(err)
			floods = append(floods, f)
		}
		if host == "h8" {
			t.Run(10 * time.Second)
			s.Check(t.Violations(t.SwitchPort("h8", 1).Node) == seen, "SMPs of h8 reached its switch through the firewall")
			if b := t.Fabric.Stats().Barred; s.Check(b > 0, "the firewall kept nothing") {
				s.Stopped("the firewall of h8 kept %d SMPs", b)
			}
		}
	}
	t.Run(10 * time.Second)
	began := t.Now()
	s.Must(t.Fabric.SetFault(flooded.Node, sim.Fault{Work: smpWork}))
	t.Grant(t.GrantOf("h4", 1, drill.KeyA))
	if s.Check(t.Until(30*time.Second, func() bool { return t.Send("h1", "h4", drill.KeyA).Fate == sim.Delivered }), "h4 does not become a member of tenant A during the flood") {
		s.Stopped("the subnet manager does its work all the same: a membership took %v", t.Now()-began)
	}
	t.Run(10 * time.Millisecond)
	t.Counted(t.Fabric.VL15Dropped(flooded.Node, flooded.Port) > 0, "%s port %d drops %d SMPs that find its VL15 buffers full", flooded.Node, flooded.Port, t.Fabric.VL15Dropped(flooded.Node, flooded.Port))
	others := 0
	for num := range t.List.Find(flooded.Node).Ports {
		if port := ib.PortNum(num); port != 0 && port != flooded.Port {
			others += int(t.Fabric.VL15Dropped(flooded.Node, port))
		}
	}
	if s.Check(others == 0, "other ports of %s dropped %d SMPs", flooded.Node, others) {
		s.Stopped("each port has buffers of its own: those by which the subnet manager is reached drop nothing")
	}
	s.Must(t.Fabric.SetFault(flooded.Node, sim.Fault{}))
	t.Reported(5*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h7"))
	for _, f := range floods {
		f.Stop()
	}
	t.Run(10 * time.Second)
	s.Must(t.Settle(drill.SettleTime))
	smInfoFlood(t, "h7")
	inOffice(t)
}

// smInfoFlood has a host ask for SMInfo, which no adapter keeps from the subnet manager.
func smInfoFlood(t *drill.Site, host string) {
	s, a := t.Scene, t.Attacker(host)
	const perMS, ms = 100, 500
	s.Tried("%s asks the subnet manager %d times a second for its SMInfo, which reaches it whatever M_Key it shows", host, 1000*perMS)
	q := drill.SMP{To: "sm", Attr: mad.AttrSMInfo}
	t.Attack()
	began, answered := t.Now(), 0
	t.Withdraw(t.GrantOf("h4", 1, drill.KeyA))
	took := time.Duration(0)
	for range ms {
		for range perMS {
			a.At.Send(a.Make(&q))
		}
		t.Collect()
		t.Run(time.Millisecond)
		for _, p := range a.At.Take(nil) {
			if p.MAD.Attr() == mad.AttrSMInfo && p.MAD.Method() == mad.MethodGetResp {
				answered++
			}
		}
		if took == 0 && t.Send("h1", "h4", drill.KeyA).Fate != sim.Delivered {
			took = t.Now() - began
		}
	}
	if s.Check(took > 0, "h4 stays a member of tenant A during the flood") {
		s.Stopped("a membership is taken away in %v during the flood", took)
	}
	if s.Check(answered > 0 && answered < perMS*ms/10, "%d of %d questions are answered", answered, perMS*ms) {
		s.Stopped("%d of %d questions are looked at: no sender has more than its share", answered, perMS*ms)
	}
	place := t.Place(host, 1)
	t.Reported(3*time.Second, "who floods", drill.Is(func(e *sa.Violation) bool { return e.Place == place }))
}

// forgedTraps is T40.
func forgedTraps(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{LIDPeriod: -1}}) // requests are counted that traps cause
	t.Victim("h1", "h5")
	leaf := t.SwitchPort("h1", 1).Node
	s.Tried("h7 sends 10,000 traps of nine kinds in 100 s, in the name of h1, of a switch, of itself and of a LID without a port")
	names := []ib.LID{t.LID("h1"), t.Fabric.PortInfo(leaf, 0).LID, t.LID("h7"), 0xBEE}
	numbers := []mad.TrapNum{
		mad.TrapLinkStateChange, mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl, mad.TrapLocalChange,
		mad.TrapSystemImageGUID, mad.TrapBadMKey, mad.TrapBadPKey, mad.TrapBadPKeySwitch,
	}
	before, sent, sets := t.State(), 0, 0
	t.OnSend = func(r *sm.Request) bool {
		sent++
		if r.MAD.Method() == mad.MethodSet && r.MAD.Attr() != mad.AttrSwitchInfo { // that clears the bit that a port changed
			sets++
		}
		return false
	}
	const seconds, each = 100, 100
	t.Attack()
	for i := range seconds * each {
		lid := names[i/len(numbers)%len(names)]
		n := mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: uint32(ib.NodeSwitch), TrapNumber: numbers[i%len(numbers)], IssuerLID: lid}
		m := sim.Forged{SLID: lid, DLID: t.LID("sm")}
		mad.NewSMP(&m.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(i + 1)}, nil, ib.MKey{})
		s.Must(mad.Encode(m.MAD.Data(), &n))
		s.Must(t.Fabric.InjectMAD(drill.Port("h7"), m))
		t.Collect()
		t.Run(time.Second / each)
	}
	told := 0
	for _, h := range t.Since(t.Begun) {
		if aboutTrap(h.Event) {
			told++
		}
	}
	t.Reported(time.Second, "that traps are not from the devices that they name", drill.Is(func(e *violation.Violation) bool {
		return e.Verdict == violation.Refuted || e.Kind == violation.ForgedTrap
	}))
	s.Check(told < seconds*each/20, "%d traps were reported in %d lines", seconds*each, told)
	t.Run(time.Minute)
	t.OnSend = nil
	if s.Check(sent < seconds*each*35/100, "%d traps had %d requests sent", seconds*each, sent) {
		s.Stopped("each source is verified ever more rarely: %d requests for %d traps", sent, seconds*each)
	}
	s.Check(sets == 0, "the traps had %d Sets sent", sets)
	if list := drill.Changed(before, t.State()); s.Check(len(list) == 0 && t.Open("h1"), "the traps changed %q; port of h1 open: %v", list, t.Open("h1")) {
		s.Stopped("a trap is a reason to ask the device that it names, never to act: h1 keeps its port")
	}
	s.Must(t.Settle(drill.SettleTime))
}

// aboutTrap reports whether an event is about a trap, true or not, and is meant for the log.
func aboutTrap(e sm.Event) bool {
	return drill.Is(func(e *violation.Violation) bool { return !e.Quiet })(e) || drill.Is(func(e *violation.TrapReceived) bool { return !e.Quiet })(e)
}

// forgedAnswers is T41.
func forgedAnswers(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{AuditPeriod: 5 * time.Second}})
	t.Victim("h1", "h5")
	s.Tried("h7 sees the transaction ids of what it is asked itself; at each Get of h5's PortInfo it is quicker than h5 with 64 answers, of the next 64 ids, that say h5 has no LID")
	var last ib.TID
	asked, forged, sets := 0, 0, 0
	mine, h5 := t.Route("sm", "h7"), t.Route("sm", "h5")
	before := t.State()
	t.OnSend = func(r *sm.Request) bool {
		switch {
		case r.MAD.Method() == mad.MethodSet:
			sets++
		case r.MAD.IsDR() && r.MAD.Route() == mine:
			last = r.MAD.TID()
		case r.MAD.IsDR() && r.MAD.Route() == h5 && r.MAD.Attr() == mad.AttrPortInfo && last != 0:
			asked++
			for k := range ib.TID(64) {
				forged++
				s.Must(t.Fabric.InjectMAD(drill.Port("h7"), forgedAnswer(t, r, last+k+1)))
			}
			t.Collect()
		}
		return false
	}
	t.Attack()
	t.Run(time.Minute)
	t.OnSend = nil
	s.Check(asked > 0, "h5 was not asked, so nothing is proven")
	t.Reported(time.Second, "answers to nothing that was asked", drill.Is(func(*sm.StrayAnswer) bool { return true }))
	if s.Check(sets == 0, "the subnet manager believed forged answers, and sent %d Sets", sets) {
		s.Stopped("ids are random, and attribute and path have to match: none of %d answers was taken", forged)
	}
	s.Must(t.Settle(drill.SettleTime))
	if list := drill.Changed(before, t.State()); len(list) > 0 {
		s.Check(false, "forged answers changed %q", list)
	}
	inOffice(t)
}

// forgedAnswer is an answer of h7 to a question to h5, which is as far away: it takes the way back that
// it would take from h7, and claims the path that was asked over.
func forgedAnswer(t *drill.Site, r *sm.Request, tid ib.TID) sim.Forged {
	m := sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID, MAD: r.MAD}
	pi := t.Fabric.PortInfo("h5", 1)
	pi.LID = 0
	t.Scene.Must(mad.Encode(m.MAD.Data(), &pi))
	m.MAD.SetTID(tid)
	m.MAD.Respond(mad.StatusOK)
	m.MAD.SetMKey(ib.MKey{})
	back := t.Ports("sm", "h7")
	copy(m.MAD.ReturnPath(), make([]byte, 64))
	for i, p := range back {
		m.MAD.ReturnPath()[i+1] = byte(p)
	}
	m.MAD.SetHopPointer(m.MAD.HopCount() + 1)
	return m
}

// malformed is T42.
func malformed(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	rng := rand.New(rand.NewPCG(s.Seed(), 42))
	s.Tried("h7 sends the subnet manager 20,000 packets of random bytes behind headers that are right; every answer of h7's adapter to it is garbled, for an hour")
	garble := func(b []byte) {
		for range 1 + rng.IntN(16) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
	}
	way, garbled := t.Route("sm", "h7"), 0
	t.OnAnswer = func(p *transport.Packet) bool {
		if p.MAD.IsDR() && p.MAD.Route() == way {
			garbled++
			garble(p.MAD.Data())
		}
		return false
	}
	methods := []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrap, mad.MethodTrapRepress, mad.MethodGetResp}
	attrs := []mad.AttrID{mad.AttrNotice, mad.AttrSMInfo, mad.AttrPortInfo, mad.AttrNodeInfo, 0xFFFF}
	t.Attack()
	for i := range 20_000 {
		m := sim.Forged{SLID: ib.LID(rng.Uint32()), DLID: t.LID("sm"), SQP: 1, DQP: uint32(i % 2), PKey: ib.DefaultPKeyLimited}
		mad.NewSMP(&m.MAD, mad.Header{Method: methods[rng.IntN(len(methods))], Attr: attrs[rng.IntN(len(attrs))], TID: ib.TID(rng.Uint64())}, nil, ib.NewMKey(rng.Uint64()))
		m.MAD.SetMod(rng.Uint32())
		garble(m.MAD[24:])
		s.Must(t.Fabric.InjectMAD(drill.Port("h7"), m))
		t.Collect()
		t.Run(10 * time.Millisecond)
	}
	t.Run(time.Hour)
	t.OnAnswer = nil
	s.Check(garbled > 0, "h7 was not asked, so no answer was garbled")
	t.Reported(time.Second, "answers that make no sense, or that were not asked for", func(e sm.Event) bool {
		switch e.(type) {
		case *sm.StrayAnswer, *sm.BadAnswer:
			return true
		default:
			return false
		}
	})
	t.Run(10 * time.Minute)
	if inOffice(t) {
		s.Stopped("whatever arrives is decoded by total parsers; the subnet manager is master and at work")
	}
	began := t.Now()
	t.Grant(t.GrantOf("h4", 1, drill.KeyA))
	s.Check(t.Until(30*time.Second, func() bool { return t.Send("h1", "h4", drill.KeyA).Fate == sim.Delivered }), "h4 does not become a member of tenant A")
	s.Stopped("a membership took %v afterwards", t.Now()-began)
}
