package threats

import (
	"time"

	"portcullis/fabricsm/drill"
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
func managed(s *drill.Scene) drill.SiteOptions {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2})
	s.Must(err)
	h3 := l.Find("h3")
	at := h3.Ports[1]
	return drill.SiteOptions{Netlist: l, Tenants: drill.TwoTenants(), SM: sm.Config{
		SMKey: ourSMKey(), Priority: 8,
		Election: sm.ElectionConfig{Allowed: []sm.AllowedSM{{
			GUID: h3.PortGUID(1), Place: ib.Place{Switch: l.Find(at.Peer).GUID, Port: at.PeerPort},
		}}},
	}}
}

// claim is what a rogue subnet manager says of itself.
func claim(t *drill.Site, host string, key ib.SMKey) mad.SMInfo {
	return mad.SMInfo{GUID: t.GUID(host, 1), SMKey: key, ActCount: 1000, Priority: 15, SMState: ib.SMMaster}
}

// rogueMaster is T31.
func rogueMaster(s *drill.Scene) {
	for _, rogue := range []struct {
		host, what string
		key        ib.SMKey
	}{
		{"h7", "without an SM_Key", ib.SMKey{}},
		{"h3", "with a wrong SM_Key, at the place of an allowed subnet manager", wrongSMKey()},
		{"h7", "with the right SM_Key, where none is allowed", ourSMKey()},
	} {
		t := s.Site(managed(s))
		t.Victim("h1", "h5")
		s.Tried("%s claims to be master with priority 15, %s", rogue.host, rogue.what)
		claim, place := claim(t, rogue.host, rogue.key), t.Place(rogue.host, 1)
		t.Attack()
		s.Must(t.Fabric.RogueSM(rogue.host, &claim))
		t.Collect()
		t.Reported(10*time.Second, "another subnet manager, which is not trusted", drill.Is(func(e *sm.ForeignSM) bool {
			return e.Place == place && !e.Trusted
		}))
		t.Run(time.Minute)
		if inOffice(t) {
			s.Stopped("only who shows the SM_Key, at a place where a subnet manager is allowed, is believed")
		}
	}
}

// inOffice demands that the manager is master and has been since the attack.
func inOffice(t *drill.Site) bool {
	s, held := t.Scene, true
	for _, h := range t.Since(t.Begun) {
		if e, ok := h.Event.(*sm.StateChanged); ok {
			held = false
			s.Check(false, "the %v", e)
		}
	}
	return s.Check(t.View() != nil && t.View().State == ib.SMMaster, "the subnet manager is not master any more") && held
}

// rogueInGap is T32.
func rogueInGap(s *drill.Scene) {
	o := managed(s)
	o.Firewalled = []string{"h8"}
	t := s.Site(o)
	t.Victim("h1", "h5")
	t.Victim("h2", "h6")
	h7 := t.Attacker("h7")
	s.Tried("the subnet manager is down for 10 min; h7 claims to be master and sends Sets to h1 and its switch all the time")
	t.Attack()
	t.Crash()
	claim := claim(t, "h7", ourSMKey())
	s.Must(t.Fabric.RogueSM("h7", &claim))
	before := t.State()
	for range 20 {
		attackWith(h7, ib.MKey{})
		t.Run(30 * time.Second)
	}
	behindFirewall(t, "h8")
	if list := drill.Changed(before, t.State()); s.Check(len(list) == 0, "in the gap changed %q", list) {
		s.Stopped("M_Keys without a lease guard devices while there is no master, switches go on enforcing")
	}
	r := t.Send("h7", "h5", drill.KeyA)
	s.Check(r.Fate != sim.Delivered, "h7 reaches h5 of tenant A in the gap")
	attackWith(h7, ib.MKey{})
	back, sets := t.Now(), 0
	t.OnSend = func(r *sm.Request) bool {
		if r.MAD.Method() == mad.MethodSet {
			sets++
		}
		return false
	}
	t.Start()
	t.Want(t.Intent())
	t.Reported(time.Minute, "what happened in the gap, by the traps that devices repeat", t.WrongMKey("h7"))
	t.Reported(time.Minute, "another subnet manager, which is not trusted", drill.Is(func(e *sm.ForeignSM) bool { return !e.Trusted }))
	s.Must(t.Settle(drill.SettleTime))
	t.OnSend = nil
	s.Check(t.View().State == ib.SMMaster, "the subnet manager is not master after its return")
	s.Check(sets == 0, "the subnet manager had to write %d attributes after its return", sets)
	drill.Longest(&s.Result.Isolated, t.Now()-back)
}

// leaseAttack is T33.
func leaseAttack(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	h7, leaf := t.Attacker("h7"), t.SwitchPort("h1", 1).Node
	s.Tried("h7 sends SMPs with a wrong M_Key to h1 and its switch for 10 min, and floods the subnet manager so that nothing reaches it")
	t.OnAnswer = func(*transport.Packet) bool { return true }
	t.Attack()
	for range 10 {
		attackWith(h7, ib.NewMKey(0xDEADBEEF12345678))
		t.Run(time.Minute)
	}
	_, running := t.Fabric.MKeyLease(leaf, 0)
	s.Check(!running, "a lease is running at %s", leaf)
	for _, node := range []string{leaf, "h1"} {
		var pi mad.PortInfo
		m := h7.Ask(drill.SMP{To: node, Attr: mad.AttrPortInfo})
		if m != nil && mad.Decode(m.Data(), &pi) == nil {
			s.Check(pi.MKey.IsZero(), "%s has shown h7 its M_Key", node)
			attackWith(h7, pi.MKey)
		}
	}
	if len(s.Result.Failures) == 0 {
		s.Stopped("the lease is 0: protection never lapses, however long the subnet manager hears nothing")
	}
	t.OnAnswer = nil
	t.Counted(t.Violations(leaf) > 0, "MKeyViolations of %s is %d", leaf, t.Violations(leaf))
	attackWith(h7, ib.NewMKey(0xDEADBEEF12345678))
	t.Reported(time.Minute, "SMPs with a wrong M_Key, as soon as it hears again", t.WrongMKey("h7"))
	s.Must(t.Settle(5 * time.Minute))
}

// forgedOrders is T34.
func forgedOrders(s *drill.Scene) {
	s.Tried("h7 and h3 send the subnet manager each of the five orders and one that there is not, as a master and as a standby: without an SM_Key, with a wrong one, and h7 with the right one; with M_Keys on devices and without")
	for _, keyed := range []bool{true, false} {
		o := managed(s)
		o.NoKeys = !keyed
		t := s.Site(o)
		t.Victim("h1", "h5")
		t.Attack()
		order(t, "h7", []ib.SMKey{{}, wrongSMKey(), ourSMKey()})
		order(t, "h3", []ib.SMKey{{}, wrongSMKey()})
		place := t.Place("h7", 1)
		t.Reported(10*time.Second, "orders of h7 that were refused", drill.Is(func(e *sm.SMInfoRefused) bool { return e.Place == place }))
		t.Run(time.Minute)
		if inOffice(t) {
			s.Stopped("an order needs the SM_Key, an allowed place, and the GUID that is seen there; adapters pass it on whatever M_Key it shows")
		}
	}
}

// order sends the subnet manager each order that there is, with each key.
func order(t *drill.Site, host string, list []ib.SMKey) {
	a := t.Attacker(host)
	for _, key := range list {
		for control := mad.SMInfoHandover; control <= mad.SMInfoDiscover+1; control++ {
			for _, state := range []ib.SMState{ib.SMMaster, ib.SMStandby} {
				claim := claim(t, host, key)
				claim.SMState = state
				q := drill.SMP{To: "sm", Set: true, Attr: mad.AttrSMInfo, Mod: uint32(control), Data: drill.With(t.Scene, &claim)}
				a.At.Send(a.Make(&q))
				t.Collect()
				t.Run(100 * time.Millisecond)
			}
		}
	}
}
