package threats

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// staleKey is T6.
func staleKey(s *drill.Scene) {
	device := sim.Modern()
	device.KeepsPKeys = true
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Fabric: sim.Options{Device: device}})
	t.Victim("h2", "h6")
	t.Attack()
	s.Tried("tenant A leaves while its host h1 is switched off, with %v in the non-volatile memory of its HCA; tenant C gets that P_Key at once; h1 comes back", drill.KeyA)
	s.Must(t.Fabric.PowerOff("h1"))
	t.Collect()
	t.Run(5 * time.Second)
	gone := t.GrantOf("h1", 1, drill.KeyA)
	t.Withdraw(gone, t.GrantOf("h5", 1, drill.KeyA))
	s.Must(t.Settle(drill.SettleTime))
	for _, h := range t.Since(t.Begun) {
		e, ok := h.Event.(*sm.MembershipRemoved)
		s.Check(!ok || e.GUID != gone.GUID || !e.HCAProven, "it is reported that the HCA of h1, which is off, has lost %v", drill.KeyA)
	}
	t.Grant(t.GrantOf("h3", 1, drill.KeyA), t.GrantOf("h7", 1, drill.KeyA))
	s.Must(t.Settle(drill.SettleTime))
	newcomers := t.Flow("h3", "h7", drill.KeyA)
	s.Must(t.Fabric.PowerOn("h1"))
	t.Collect()
	s.Check(t.Fabric.PKeyAt("h1", 1, 1) == drill.KeyA, "h1 did not keep its table through the reboot, so nothing is proven")
	reached := 0
	t.Until(drill.SettleTime, func() bool {
		for _, to := range []string{"h3", "h7"} {
			if t.LID("h1") != 0 && t.Send("h1", to, drill.KeyA).Fate == sim.Delivered {
				reached++
			}
		}
		return len(t.TenantKeys(drill.Port("h1"))) == 0 && t.Open("h1")
	})
	s.Check(reached == 0, "h1 reached hosts of tenant C %d times with the P_Key it had kept", reached)
	if t.Isolated(time.Second, "the HCA of h1 has lost the P_Key", func() bool { return len(t.TenantKeys(drill.Port("h1"))) == 0 }) {
		s.Stopped("the switch port had lost %v before another host got it, and h1 has lost it before its port was opened", drill.KeyA)
	}
	t.Reported(time.Second, "that the HCA could not be asked", drill.Is(func(e *sm.MembershipRemoved) bool { return e.GUID == gone.GUID && !e.HCAProven }))
	s.Check(newcomers.Counts().Delivered > 0, "tenant C cannot use its P_Key")
}

// fullTable is T7.
func fullTable(s *drill.Scene) {
	for _, small := range []struct {
		what   string
		device func(*sim.Device)
	}{
		{"HCAs", func(d *sim.Device) { d.PartitionCap = 3 }},
		{"switch ports", func(d *sim.Device) { d.EnforcementCap = 3 }},
	} {
		device := sim.Modern()
		small.device(&device)
		t := s.Site(drill.SiteOptions{
			Tenants: []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h1", "h6"}}, {Name: "C", PKey: drill.KeyC, Hosts: []string{"h7"}}},
			Fabric:  sim.Options{Device: device},
		})
		t.Victim("h5", "h1")
		t.Victims = append(t.Victims, t.Flow("h1", "h6", drill.KeyB), t.Flow("h6", "h1", drill.KeyB))
		t.Attack()
		s.Tried("the tables of %s hold 3 P_Keys, and h1, which is in two partitions and the default one, is put into a third", small.what)
		t.Grant(t.GrantOf("h1", 1, drill.KeyC))
		t.Reported(5*time.Second, "that the table is full", drill.Is(func(e *sm.MembershipRefused) bool { return e.PKey == drill.KeyC }))
		s.Must(t.Settle(drill.SettleTime))
		for _, h := range t.Since(t.Begun) {
			e, ok := h.Event.(*sm.MembershipApplied)
			s.Check(!ok || e.GUID != t.GUID("h1", 1) || e.PKey != drill.KeyC, "it is reported that h1 is a member of %v", drill.KeyC)
		}
		r := t.Send("h7", "h1", drill.KeyC)
		s.Check(r.Fate != sim.Delivered, "h7 reaches h1 with %v", drill.KeyC)
		for _, at := range []sim.Endpoint{drill.Port("h1"), t.SwitchPort("h1", 1)} {
			if keys := t.TenantKeys(at); s.Check(len(keys) == 2, "%s port %d holds %v, want what it held", at.Node, at.Port, keys) {
				s.Stopped("with small tables of %s the third partition is refused, the others stay", small.what)
			}
		}
	}
}

// bothForms is T8.
func bothForms(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Attack()
	s.Tried("h1, which is in partition %v, is granted it in both forms at once, in either order, and then in one after the other", drill.KeyA)
	full, limited := t.GrantOf("h1", 1, drill.KeyA), t.GrantOf("h1", 1, drill.KeyA.Limited())
	in := t.Intent()
	for _, both := range [][]sm.Grant{{full, limited}, {limited, full}} {
		in.Revision++
		in.Grants = append(slices.DeleteFunc(slices.Clone(in.Grants), func(g sm.Grant) bool { return g.GUID == full.GUID }), both...)
		t.Want(in)
		hasForm(t, "h1", drill.KeyA.Limited())
	}
	s.Stopped("what counts is the partition: both forms are one membership, and of both in one intent the limited one is meant")
	for _, one := range []sm.Grant{full, limited, full} {
		t.Grant(one)
		hasForm(t, "h1", one.PKey)
	}
	s.Stopped("another form takes the place of the one before, on the switch port first")
	t.Reported(time.Second, "which form h1 has", drill.Is(func(e *sm.MembershipApplied) bool { return e.GUID == full.GUID && e.PKey == drill.KeyA.Limited() }))
	for _, line := range []string{"A=1 : 0x10=both;", "A=0x8001 : 0x10=limited; A=1 : 0x10=full;"} {
		_, err := conf.Parse("partitions.conf", []byte(line))
		t.Counted(err != nil, "the file of partitions is refused: %v", err)
	}
}

// hasForm demands that a host comes to have tenant A's P_Key in one form, and in no
// other, in its own table and at its switch port.
func hasForm(t *drill.Site, host string, key ib.PKey) {
	s := t.Scene
	s.Must(t.Settle(drill.SettleTime))
	for _, at := range []sim.Endpoint{drill.Port(host), t.SwitchPort(host, 1)} {
		keys := t.TenantKeys(at)
		s.Check(len(keys) == 1 && keys[0] == key, "%s port %d holds %v, want %v alone", at.Node, at.Port, keys, key)
	}
}

// betweenWrites is T10.
func betweenWrites(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Attack()
	s.Tried("the HCA of h1 does not answer when %v is taken from it; h1 goes on sending", drill.KeyA)
	s.Must(t.Fabric.SetFault("h1", sim.Fault{Silent: true}))
	gone := t.GrantOf("h1", 1, drill.KeyA)
	t.Withdraw(gone)
	at := t.SwitchPort("h1", 1)
	if t.Isolated(time.Second, "the switch port has lost the P_Key", func() bool { return len(t.TenantKeys(at)) == 0 }) {
		s.Stopped("the switch port loses it first, whatever the HCA does")
	}
	s.Check(len(t.TenantKeys(drill.Port("h1"))) == 1, "the HCA lost its P_Key although it does not answer")
	t.Run(time.Second)
	r := t.Send("h1", "h5", drill.KeyA)
	s.Check(r.Fate != sim.Delivered, "h1 reaches h5 after it was reported that it may not")
	for _, h := range t.Since(t.Begun) {
		e, ok := h.Event.(*sm.MembershipRemoved)
		s.Check(!ok || e.GUID != gone.GUID || !e.HCAProven, "it is reported that the HCA of h1, which does not answer, has lost %v", drill.KeyA)
	}
	t.Reported(time.Minute, "that the HCA could not be asked", drill.Is(func(e *sm.MembershipRemoved) bool { return e.GUID == gone.GUID && !e.HCAProven }))
	s.Must(t.Fabric.SetFault("h1", sim.Fault{}))
	s.Check(t.Until(5*time.Minute, func() bool { return len(t.TenantKeys(drill.Port("h1"))) == 0 }), "the HCA of h1 keeps the P_Key for ever")
	s.Must(t.Settle(drill.SettleTime))
	crashBetween(t)
}

// crashBetween is the part of T10 in which a member is added: the manager dies when the switch port has the P_Key and the
// HCA does not.
func crashBetween(t *drill.Site) {
	s := t.Scene
	s.Tried("the manager dies between the write to the switch port of h3 and the one to its HCA")
	added, at, mark := t.GrantOf("h3", 1, drill.KeyA), t.SwitchPort("h3", 1), t.Mark()
	t.OnSend = func(r *sm.Request) bool {
		if r.MAD.Attr() == mad.AttrPKeyTable && r.MAD.Method() == mad.MethodSet && len(t.TenantKeys(at)) == 1 {
			t.Crash()
			return true
		}
		return false
	}
	t.Grant(added)
	s.Check(t.Until(10*time.Second, func() bool { return !t.Running() }), "the P_Key did not come to the switch port before the HCA")
	t.OnSend = nil
	t.Run(time.Second)
	s.Check(len(t.TenantKeys(drill.Port("h3"))) == 0, "the HCA of h3 has a P_Key")
	told := func() bool {
		for _, h := range t.Since(mark) {
			if e, ok := h.Event.(*sm.MembershipApplied); ok && e.GUID == added.GUID {
				return true
			}
		}
		return false
	}
	s.Check(!told(), "it is reported that h3 is a member although its HCA has no P_Key")
	in := t.Intent()
	t.Start()
	t.Want(in)
	s.Must(t.Settle(drill.SettleTime))
	s.Check(told() && len(t.TenantKeys(drill.Port("h3"))) == 1, "h3 is no member after the manager came back")
	s.Stopped("a membership is reported when both tables were read back, and a manager that comes back completes what was begun")
}

// throughRouter is T11.
func throughRouter(s *drill.Scene) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2, Routers: 1})
	s.Must(err)
	t := s.Site(drill.SiteOptions{Netlist: l, Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	t.Attack()
	s.Tried("the router sends to h1 with %v, and h1 to the router", drill.KeyA)
	for _, at := range []sim.Endpoint{drill.Port("rt1"), t.SwitchPort("rt1", 1)} {
		s.Check(len(t.TenantKeys(at)) == 0, "%s port %d holds %v", at.Node, at.Port, t.TenantKeys(at))
	}
	for _, way := range [][2]string{{"rt1", "h1"}, {"h1", "rt1"}} {
		if r := t.Send(way[0], way[1], drill.KeyA); s.Check(r.Fate != sim.Delivered, "%s reaches %s with %v", way[0], way[1], drill.KeyA) {
			s.Stopped("from %s to %s: %v at %s port %d", way[0], way[1], r.Fate, r.At.Node, r.At.Port)
		}
	}
	t.Reported(2*time.Second, "the dropped packets", t.PKeyViolation("rt1", drill.KeyA))
}

// mintedAlias is T13.
func mintedAlias(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{AuditPeriod: time.Minute}})
	t.Step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{{GUID: t.GUID("h1", 1), Place: t.Place("h1", 1)}}})
	s.Must(t.Settle(drill.SettleTime))
	t.Victim("h2", "h6")
	t.Attack()
	alias := t.GUID("h2", 1)
	s.Tried("root of h1 writes the GUID of h2 of tenant B into the GUID table of its own port: %v", alias)
	st, err := t.Fabric.Station("h1", false)
	s.Must(err)
	defer st.Close()
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodSet, Attr: mad.AttrGUIDInfo}, &mad.Route{}, ib.MKey{})
	info := mad.GUIDInfo{}
	info.GUID[1] = alias
	s.Must(mad.Encode(m.Data(), &info))
	st.Send(transport.Packet{MAD: m, LID: ib.PermissiveLID})
	held := func() bool {
		g := t.Fabric.GUIDs("h1", 1)
		return len(g) > 1 && g[1] == alias
	}
	s.Check(held(), "the alias was not written, so nothing is proven")
	if t.Isolated(5*time.Minute, "the alias is taken away", func() bool { return !held() }) {
		s.Stopped("GUID tables are read again and again, and what is not granted is taken out")
	}
	for _, at := range []sim.Endpoint{drill.Port("h1"), t.SwitchPort("h1", 1)} {
		keys := t.TenantKeys(at)
		s.Check(len(keys) == 1 && keys[0] == drill.KeyA, "%s port %d holds %v, want %v alone", at.Node, at.Port, keys, drill.KeyA)
	}
	t.Reported(5*time.Minute, "that the port was cleaned", drill.Is(func(e *sm.AliasesApplied) bool { return e.GUID == t.GUID("h1", 1) }))
}

// rawPackets is T14.
func rawPackets(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Attack()
	at := t.SwitchPort("h1", 1)
	before, _ := t.Fabric.ConstraintErrors(at.Node, at.Port)
	s.Tried("h1 sends raw packets to hosts of tenant B and to the manager")
	for _, to := range []string{"h2", "h6", "sm"} {
		r := t.Inject("h1", sim.Data{SLID: t.LID("h1"), DLID: t.LID(to), Raw: true, Payload: 64})
		if s.Check(r.Fate != sim.Delivered, "a raw packet of h1 reached %s", to) {
			s.Stopped("%v at %s port %d", r.Fate, r.At.Node, r.At.Port)
		}
	}
	after, _ := t.Fabric.ConstraintErrors(at.Node, at.Port)
	t.Counted(after == before+3, "%s port %d counts %d PortRcvConstraintErrors", at.Node, at.Port, after-before)
}
