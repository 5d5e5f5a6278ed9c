package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
)

// smpDrills are those of subnet management packets and of foreign subnet managers,
// T29 to T43.
func smpDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T29", Threat: "set routes, P_Key tables and states of ports of others", Play: foreignSets},
		{ID: "T30", Threat: "read the fabric: who is where, and with which P_Keys", Play: foreignGets},
		{ID: "T31", Threat: "be a subnet manager of the highest priority", Play: rogueMaster},
		{ID: "T32", Threat: "be subnet manager while the real one is down", Play: rogueInGap},
		{ID: "T33", Threat: "let the lease of an M_Key run out while the subnet manager hears nothing", Play: leaseAttack},
		{ID: "T34", Threat: "order the subnet manager to hand over, to stand by or to stop", Play: forgedOrders},
		{ID: "T35", Threat: "learn the SM_Key, or an M_Key, by asking for it", Play: askedKeys},
		{ID: "T36", Threat: "learn an M_Key by posing as the device that has it", Play: learnedKey},
		{ID: "T37", Threat: "set an M_Key on the own adapter, to lock the subnet manager out", Play: foreignMKey},
		{ID: "T38", Threat: "change ports with tools of the firmware, without any SMP", Play: quietWrites},
		{ID: "T39", Threat: "flood devices with SMPs", Play: smpFlood},
		{ID: "T40", Threat: "forge traps, to keep the subnet manager busy or to have a neighbour cut off", Play: forgedTraps},
		{ID: "T41", Threat: "forge answers to the subnet manager's questions", Play: forgedAnswers},
		{ID: "T42", Threat: "crash the subnet manager with malformed packets", Play: malformed},
		{ID: "T43", Threat: "send SMPs from a virtual function in a guest", Play: guestSMPs},
	}
}

// harmful are Sets of every attribute that decides what a fabric does: on the
// switch of h1 and on h1's adapter.
func harmful(t *drill.Site) (out []drill.SMP) {
	s, at := t.Scene, t.SwitchPort("h1", 1)
	down := t.Fabric.PortInfo(at.Node, at.Port)
	down.PortPhysicalState = ib.PhysDisabled
	down.PortState, down.PartitionEnforcementInbound, down.PartitionEnforcementOutbound = ib.PortDown, false, false
	var drop mad.LinearForwardingTable
	for i := range drop.Port {
		drop.Port[i] = ib.NoPort
	}
	sw := t.Fabric.SwitchInfo(at.Node)
	sw.LifeTimeValue ^= 1
	guids := mad.PKeyTable{PKey: [mad.PKeysPerBlock]ib.PKey{ib.DefaultPKeyLimited, drill.KeyA, drill.KeyB, drill.KeyC}}
	out = []drill.SMP{
		{Attr: mad.AttrPKeyTable, Mod: mad.PKeyTableMod(at.Port, 0), Data: drill.With(s, &guids)},
		{Attr: mad.AttrLinearForwardingTable, Data: drill.With(s, &drop)},
		{Attr: mad.AttrMulticastForwardingTable, Mod: mad.MulticastForwardingMod(0, 0), Data: drill.Filled(0xFF)},
		{Attr: mad.AttrSLtoVLMappingTable, Mod: mad.SLtoVLMod(0, at.Port), Data: drill.Filled(0xFF)},
		{Attr: mad.AttrVLArbitration, Mod: mad.VLArbitrationMod(mad.VLArbLow0, at.Port), Data: drill.Filled(0x01)},
		{Attr: mad.AttrSwitchInfo, Data: drill.With(s, &sw)},
		{Attr: mad.AttrPortInfo, Mod: mad.PortInfoMod(at.Port, 0), Data: drill.With(s, &down)},
	}
	for i := range out {
		out[i].To = at.Node
	}
	moved := t.Fabric.PortInfo("h1", 1)
	moved.LID, moved.PortState, moved.PortPhysicalState = 0xBEEF, ib.PortDown, 0
	return append(out,
		drill.SMP{To: "h1", Attr: mad.AttrPKeyTable, Data: drill.Filled(0)},
		drill.SMP{To: "h1", Attr: mad.AttrGUIDInfo, Data: drill.Filled(0x11)},
		drill.SMP{To: "h1", Attr: mad.AttrSLtoVLMappingTable, Data: drill.Filled(0xFF)},
		drill.SMP{To: "h1", Attr: mad.AttrVLArbitration, Mod: mad.VLArbitrationMod(mad.VLArbLow0, 1), Data: drill.Filled(0x01)},
		drill.SMP{To: "h1", Attr: mad.AttrPortInfo, Mod: mad.PortInfoMod(1, 0), Data: drill.With(s, &moved)},
	)
}

// attackWith sends all harmful Sets from a host, with a key, and demands that nothing changes and none is answered.
func attackWith(a *drill.Attacker, key ib.MKey) {
	t, s := a.Site, a.Site.Scene
	before := t.State()
	for _, q := range harmful(t) {
		q.Set, q.Key = true, key
		answer := a.Ask(q)
		s.Check(answer == nil, "%v from %s was answered: %v", &q, a.Host, answerStatus(answer))
		if list := drill.Changed(before, t.State()); !s.Check(len(list) == 0, "%v from %s changed %q", &q, a.Host, list) {
			return // its own way may be gone now
		}
	}
}

func answerStatus(m *mad.MAD) mad.Status {
	if m == nil {
		return mad.StatusOK
	}
	return m.Status()
}

// foreignSets is T29.
func foreignSets(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Firewalled: []string{"h8"}})
	t.Victim("h1", "h5")
	t.Victim("h2", "h6")
	h7, leaf := t.Attacker("h7"), t.SwitchPort("h1", 1).Node
	own := h7.OwnKey()
	t.Attack()
	s.Tried("h7 sends a Set of each attribute to h1 and to its switch: without an M_Key, with a made-up one, and with that of its own adapter")
	for _, key := range []ib.MKey{{}, ib.NewMKey(0xDEADBEEF12345678), own} {
		attackWith(h7, key)
	}
	t.Reported(5*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h7"))
	if n, m := t.Violations(leaf), t.Violations("h1"); n > 0 && m > 0 {
		s.Stopped("devices are silent without their own M_Key, which no other device has")
		t.Counted(true, "MKeyViolations of the switch is %d, of h1 %d", n, m)
	}
	behindFirewall(t, "h8")
	s.Must(t.Settle(drill.SettleTime))
}

// behindFirewall has a host whose adapter has the SMP firewall send all harmful
// Sets, and demands that none leaves it.
func behindFirewall(t *drill.Site, host string) {
	s := t.Scene
	s.Tried("%s sends the same; the firewall of its adapter is on, and locked", host)
	barred, seen := t.Fabric.Stats().Barred, t.Violations(t.SwitchPort("h1", 1).Node)
	attackWith(t.Attacker(host), ib.MKey{})
	barred = t.Fabric.Stats().Barred - barred
	s.Check(t.Violations(t.SwitchPort("h1", 1).Node) == seen, "SMPs of %s reached a switch through the firewall", host)
	if s.Check(barred == uint64(len(harmful(t))), "the firewall of %s kept %d of %d SMPs", host, barred, len(harmful(t))) {
		s.Stopped("the firewall of the adapter kept all %d", barred)
	}
}

// foreignGets is T30.
func foreignGets(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	h7 := t.Attacker("h7")
	t.Attack()
	s.Tried("h7 sends Gets of nine attributes to every other node, without an M_Key and with that of its own adapter")
	asked, told := 0, 0
	for _, key := range []ib.MKey{{}, h7.OwnKey()} {
		for _, to := range t.Fabric.Nodes() {
			if to == "h7" {
				continue
			}
			for _, attr := range []mad.AttrID{
				mad.AttrNodeInfo, mad.AttrNodeDescription, mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrGUIDInfo,
				mad.AttrSwitchInfo, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSLtoVLMappingTable,
			} {
				q := drill.SMP{To: to, Attr: attr, Key: key}
				asked++
				if answer := h7.Ask(q); answer != nil {
					told++
					s.Check(false, "%v was answered", &q)
				}
			}
		}
	}
	t.Reported(5*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h7"))
	if told == 0 {
		s.Stopped("protection level 2: none of %d Gets was answered", asked)
	}
}

// askedKeys is T35.
func askedKeys(s *drill.Scene) {
	guess := []ib.MKey{{}, ib.NewMKey(0xDEADBEEF12345678)}
	t := s.Site(managed(s))
	t.Victim("h1", "h5")
	h7 := t.Attacker("h7")
	s.Tried("h7 asks devices for their PortInfo, with no M_Key and with a made-up one")
	t.Attack()
	for _, key := range guess {
		for _, to := range []string{"h1", "sm", t.SwitchPort("h1", 1).Node, t.SwitchPort("h7", 1).Node} {
			s.Check(!t.KeyOf(to).IsZero(), "%s has no M_Key that could be learned", to)
			var pi mad.PortInfo
			if m := h7.Ask(drill.SMP{To: to, Attr: mad.AttrPortInfo, Key: key}); m != nil && mad.Decode(m.Data(), &pi) == nil {
				s.Check(pi.MKey.IsZero(), "%s shows h7 its M_Key", to)
			}
		}
	}
	t.Reported(5*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h7"))
	s.Stopped("devices with an M_Key show it to no host")

	askedSMInfo(s, t, h7)
	o := managed(s)
	o.NoKeys = true
	u := s.Site(o)
	u.Victim("h1", "h5")
	askedSMInfo(s, u, u.Attacker("h7"))
}

// askedSMInfo has h7 ask the subnet manager for its SMInfo, without an M_Key.
func askedSMInfo(s *drill.Scene, u *drill.Site, h7 *drill.Attacker) {
	s.Tried("it asks the subnet manager for its SMInfo, with M_Keys on devices and without: no adapter holds SMInfo to its M_Key")
	q := drill.SMP{To: "sm", Attr: mad.AttrSMInfo}
	h7.At.Send(h7.Make(&q))
	u.Collect()
	u.Run(time.Second)
	told := 0
	for _, p := range h7.At.Take(nil) {
		var si mad.SMInfo
		if p.MAD.Attr() == mad.AttrSMInfo && p.MAD.Method() == mad.MethodGetResp && mad.Decode(p.MAD.Data(), &si) == nil && si.GUID == u.GUID("sm", 1) {
			told++
			s.Check(si.SMKey.IsZero(), "the subnet manager shows h7 its SM_Key")
		}
	}
	if s.Check(told == 1, "the subnet manager answered %d of 1 Gets of SMInfo", told) {
		s.Stopped("the subnet manager zeroes the SM_Key in its answers to places where none is allowed")
	}
}

// learnedKey is T36.
func learnedKey(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	other := map[ib.MKey]string{}
	for _, node := range t.Fabric.Nodes() {
		if node != "h7" && !t.KeyOf(node).IsZero() {
			other[t.KeyOf(node)] = node
		}
	}
	was := t.KeyOf("h7")
	heard := map[ib.MKey]bool{}
	way := t.Route("sm", "h7")
	t.OnSend = func(r *sm.Request) bool {
		if !r.MAD.IsDR() || r.MAD.Route() != way {
			return false
		}
		var pi mad.PortInfo
		if r.MAD.Attr() == mad.AttrPortInfo && mad.Decode(r.MAD.Data(), &pi) == nil {
			heard[pi.MKey] = true
		}
		heard[r.MAD.MKey()] = true
		return false
	}
	s.Tried("h7 poses as h1, as a switch and as its own successor, and writes down every M_Key that the subnet manager sends it")
	h7 := t.Attacker("h7")
	t.Attack()
	for _, guid := range []ib.GUID{t.List.Find("h1").GUID, t.List.Find(t.SwitchPort("h7", 1).Node).GUID, 0x00BAD00000000077} {
		t.Replug("h7", guid)
		t.Run(30 * time.Second)
	}
	t.Run(time.Minute)
	delete(heard, ib.MKey{})
	for key := range heard {
		s.Check(other[key] == "", "the subnet manager sent h7 the M_Key of %s", other[key])
	}
	s.Check(len(heard) > 0, "the subnet manager sent h7 no M_Key, so nothing is proven")
	t.OnSend = nil
	place := t.Place("h7", 1)
	t.Reported(time.Second, "that the M_Key of h7 was shown to another device", drill.Is(func(e *keyevent.KeyExposed) bool { return e.Place == place }))
	s.Tried("h7 tries the %d keys that it heard on h1 and its switch", len(heard))
	for key := range heard {
		attackWith(h7, key)
	}
	t.Replug("h7", t.List.Find("h7").GUID)
	t.Run(time.Minute)
	s.Check(t.KeyOf("h7") != was && !t.KeyOf("h7").IsZero(), "h7 has the M_Key again that was shown to others")
	s.Check(t.Open("h7"), "h7 is itself again, and its port stays closed")
	s.Tried("h7 poses as another device for a moment and does not boot, so that its adapter goes on with the key that was shown")
	was = t.KeyOf("h7")
	t.Rename("h7", 0x00BAD00000000078)
	t.Run(30 * time.Second)
	t.Rename("h7", t.List.Find("h7").GUID)
	s.Check(t.Until(5*time.Minute, func() bool { return t.KeyOf("h7") != was && t.Settled() }), "h7 goes on with the key that was shown to others")
	s.Check(!t.Attacker("h8").Opens("h7", was), "h7 obeys the key that was shown to others beside its new one")
	s.Stopped("at a place only the keys of the device are tried that belongs there; a key that another one saw is replaced, and dropped")
	posedNeighbour(s)
}

// foreignMKey is T37.
func foreignMKey(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h8"}}), Firewalled: []string{"h8"}})
	t.Victim("h1", "h5")
	guid, place := t.GUID("h7", 1), t.Place("h7", 1)
	s.Tried("h7 of tenant C sets an M_Key on its own adapter, which does not ask its host for the old one; so does h8 behind the firewall")
	h7, h8 := t.Attacker("h7"), t.Attacker("h8")
	t.Attack()
	for _, a := range []*drill.Attacker{h7, h8} {
		pi := t.Fabric.PortInfo(a.Host, 1)
		pi.MKey, pi.MKeyProtectBits, pi.MKeyLeasePeriod, pi.PortState = ib.NewMKey(0x0123456789ABCDEF), 2, 0, 0
		pi.PortPhysicalState = 0
		a.Ask(drill.SMP{To: a.Host, Set: true, Attr: mad.AttrPortInfo, Mod: 1, Data: drill.With(s, &pi)})
	}
	s.Check(t.KeyOf("h8") != ib.NewMKey(0x0123456789ABCDEF), "h8 has set the M_Key of its adapter through the firewall")
	s.Check(t.KeyOf("h7") == ib.NewMKey(0x0123456789ABCDEF), "h7 could not set the key, so nothing is proven")
	t.Reported(25*time.Minute, "that the M_Key of h7 is none of ours", drill.Is(func(e *keyevent.KeyProblem) bool { return e.GUID == guid }))
	t.Withdraw(t.GrantOf("h7", 1, drill.KeyC))
	if t.Isolated(time.Minute, "h7 does not reach tenant C after the withdrawal", func() bool {
		return t.Send("h7", "h8", drill.KeyC).Fate != sim.Delivered
	}) {
		s.Stopped("the adapter is lost, its switch port %v is not: it is closed, and what h7 may do is taken away there", place)
	}
	s.Check(t.Until(time.Minute, func() bool { return len(t.TenantKeys(t.SwitchPort("h7", 1))) == 0 }), "switch port %v still has %v", place, t.TenantKeys(t.SwitchPort("h7", 1)))
	lockedOutAsAnother(s)
}
