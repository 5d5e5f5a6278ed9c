package drill

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/trust"
)

// registrationDrills are those of all kinds of registrations by hosts.
func registrationDrills() []Drill {
	return []Drill{
		{ID: "T65", Threat: "register groups, services and subscriptions without end", Play: manyRegistrations},
		{ID: "T71", Threat: "learn the GIDs of others from tables of groups and services", Play: registeredGIDs},
		{ID: "T75", Threat: "register for other ports, or take back what they registered", Play: proxyRequests},
		{ID: "T77", Threat: "claim GUIDs of others as aliases, from a host and from its guests", Play: claimedAliases},
	}
}

// manyRegistrations is T65.
func manyRegistrations(s *Scene) {
	o := administered()
	limits := &o.SA.Trust
	limits.MaxGroups, limits.MaxServices, limits.MaxSubscriptions = 6, 5, 3
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := t.gather(groupOf(1000), keyB, "h2", "h6")
	traps := []mad.TrapNum{mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted}
	kinds := []struct {
		what    string
		most    int
		add     func(n int) question
		verdict trust.Verdict
	}{
		{"group", limits.MaxGroups, func(n int) question { return t.join("h1", groupOf(uint16(n)), keyA) }, trust.TooManyGroups},
		{"service", limits.MaxServices, func(n int) question { return t.register("h1", ib.ServiceID(n), "job", keyA) }, trust.TooManyServices},
		{"subscription", limits.MaxSubscriptions, func(n int) question { return subscribe(s, traps[n]) }, trust.TooManySubscriptions},
	}
	h1 := t.client("h1")
	s.Tried("h1 registers %d groups, %d services and %d subscriptions, which is what a port may have, and one more of each; and again when the Subnet Manager was restarted", kinds[0].most, kinds[1].most, kinds[2].most)
	t.Attack()
	held := true
	for _, k := range kinds {
		for n := range k.most {
			h1.answered(k.add(n), "%s number %d", k.what, n+1)
		}
		held = h1.silent(k.add(k.most), "%s number %d", k.what, k.most+1) && held
		t.Reported(time.Second, "that h1 registers too much", t.dropped("h1", k.verdict))
	}
	s.Must(t.Settle(settleTime))
	in := t.Intent()
	t.Crash()
	t.Start()
	t.Want(in)
	s.Must(t.Settle(settleTime))
	for _, k := range kinds {
		held = h1.silent(k.add(k.most), "%s number %d, after a restart", k.what, k.most+1) && held
		h1.answered(k.add(0), "the first %s once more, which it has", k.what)
	}
	if held {
		s.Stopped("one more than a port may have is dropped without a word, before a restart and after it")
	}
	h1.answered(t.leave("h1", groupOf(0)), "it leaves a group")
	h1.answered(kinds[0].add(kinds[0].most), "a group in the place of the one that it left")
	g.holds("with all that h1 registered")
	h2 := t.client("h2")
	for n := range 3 {
		h2.answered(t.join("h2", groupOf(uint16(500+n)), keyB), "group number %d of its own", n+2)
	}
}

// registeredGIDs is T71.
func registeredGIDs(s *Scene) {
	o := administered()
	o.Tenants = []Tenant{{"A", keyA, []string{"h1", "h5"}}, {"B", keyB, []string{"h2", "h6"}}}
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := t.gather(groupOf(1), keyB, "h2", "h6")
	mine := t.gather(groupOf(2), keyA, "h1", "h5")
	t.client("h2").answered(t.register("h2", 7, "db", keyB), "it offers a service")
	h1 := t.client("h1")
	s.Tried("h1 of tenant A asks for tables of all groups, members and services, and for each by what names it: the MGID, the GID of a member, the service's ID, GID, P_Key and name")
	t.Attack()
	held := true
	for _, attr := range []mad.AttrID{mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrGUIDInfoRecord} {
		held = h1.silent(question{method: mad.MethodGetTable, attr: attr}, "it asks for a table of %v", attr) && held
	}
	t.Reported(time.Second, "that h1 asks for tables", t.dropped("h1", trust.NotAllowed))
	group := func(mask mad.ComponentMask, rec mad.MCMemberRecord) question {
		return get(mad.AttrMCMemberRecord, mask, with(s, &rec))
	}
	nobody := ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001)
	const byMGID, byPort = mad.MCMemberComponentMGID, mad.MCMemberComponentPortGID
	for _, q := range [][2]question{
		{group(byMGID, mad.MCMemberRecord{MGID: g.mgid}), group(byMGID, mad.MCMemberRecord{MGID: groupOf(99)})},
		{group(byPort, mad.MCMemberRecord{PortGID: t.gidOf("h2")}), group(byPort, mad.MCMemberRecord{PortGID: nobody})},
		{group(byPort, mad.MCMemberRecord{PortGID: t.gidOf("h5")}), group(byPort, mad.MCMemberRecord{PortGID: nobody})},
		{group(mad.MCMemberComponentPKey, mad.MCMemberRecord{PKey: keyB}), group(mad.MCMemberComponentPKey, mad.MCMemberRecord{PKey: keyC})},
		{group(mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: g.rec.MLID}), group(mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: 0xC0FF})},
		{t.service("h2", 7, keyB), t.service("h2", 8, keyB)},
	} {
		held = h1.alike(q[0], q[1], "that tenant B has a group or a service") && held
	}
	name := mad.ServiceRecord{}
	copy(name.ServiceName[:], "db")
	m := h1.ask(get(mad.AttrServiceRecord, mad.ServiceComponentServiceName, with(s, &name)))
	held = s.Check(m != nil && m.Status() == mad.StatusNoRecords, "h1 gets a service of tenant B by its name") && held
	rec, ok := mine.now()
	held = s.Check(ok && rec.PortGID == (ib.GID{}) && rec.JoinState == 0, "h1 learns which ports are in the group of its own tenant: %v", rec.PortGID) && held
	if held {
		s.Stopped("who shows no SA_Key gets no tables of it; one group or service at a time, and of a partition that it is in, without members; others are as if they were not there")
	}
	key := question{method: mad.MethodGetTable, attr: mad.AttrMCMemberRecord, key: saKey}
	members, _ := t.client("h8").table(key)
	s.Check(len(members) == 4, "the client with the SA_Key gets %d members, so nothing is proven", len(members))
}

// proxyRequests is T75.
func proxyRequests(s *Scene) {
	o := administered()
	o.Tenants = []Tenant{{"A", keyA, []string{"h1", "h5", "h3"}}, {"B", keyB, []string{"h2", "h6", "h3"}}}
	o.SA.Trust.AliasesUntrusted, o.SA.Aliases.Inventory = true, weak.AnyAlias{}
	t := s.Site(o)
	t.Customer("h5", "h3")
	ours, theirs := t.gather(groupOf(1), keyA, "h5", "h3"), t.gather(groupOf(2), keyB, "h2", "h3")
	t.client("h5").answered(t.register("h5", 7, "db", keyA), "it offers a service")
	h1 := t.client("h1")
	s.Tried("h1 of tenant A joins and leaves groups, offers and withdraws services and changes aliases for h5 of its own tenant, for h3, which serves both tenants, for h2 of tenant B and for ports that do not exist")
	t.Attack()
	held := true
	guids := make(map[string][]ib.GUID)
	others := []string{"h5", "h3", "h2", "h8"}
	for _, of := range others {
		guids[of] = t.Fabric.GUIDs(of, 1)
		for _, key := range []ib.PKey{keyA, keyB} {
			held = h1.silent(t.join(of, groupOf(3), key), "it has %s join a group", of) && held
			held = h1.silent(t.register(of, 8, "trap", key), "it offers a service of %s", of) && held
			held = h1.silent(t.withdraw(of, 7, key, ib.ServiceKey{}), "it withdraws a service of %s", of) && held
		}
		for _, g := range []*gathering{ours, theirs} {
			held = h1.silent(t.leave(of, g.mgid), "it has %s leave a group", of) && held
		}
		for _, q := range t.aliases(of, 1, 0x00BAD00000000001) {
			held = h1.silent(q, "it changes aliases of %s", of) && held
		}
	}
	nobody := t.join("h1", groupOf(3), keyA)
	nobody.data = with(s, &mad.MCMemberRecord{MGID: groupOf(3), PortGID: ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000002), JoinState: ib.FullMember, PKey: keyA})
	held = h1.silent(nobody, "it has a port join that does not exist") && held
	t.Reported(time.Second, "for which port h1 asks", is(func(e *sa.Violation) bool {
		return e.Verdict == trust.Proxy && e.Place == t.Place("h1", 1) && e.Target == t.GUID("h2", 1)
	}))
	s.Must(t.Settle(settleTime))
	for _, of := range others {
		held = s.Check(slices.Equal(t.Fabric.GUIDs(of, 1), guids[of]), "%s has other GUIDs than before: %v", of, t.Fabric.GUIDs(of, 1)) && held
	}
	m := t.client("h3").ask(t.service("h5", 7, keyA))
	held = s.Check(m != nil && m.Status() == mad.StatusOK, "the service of h5 is gone") && held
	if ours.holds("after h1 asked for others") && theirs.holds("after h1 asked for others") && held {
		s.Stopped("a request for another port is dropped, whether there is such a port or not")
	}
}

// oneAlias is an inventory in which each port may have one alias that is named.
type oneAlias map[ib.GUID]ib.GUID

// Allows implements alias.Inventory.
func (o oneAlias) Allows(port, alias ib.GUID) bool { return o[port] == alias }

// Choose implements alias.Inventory.
func (o oneAlias) Choose(port ib.GUID, taken func(ib.GUID) bool) ib.GUID {
	if a := o[port]; a != 0 && !taken(a) {
		return a
	}
	return 0
}

// aliases are a Set and a Delete of entry number n of the GUIDs of a host.
func (t *Site) aliases(host string, n int, guid ib.GUID) (out []question) {
	rec := mad.GUIDInfoRecord{LID: t.LID(host)}
	rec.GUID[n] = guid
	mask := mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum | mad.GUIDInfoComponentGUID(n)
	for _, method := range []mad.Method{mad.MethodSet, mad.MethodDelete} {
		out = append(out, question{method: method, attr: mad.AttrGUIDInfoRecord, mask: mask, data: with(t.scene, &rec)})
	}
	return out
}

// claimedAliases is T77.
func claimedAliases(s *Scene) {
	s.claimUnasked()
	o := administered()
	allowed := map[string]ib.GUID{"h1": 0x00A1000000000001, "h2": 0x00A1000000000002}
	inventory := make(oneAlias)
	o.SA.Trust.AliasesUntrusted, o.SA.Aliases.Inventory = true, inventory
	t := s.Site(o)
	for h, a := range allowed {
		inventory[t.GUID(h, 1)] = a
	}
	t.Victim("h2", "h6")
	t.Customer("h6", "h2")
	h1, h2 := t.client("h1"), t.client("h2")
	h2.answered(t.aliases("h2", 1, allowed["h2"])[0], "it asks for the alias that inventory has for it")
	s.Must(t.Settle(settleTime))
	s.Tried("where hosts may ask, and inventory has an alias for each of h1 and h2, h1 asks for that of h2, for the GUIDs of h2 and of the manager, and for one that no port has; and as its own GUID")
	t.Attack()
	held := true
	for _, guid := range []ib.GUID{allowed["h2"], t.GUID("h2", 1), t.GUID("sm", 1), 0x00BAD00000000001, ^ib.GUID(0)} {
		held = h1.given(t.aliases("h1", 1, guid)[0], 1, 0, "it asks for alias %v", guid) && held
	}
	h1.refused(t.aliases("h1", 0, t.GUID("h2", 1))[0], "it changes its port GUID to that of h2")
	place := t.Place("h1", 1)
	t.Reported(time.Second, "what h1 was refused", is(func(e *sa.AliasEvent) bool { return e.Reason == alias.NotAllowed && e.Asked.Place == place }))
	h1.given(t.aliases("h1", 1, allowed["h1"])[0], 1, allowed["h1"], "it asks for its own alias")
	s.Must(t.Settle(settleTime))
	s.Tried("a guest of h1, which asks under that alias, claims the alias of h2 and releases that of h1")
	for _, q := range append(t.aliases("h1", 2, allowed["h2"]), t.aliases("h1", 1, allowed["h1"])...) {
		q.sgid = ib.MakeGID(ib.DefaultPrefix, allowed["h1"])
		held = h1.silent(q, "its guest changes aliases") && held
	}
	t.Reported(time.Second, "that a guest of h1 changes aliases", is(func(e *sa.Violation) bool {
		return e.Verdict == trust.AliasRefused && e.Place == place && e.As == allowed["h1"]
	}))
	s.Must(t.Settle(settleTime))
	for _, h := range []string{"h1", "h2"} {
		want := []ib.GUID{t.GUID(h, 1), allowed[h]}
		got := slices.DeleteFunc(t.Fabric.GUIDs(h, 1), func(g ib.GUID) bool { return g == 0 })
		held = s.Check(slices.Equal(got, want), "%s has the GUIDs %v, not %v", h, got, want) && held
	}
	if held {
		s.Stopped("a port gets the aliases that inventory has for it, each GUID is one port's, and guests change none")
	}
}

// claimUnasked is the part of T77 in which nothing is configured.
func (s *Scene) claimUnasked() {
	t := s.Site(administered())
	h1 := t.client("h1")
	s.Tried("h1 asks for aliases where nothing is configured")
	t.Attack()
	held := true
	for _, q := range t.aliases("h1", 1, 0x00BAD00000000001) {
		held = h1.silent(q, "it changes its aliases") && held
	}
	s.Must(t.Settle(settleTime))
	extra := slices.ContainsFunc(t.Fabric.GUIDs("h1", 1)[1:], func(g ib.GUID) bool { return g != 0 })
	if s.Check(!extra, "h1 has an alias") && held {
		s.Stopped("no client that is not trusted asks for aliases unless that is configured")
	}
	t.Reported(time.Second, "that h1 asks for aliases", t.dropped("h1", trust.AliasRefused))
}

// given demands that an entry of an answer about aliases is as it should be, 0 for one
// that was refused.
func (c *client) given(q question, n int, want ib.GUID, what string, args ...any) bool {
	m := c.answered(q, what, args...)
	if m == nil {
		return false
	}
	var rec mad.GUIDInfoRecord
	s := c.site.scene
	s.Must(mad.Decode(m.SAData(), &rec))
	return s.Check(rec.GUID[n] == want, c.host+" is given an alias or refused one: "+what, args...)
}
