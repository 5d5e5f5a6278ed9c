package administration

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// LapseDrills are about sites whose M_Keys have a lease.
func LapseDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T158", Threat: "flood the manager until leases of M_Keys run out, read a key, and pass data into another tenant's partition", Play: floodedLeases},
		{ID: "T159", Threat: "go on with an M_Key that was read when its lease had run out", Play: keptAfterLapse},
	}
}

// crowded is a manager whose adapter has room for 512 packets, as Linux has, and that looks at so many a second.
func crowded(perSecond int) testbed.Work {
	each := time.Second / time.Duration(perSecond)
	return testbed.Work{Packet: each, Dropped: each, Waiting: 512}
}

// shownKey returns the M_Key that a device shows to a host that has none. No key is zero if it shows none.
func shownKey(a *drill.Attacker, node string) ib.MKey {
	var pi mad.PortInfo
	m := a.Ask(drill.SMP{To: node, Attr: mad.AttrPortInfo})
	if m == nil || mad.Decode(m.Data(), &pi) != nil {
		return ib.MKey{}
	}
	return pi.MKey
}

// passes has a host write a P_Key into the table of its own switch port, with the M_Key of that switch, and into that of
// its adapter, and reports whether data with it then reaches another host.
func passes(a *drill.Attacker, key ib.MKey, to string, pkey ib.PKey) bool {
	t := a.Site
	at := t.SwitchPort(a.Host, 1)
	table := mad.PKeyTable{PKey: [mad.PKeysPerBlock]ib.PKey{ib.DefaultPKeyLimited, pkey}}
	a.Ask(drill.SMP{To: at.Node, Set: true, Attr: mad.AttrPKeyTable, Mod: mad.PKeyTableMod(at.Port, 0), Key: key, Data: drill.With(t.Scene, &table)})
	a.Ask(drill.SMP{To: a.Host, Set: true, Attr: mad.AttrPKeyTable, Data: drill.With(t.Scene, &table)})
	return t.Send(a.Host, to, pkey).Fate == sim.Delivered
}

// floodedLeases is T158.
func floodedLeases(s *drill.Scene) {
	const lease, perMilli, perSecond, lasts = 10, 16, 4000, 25 * time.Second
	o := drill.Administered()
	o.SM.MKey.Lease = lease
	o.Work = crowded(perSecond)
	t := s.Site(o)
	t.Victim("h2", "h6")
	attackers := []*drill.Attacker{t.Attacker("h1"), t.Attacker("h5")}
	from := []*drill.Client{t.Client("h1"), t.Client("h5")}
	ways := []mad.Route{t.Route("h1", "sm"), t.Route("h5", "sm")}
	s.Tried("h1 and h5 of one tenant send the master %d questions for SMInfo and traps a second, four times as many as it can look at, for %v; h1 shows each device a wrong M_Key ten times a second, and asks for PortInfo without one; leases are of %d s", perMilli*1000, lasts, lease)
	t.Attack()
	sent, ran, opened := uint64(0), false, false
	least := lease * time.Second
	for began := t.Now(); !opened && t.Now()-began < lasts; {
		if (t.Now()-began)%(100*time.Millisecond) == 0 {
			left, running := leastLease(t)
			ran, least = ran || running, min(least, left)
			opened = readsKeys(t, attackers, t.Now()-began)
		}
		for range perMilli {
			i := sent % 2
			sent++
			from[i].At.Send(crowdWith(t, from[i], ways[i], sent))
		}
		t.Collect()
		t.Run(time.Millisecond)
		for _, c := range from {
			c.At.Take(nil)
		}
	}
	s.Check(t.Overflowed() > sent/2, "%d of %d packets were lost because too many waited, so nothing is proven", t.Overflowed(), sent)
	s.Check(ran, "no lease ran, so nothing is proven")
	for _, h := range t.Since(t.Begun) {
		if e, ok := h.Event.(*keyevent.ProtectionLapsed); ok {
			s.Check(false, "the %v", e)
		}
	}
	if len(s.Result.Failures) == 0 {
		s.Stopped("each device is read under its key three times in a lease, before all other work, and asked again while it is silent: of %d s at least %v were left everywhere, though %d of %d packets to the manager were lost", lease, least.Truncate(time.Millisecond), t.Overflowed(), sent)
	}
	t.Reported(3*time.Second, "the flood", t.Dropped("h1", trust.Flood))
	t.Reported(3*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h1"))
	s.Must(t.Settle(5 * time.Minute))
}

// crowdWith makes a packet of a flood: a trap, or a question for SMInfo with another end of the return path each.
func crowdWith(t *drill.Site, c *drill.Client, way mad.Route, n uint64) transport.Packet {
	c.TID++
	p := transport.Packet{LID: ib.PermissiveLID}
	if n%8 == 7 {
		p.LID = t.View().LID
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: c.TID}, nil, ib.MKey{})
		return p
	}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.TID}, &way, ib.MKey{})
	binary.BigEndian.PutUint64(p.MAD[len(p.MAD)-8:], n*0x9e3779b97f4a7c15)
	return p
}

// leastLease returns what is left of the lease that ends first, and whether any runs.
func leastLease(t *drill.Site) (least time.Duration, ran bool) {
	least = time.Duration(t.Options.SM.MKey.Lease) * time.Second
	for _, n := range t.Fabric.Nodes() {
		if left, running := t.Fabric.MKeyLease(n, t.EndPortOf(n)); running {
			least, ran = min(least, left), true
		}
	}
	return least, ran
}

// readsKeys has the first of some attackers ask each other device for its M_Key, and demands that none shows it. An attacker
// at a switch that does uses the key. It reports whether there is one.
func readsKeys(t *drill.Site, all []*drill.Attacker, after time.Duration) (used bool) {
	for _, to := range t.Fabric.Nodes() {
		key := ib.MKey{}
		if to != all[0].Host {
			key = shownKey(all[0], to)
		}
		if key.IsZero() {
			continue
		}
		t.Scene.Check(false, "%s shows %s its M_Key %v after the attack began", to, all[0].Host, after)
		for _, a := range all {
			if to == t.SwitchPort(a.Host, 1).Node {
				writesOwnPort(a, key)
				used = true
			}
		}
	}
	return used
}

// writesOwnPort has a host of tenant A use an M_Key on its switch, and demands that it does not reach tenant B.
func writesOwnPort(a *drill.Attacker, key ib.MKey) {
	a.Site.Scene.Check(!passes(a, key, "h2", drill.KeyB), "%s writes the P_Key of tenant B into the table of its own switch port, and reaches h2", a.Host)
}

// keptAfterLapse is T159.
func keptAfterLapse(s *drill.Scene) {
	const lease = 5
	deaf := func(t *drill.Site) {
		t.OnSend = func(*sm.Request) bool { return true }
		t.OnAnswer = func(*transport.Packet) bool { return true }
	}
	hears := func(t *drill.Site) { t.OnSend, t.OnAnswer = nil, nil }
	down := func(t *drill.Site) { t.Crash() }
	up := func(t *drill.Site) { t.Start(); t.Want(t.Intent()) }
	for _, away := range []struct {
		how        string
		gone, back func(*drill.Site)
	}{{"hears and sends nothing", deaf, hears}, {"is down", down, up}} {
		t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{MKey: mkeys.Config{Lease: lease}}})
		t.Victim("h2", "h6")
		h1, leaf := t.Attacker("h1"), t.SwitchPort("h1", 1).Node
		guid := t.GUID(leaf, 0)
		const long = 2*lease + 2
		s.Tried("the subnet manager %s for %d s, leases are of %d s; h1 shows its switch a wrong M_Key, reads the right one when the lease has run out, and goes on with it when the manager is back", away.how, long, lease)
		away.gone(t)
		s.Check(shownKey(h1, leaf).IsZero(), "%s shows its M_Key before its lease ran out", leaf)
		t.Run(long * time.Second)
		key := shownKey(h1, leaf)
		s.Check(!key.IsZero() && key == t.KeyOf(leaf), "%s does not show its M_Key after its lease ran out, so nothing is proven", leaf)
		t.Attack()
		away.back(t)
		t.Reported(10*time.Second, "that protection lapsed", drill.Is(func(e *keyevent.ProtectionLapsed) bool { return e.GUID == guid }))
		if t.Isolated(10*time.Second, leaf+" does not obey the M_Key that was read", func() bool { return !h1.Opens(leaf, key) }) {
			s.Stopped("the switch gets another key as soon as the manager reads that its protection is gone, whether the manager was deaf or down")
		}
		writesOwnPort(h1, key)
		s.Must(t.Settle(drill.SettleTime))
		s.Check(t.KeyOf(leaf) != key && !t.KeyOf(leaf).IsZero(), "%s has the M_Key that was read, or none", leaf)
	}
}
