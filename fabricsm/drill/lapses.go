package drill

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/stage"
	"portcullis/fabricsm/transport"
)

// lapseDrills are about sites whose M_Keys have a lease.
func lapseDrills() []Drill {
	return []Drill{
		{ID: "T158", Threat: "flood the manager until leases of M_Keys run out, read a key, and pass data into another tenant's partition", Play: floodedLeases},
		{ID: "T159", Threat: "go on with an M_Key that was read when its lease had run out", Play: keptAfterLapse},
	}
}

// crowded is a manager whose adapter has room for 512 packets, as Linux has, and that looks at so many a second.
func crowded(perSecond int) stage.Work {
	each := time.Second / time.Duration(perSecond)
	return stage.Work{Packet: each, Dropped: each, Waiting: 512}
}

// shownKey returns the M_Key that a device shows to a host that has none. No key is zero if it shows none.
func (a *attacker) shownKey(node string) ib.MKey {
	var pi mad.PortInfo
	m := a.ask(smp{to: node, attr: mad.AttrPortInfo})
	if m == nil || mad.Decode(m.Data(), &pi) != nil {
		return ib.MKey{}
	}
	return pi.MKey
}

// passes has a host write a P_Key into the table of its own switch port, with the M_Key of that switch, and into that of
// its adapter, and reports whether data with it then reaches another host.
func (a *attacker) passes(key ib.MKey, to string, pkey ib.PKey) bool {
	t := a.site
	at := t.SwitchPort(a.host, 1)
	table := mad.PKeyTable{PKey: [mad.PKeysPerBlock]ib.PKey{ib.DefaultPKeyLimited, pkey}}
	a.ask(smp{to: at.Node, set: true, attr: mad.AttrPKeyTable, mod: mad.PKeyTableMod(at.Port, 0), key: key, data: with(t.scene, &table)})
	a.ask(smp{to: a.host, set: true, attr: mad.AttrPKeyTable, data: with(t.scene, &table)})
	return t.Send(a.host, to, pkey).Fate == sim.Delivered
}

// floodedLeases is T158.
func floodedLeases(s *Scene) {
	const lease, perMilli, perSecond, lasts = 10, 16, 4000, 25 * time.Second
	o := administered()
	o.SM.MKey.Lease = lease
	o.Work = crowded(perSecond)
	t := s.Site(o)
	t.Victim("h2", "h6")
	attackers := []*attacker{t.attacker("h1"), t.attacker("h5")}
	from := []*client{t.client("h1"), t.client("h5")}
	ways := []mad.Route{t.route("h1", "sm"), t.route("h5", "sm")}
	s.Tried("h1 and h5 of one tenant send the master %d questions for SMInfo and traps a second, four times as many as it can look at, for %v; h1 shows each device a wrong M_Key ten times a second, and asks for PortInfo without one; leases are of %d s", perMilli*1000, lasts, lease)
	t.Attack()
	sent, ran, opened := uint64(0), false, false
	least := lease * time.Second
	for began := t.Now(); !opened && t.Now()-began < lasts; {
		if (t.Now()-began)%(100*time.Millisecond) == 0 {
			left, running := t.leastLease()
			ran, least = ran || running, min(least, left)
			opened = t.readsKeys(attackers, t.Now()-began)
		}
		for range perMilli {
			i := sent % 2
			sent++
			from[i].at.Send(t.crowdWith(from[i], ways[i], sent))
		}
		t.Collect()
		t.Run(time.Millisecond)
		for _, c := range from {
			c.at.Take(nil)
		}
	}
	s.Check(t.Overflowed() > sent/2, "%d of %d packets were lost because too many waited, so nothing is proven", t.Overflowed(), sent)
	s.Check(ran, "no lease ran, so nothing is proven")
	for _, h := range t.Since(t.mark) {
		if e, ok := h.Event.(*sm.ProtectionLapsed); ok {
			s.Check(false, "the %v", e)
		}
	}
	if len(s.result.Failures) == 0 {
		s.Stopped("each device is read under its key three times in a lease, before all other work, and asked again while it is silent: of %d s at least %v were left everywhere, though %d of %d packets to the manager were lost", lease, least.Truncate(time.Millisecond), t.Overflowed(), sent)
	}
	t.Reported(3*time.Second, "the flood", t.dropped("h1", trust.Flood))
	t.Reported(3*time.Second, "SMPs with a wrong M_Key", t.wrongMKey("h1"))
	s.Must(t.Settle(5 * time.Minute))
}

// crowdWith makes a packet of a flood: a trap, or a question for SMInfo with another end of the return path each.
func (t *Site) crowdWith(c *client, way mad.Route, n uint64) transport.Packet {
	c.tid++
	p := transport.Packet{LID: ib.PermissiveLID}
	if n%8 == 7 {
		p.LID = t.View().LID
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: c.tid}, nil, ib.MKey{})
		return p
	}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.tid}, &way, ib.MKey{})
	binary.BigEndian.PutUint64(p.MAD[len(p.MAD)-8:], n*0x9e3779b97f4a7c15)
	return p
}

// leastLease returns what is left of the lease that ends first, and whether any runs.
func (t *Site) leastLease() (least time.Duration, ran bool) {
	least = time.Duration(t.options.SM.MKey.Lease) * time.Second
	for _, n := range t.Fabric.Nodes() {
		if left, running := t.Fabric.MKeyLease(n, t.endPortOf(n)); running {
			least, ran = min(least, left), true
		}
	}
	return least, ran
}

// readsKeys has the first of some attackers ask each other device for its M_Key, and demands that none shows it. An attacker
// at a switch that does uses the key. It reports whether there is one.
func (t *Site) readsKeys(all []*attacker, after time.Duration) (used bool) {
	for _, to := range t.Fabric.Nodes() {
		key := ib.MKey{}
		if to != all[0].host {
			key = all[0].shownKey(to)
		}
		if key.IsZero() {
			continue
		}
		t.scene.Check(false, "%s shows %s its M_Key %v after the attack began", to, all[0].host, after)
		for _, a := range all {
			if to == t.SwitchPort(a.host, 1).Node {
				a.writesOwnPort(key)
				used = true
			}
		}
	}
	return used
}

// writesOwnPort has a host of tenant A use an M_Key on its switch, and demands that it does not reach tenant B.
func (a *attacker) writesOwnPort(key ib.MKey) {
	a.site.scene.Check(!a.passes(key, "h2", keyB), "%s writes the P_Key of tenant B into the table of its own switch port, and reaches h2", a.host)
}

// keptAfterLapse is T159.
func keptAfterLapse(s *Scene) {
	const lease = 5
	deaf := func(t *Site) {
		t.OnSend = func(*sm.Request) bool { return true }
		t.OnAnswer = func(*transport.Packet) bool { return true }
	}
	hears := func(t *Site) { t.OnSend, t.OnAnswer = nil, nil }
	down := func(t *Site) { t.Crash() }
	up := func(t *Site) { t.Start(); t.Want(t.Intent()) }
	for _, away := range []struct {
		how        string
		gone, back func(*Site)
	}{{"hears and sends nothing", deaf, hears}, {"is down", down, up}} {
		t := s.Site(SiteOptions{Tenants: twoTenants(), SM: sm.Config{MKey: sm.MKeyConfig{Lease: lease}}})
		t.Victim("h2", "h6")
		h1, leaf := t.attacker("h1"), t.SwitchPort("h1", 1).Node
		guid := t.GUID(leaf, 0)
		const long = 2*lease + 2
		s.Tried("the subnet manager %s for %d s, leases are of %d s; h1 shows its switch a wrong M_Key, reads the right one when the lease has run out, and goes on with it when the manager is back", away.how, long, lease)
		away.gone(t)
		s.Check(h1.shownKey(leaf).IsZero(), "%s shows its M_Key before its lease ran out", leaf)
		t.Run(long * time.Second)
		key := h1.shownKey(leaf)
		s.Check(!key.IsZero() && key == t.keyOf(leaf), "%s does not show its M_Key after its lease ran out, so nothing is proven", leaf)
		t.Attack()
		away.back(t)
		t.Reported(10*time.Second, "that protection lapsed", is(func(e *sm.ProtectionLapsed) bool { return e.GUID == guid }))
		if t.Isolated(10*time.Second, leaf+" does not obey the M_Key that was read", func() bool { return !h1.opens(leaf, key) }) {
			s.Stopped("the switch gets another key as soon as the manager reads that its protection is gone, whether the manager was deaf or down")
		}
		h1.writesOwnPort(key)
		s.Must(t.Settle(settleTime))
		s.Check(t.keyOf(leaf) != key && !t.keyOf(leaf).IsZero(), "%s has the M_Key that was read, or none", leaf)
	}
}
