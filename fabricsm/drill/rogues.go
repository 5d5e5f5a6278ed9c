package drill

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// ourSMKey is the SM_Key of the manager in drills. It is no secret.
func ourSMKey() ib.SMKey { return ib.NewSMKey(0x5EC2E7D2111B0A57) }

// wrongSMKey is what OpenSM has by default.
func wrongSMKey() ib.SMKey { return ib.NewSMKey(1) }

// managed is a site whose manager has an SM_Key, and works with another one at h3.
func (s *Scene) managed() SiteOptions {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2})
	s.Must(err)
	h3 := l.Find("h3")
	at := h3.Ports[1]
	return SiteOptions{Netlist: l, Tenants: twoTenants(), SM: sm.Config{
		SMKey: ourSMKey(), Priority: 8,
		Election: sm.ElectionConfig{Allowed: []sm.AllowedSM{{
			GUID: h3.PortGUID(1), Place: ib.Place{Switch: l.Find(at.Peer).GUID, Port: at.PeerPort},
		}}},
	}}
}

// claim is what a rogue subnet manager says of itself.
func (t *Site) claim(host string, key ib.SMKey) mad.SMInfo {
	return mad.SMInfo{GUID: t.GUID(host, 1), SMKey: key, ActCount: 1000, Priority: 15, SMState: ib.SMMaster}
}

// rogueMaster is T31.
func rogueMaster(s *Scene) {
	for _, rogue := range []struct {
		host, what string
		key        ib.SMKey
	}{
		{"h7", "without an SM_Key", ib.SMKey{}},
		{"h3", "with a wrong SM_Key, at the place of an allowed subnet manager", wrongSMKey()},
		{"h7", "with the right SM_Key, where none is allowed", ourSMKey()},
	} {
		t := s.Site(s.managed())
		t.Victim("h1", "h5")
		s.Tried("%s claims to be master with priority 15, %s", rogue.host, rogue.what)
		claim, place := t.claim(rogue.host, rogue.key), t.Place(rogue.host, 1)
		t.Attack()
		s.Must(t.Fabric.RogueSM(rogue.host, &claim))
		t.Collect()
		t.Reported(10*time.Second, "another subnet manager, which is not trusted", is(func(e *sm.ForeignSM) bool {
			return e.Place == place && !e.Trusted
		}))
		t.Run(time.Minute)
		if t.inOffice() {
			s.Stopped("only who shows the SM_Key, at a place where a subnet manager is allowed, is believed")
		}
	}
}

// inOffice demands that the manager is master and has been since the attack.
func (t *Site) inOffice() bool {
	s, held := t.scene, true
	for _, h := range t.Since(t.mark) {
		if e, ok := h.Event.(*sm.StateChanged); ok {
			held = false
			s.Check(false, "the %v", e)
		}
	}
	return s.Check(t.View() != nil && t.View().State == ib.SMMaster, "the subnet manager is not master any more") && held
}

// rogueInGap is T32.
func rogueInGap(s *Scene) {
	o := s.managed()
	o.Firewalled = []string{"h8"}
	t := s.Site(o)
	t.Victim("h1", "h5")
	t.Victim("h2", "h6")
	h7 := t.attacker("h7")
	s.Tried("the subnet manager is down for 10 min; h7 claims to be master and sends Sets to h1 and its switch all the time")
	t.Attack()
	t.Crash()
	claim := t.claim("h7", ourSMKey())
	s.Must(t.Fabric.RogueSM("h7", &claim))
	before := t.state()
	for range 20 {
		h7.attackWith(ib.MKey{})
		t.Run(30 * time.Second)
	}
	t.behindFirewall("h8")
	if list := changed(before, t.state()); s.Check(len(list) == 0, "in the gap changed %q", list) {
		s.Stopped("M_Keys without a lease guard devices while there is no master, switches go on enforcing")
	}
	r := t.Send("h7", "h5", keyA)
	s.Check(r.Fate != sim.Delivered, "h7 reaches h5 of tenant A in the gap")
	h7.attackWith(ib.MKey{})
	back, sets := t.Now(), 0
	t.OnSend = func(r *sm.Request) bool {
		if r.MAD.Method() == mad.MethodSet {
			sets++
		}
		return false
	}
	t.Start()
	t.Want(t.Intent())
	t.Reported(time.Minute, "what happened in the gap, by the traps that devices repeat", t.wrongMKey("h7"))
	t.Reported(time.Minute, "another subnet manager, which is not trusted", is(func(e *sm.ForeignSM) bool { return !e.Trusted }))
	s.Must(t.Settle(settleTime))
	t.OnSend = nil
	s.Check(t.View().State == ib.SMMaster, "the subnet manager is not master after its return")
	s.Check(sets == 0, "the subnet manager had to write %d attributes after its return", sets)
	longest(&s.result.Isolated, t.Now()-back)
}

// leaseAttack is T33.
func leaseAttack(s *Scene) {
	t := s.Site(SiteOptions{Tenants: twoTenants()})
	t.Victim("h1", "h5")
	h7, leaf := t.attacker("h7"), t.SwitchPort("h1", 1).Node
	s.Tried("h7 sends SMPs with a wrong M_Key to h1 and its switch for 10 min, and floods the subnet manager so that nothing reaches it")
	t.OnAnswer = func(*transport.Packet) bool { return true }
	t.Attack()
	for range 10 {
		h7.attackWith(ib.NewMKey(0xDEADBEEF12345678))
		t.Run(time.Minute)
	}
	_, running := t.Fabric.MKeyLease(leaf, 0)
	s.Check(!running, "a lease is running at %s", leaf)
	for _, node := range []string{leaf, "h1"} {
		var pi mad.PortInfo
		m := h7.ask(smp{to: node, attr: mad.AttrPortInfo})
		if m != nil && mad.Decode(m.Data(), &pi) == nil {
			s.Check(pi.MKey.IsZero(), "%s has shown h7 its M_Key", node)
			h7.attackWith(pi.MKey)
		}
	}
	if len(s.result.Failures) == 0 {
		s.Stopped("the lease is 0: protection never lapses, however long the subnet manager hears nothing")
	}
	t.OnAnswer = nil
	t.Counted(t.violations(leaf) > 0, "MKeyViolations of %s is %d", leaf, t.violations(leaf))
	h7.attackWith(ib.NewMKey(0xDEADBEEF12345678))
	t.Reported(time.Minute, "SMPs with a wrong M_Key, as soon as it hears again", t.wrongMKey("h7"))
	s.Must(t.Settle(5 * time.Minute))
}

// forgedOrders is T34.
func forgedOrders(s *Scene) {
	s.Tried("h7 and h3 send the subnet manager each of the five orders and one that there is not, as a master and as a standby: without an SM_Key, with a wrong one, and h7 with the right one; with M_Keys on devices and without")
	for _, keyed := range []bool{true, false} {
		o := s.managed()
		o.NoKeys = !keyed
		t := s.Site(o)
		t.Victim("h1", "h5")
		t.Attack()
		t.order("h7", []ib.SMKey{{}, wrongSMKey(), ourSMKey()})
		t.order("h3", []ib.SMKey{{}, wrongSMKey()})
		place := t.Place("h7", 1)
		t.Reported(10*time.Second, "orders of h7 that were refused", is(func(e *sm.SMInfoRefused) bool { return e.Place == place }))
		t.Run(time.Minute)
		if t.inOffice() {
			s.Stopped("an order needs the SM_Key, an allowed place, and the GUID that is seen there; adapters pass it on whatever M_Key it shows")
		}
	}
}

// order sends the subnet manager each order that there is, with each key.
func (t *Site) order(host string, list []ib.SMKey) {
	a := t.attacker(host)
	for _, key := range list {
		for control := mad.SMInfoHandover; control <= mad.SMInfoDiscover+1; control++ {
			for _, state := range []ib.SMState{ib.SMMaster, ib.SMStandby} {
				claim := t.claim(host, key)
				claim.SMState = state
				q := smp{to: "sm", set: true, attr: mad.AttrSMInfo, mod: uint32(control), data: with(t.scene, &claim)}
				a.at.Send(a.make(&q))
				t.Collect()
				t.Run(100 * time.Millisecond)
			}
		}
	}
}
