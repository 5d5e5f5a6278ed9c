package administration

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/trust"
)

// RegistrationDrills are those of all kinds of registrations by hosts.
func RegistrationDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T65", Threat: "register groups, services and subscriptions without end", Play: manyRegistrations},
		{ID: "T71", Threat: "learn the GIDs of others from tables of groups and services", Play: registeredGIDs},
		{ID: "T75", Threat: "register for other ports, or take back what they registered", Play: proxyRequests},
		{ID: "T77", Threat: "claim GUIDs of others as aliases, from a host and from its guests", Play: claimedAliases},
	}
}

// manyRegistrations is T65.
func manyRegistrations(s *drill.Scene) {
	o := drill.Administered()
	limits := &o.SA.Trust
	limits.MaxGroups, limits.MaxServices, limits.MaxSubscriptions = 6, 5, 3
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := gather(t, drill.GroupOf(1000), drill.KeyB, "h2", "h6")
	traps := []mad.TrapNum{mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted}
	kinds := []struct {
		what    string
		most    int
		add     func(n int) drill.Question
		verdict trust.Verdict
	}{
		{"group", limits.MaxGroups, func(n int) drill.Question { return t.Join("h1", drill.GroupOf(uint16(n)), drill.KeyA) }, trust.TooManyGroups},
		{"service", limits.MaxServices, func(n int) drill.Question { return t.Register("h1", ib.ServiceID(n), "job", drill.KeyA) }, trust.TooManyServices},
		{"subscription", limits.MaxSubscriptions, func(n int) drill.Question { return drill.Subscribe(s, traps[n]) }, trust.TooManySubscriptions},
	}
	h1 := t.Client("h1")
	s.Tried("h1 registers %d groups, %d services and %d subscriptions, which is what a port may have, and one more of each; and again when the Subnet Manager was restarted", kinds[0].most, kinds[1].most, kinds[2].most)
	t.Attack()
	held := true
	for _, k := range kinds {
		for n := range k.most {
			h1.Answered(k.add(n), "%s number %d", k.what, n+1)
		}
		held = h1.Silent(k.add(k.most), "%s number %d", k.what, k.most+1) && held
		t.Reported(time.Second, "that h1 registers too much", t.Dropped("h1", k.verdict))
	}
	s.Must(t.Settle(drill.SettleTime))
	in := t.Intent()
	t.Crash()
	t.Start()
	t.Want(in)
	s.Must(t.Settle(drill.SettleTime))
	for _, k := range kinds {
		held = h1.Silent(k.add(k.most), "%s number %d, after a restart", k.what, k.most+1) && held
		h1.Answered(k.add(0), "the first %s once more, which it has", k.what)
	}
	if held {
		s.Stopped("one more than a port may have is dropped without a word, before a restart and after it")
	}
	h1.Answered(t.Leave("h1", drill.GroupOf(0)), "it leaves a group")
	h1.Answered(kinds[0].add(kinds[0].most), "a group in the place of the one that it left")
	g.holds("with all that h1 registered")
	h2 := t.Client("h2")
	for n := range 3 {
		h2.Answered(t.Join("h2", drill.GroupOf(uint16(500+n)), drill.KeyB), "group number %d of its own", n+2)
	}
}

// registeredGIDs is T71.
func registeredGIDs(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := gather(t, drill.GroupOf(1), drill.KeyB, "h2", "h6")
	mine := gather(t, drill.GroupOf(2), drill.KeyA, "h1", "h5")
	t.Client("h2").Answered(t.Register("h2", 7, "db", drill.KeyB), "it offers a service")
	h1 := t.Client("h1")
	s.Tried("h1 of tenant A asks for tables of all groups, members and services, and for each by what names it: the MGID, the GID of a member, the service's ID, GID, P_Key and name")
	t.Attack()
	held := true
	for _, attr := range []mad.AttrID{mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrGUIDInfoRecord} {
		held = h1.Silent(drill.Question{Method: mad.MethodGetTable, Attr: attr}, "it asks for a table of %v", attr) && held
	}
	t.Reported(time.Second, "that h1 asks for tables", t.Dropped("h1", trust.NotAllowed))
	group := func(mask mad.ComponentMask, rec mad.MCMemberRecord) drill.Question {
		return drill.Get(mad.AttrMCMemberRecord, mask, drill.With(s, &rec))
	}
	nobody := ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001)
	const byMGID, byPort = mad.MCMemberComponentMGID, mad.MCMemberComponentPortGID
	for _, q := range [][2]drill.Question{
		{group(byMGID, mad.MCMemberRecord{MGID: g.mgid}), group(byMGID, mad.MCMemberRecord{MGID: drill.GroupOf(99)})},
		{group(byPort, mad.MCMemberRecord{PortGID: t.GIDOf("h2")}), group(byPort, mad.MCMemberRecord{PortGID: nobody})},
		{group(byPort, mad.MCMemberRecord{PortGID: t.GIDOf("h5")}), group(byPort, mad.MCMemberRecord{PortGID: nobody})},
		{group(mad.MCMemberComponentPKey, mad.MCMemberRecord{PKey: drill.KeyB}), group(mad.MCMemberComponentPKey, mad.MCMemberRecord{PKey: drill.KeyC})},
		{group(mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: g.rec.MLID}), group(mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: 0xC0FF})},
		{t.Service("h2", 7, drill.KeyB), t.Service("h2", 8, drill.KeyB)},
	} {
		held = h1.Alike(q[0], q[1], "that tenant B has a group or a service") && held
	}
	name := mad.ServiceRecord{}
	copy(name.ServiceName[:], "db")
	m := h1.Ask(drill.Get(mad.AttrServiceRecord, mad.ServiceComponentServiceName, drill.With(s, &name)))
	held = s.Check(m != nil && m.Status() == mad.StatusNoRecords, "h1 gets a service of tenant B by its name") && held
	rec, ok := mine.now()
	held = s.Check(ok && rec.PortGID == (ib.GID{}) && rec.JoinState == 0, "h1 learns which ports are in the group of its own tenant: %v", rec.PortGID) && held
	if held {
		s.Stopped("who shows no SA_Key gets no tables of it; one group or service at a time, and of a partition that it is in, without members; others are as if they were not there")
	}
	key := drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrMCMemberRecord, Key: drill.SAKey}
	members, _ := t.Client("h8").Table(key)
	s.Check(len(members) == 4, "the client with the SA_Key gets %d members, so nothing is proven", len(members))
}

// proxyRequests is T75.
func proxyRequests(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h3"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6", "h3"}}}
	o.SA.Trust.AliasesUntrusted, o.SA.Aliases.Inventory = true, weak.AnyAlias{}
	t := s.Site(o)
	t.Customer("h5", "h3")
	ours, theirs := gather(t, drill.GroupOf(1), drill.KeyA, "h5", "h3"), gather(t, drill.GroupOf(2), drill.KeyB, "h2", "h3")
	t.Client("h5").Answered(t.Register("h5", 7, "db", drill.KeyA), "it offers a service")
	h1 := t.Client("h1")
	s.Tried("h1 of tenant A joins and leaves groups, offers and withdraws services and changes aliases for h5 of its own tenant, for h3, which serves both tenants, for h2 of tenant B and for ports that do not exist")
	t.Attack()
	held := true
	guids := make(map[string][]ib.GUID)
	others := []string{"h5", "h3", "h2", "h8"}
	for _, of := range others {
		guids[of] = t.Fabric.GUIDs(of, 1)
		for _, key := range []ib.PKey{drill.KeyA, drill.KeyB} {
			held = h1.Silent(t.Join(of, drill.GroupOf(3), key), "it has %s join a group", of) && held
			held = h1.Silent(t.Register(of, 8, "trap", key), "it offers a service of %s", of) && held
			held = h1.Silent(withdraw(t, of, 7, key, ib.ServiceKey{}), "it withdraws a service of %s", of) && held
		}
		for _, g := range []*gathering{ours, theirs} {
			held = h1.Silent(t.Leave(of, g.mgid), "it has %s leave a group", of) && held
		}
		for _, q := range aliases(t, of, 1, 0x00BAD00000000001) {
			held = h1.Silent(q, "it changes aliases of %s", of) && held
		}
	}
	nobody := t.Join("h1", drill.GroupOf(3), drill.KeyA)
	nobody.Data = drill.With(s, &mad.MCMemberRecord{MGID: drill.GroupOf(3), PortGID: ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000002), JoinState: ib.FullMember, PKey: drill.KeyA})
	held = h1.Silent(nobody, "it has a port join that does not exist") && held
	t.Reported(time.Second, "for which port h1 asks", drill.Is(func(e *sa.Violation) bool {
		return e.Verdict == trust.Proxy && e.Place == t.Place("h1", 1) && e.Target == t.GUID("h2", 1)
	}))
	s.Must(t.Settle(drill.SettleTime))
	for _, of := range others {
		held = s.Check(slices.Equal(t.Fabric.GUIDs(of, 1), guids[of]), "%s has other GUIDs than before: %v", of, t.Fabric.GUIDs(of, 1)) && held
	}
	m := t.Client("h3").Ask(t.Service("h5", 7, drill.KeyA))
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
func aliases(t *drill.Site, host string, n int, guid ib.GUID) (out []drill.Question) {
	rec := mad.GUIDInfoRecord{LID: t.LID(host)}
	rec.GUID[n] = guid
	mask := mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum | mad.GUIDInfoComponentGUID(n)
	for _, method := range []mad.Method{mad.MethodSet, mad.MethodDelete} {
		out = append(out, drill.Question{Method: method, Attr: mad.AttrGUIDInfoRecord, Mask: mask, Data: drill.With(t.Scene, &rec)})
	}
	return out
}

// claimedAliases is T77.
func claimedAliases(s *drill.Scene) {
	claimUnasked(s)
	o := drill.Administered()
	allowed := map[string]ib.GUID{"h1": 0x00A1000000000001, "h2": 0x00A1000000000002}
	inventory := make(oneAlias)
	o.SA.Trust.AliasesUntrusted, o.SA.Aliases.Inventory = true, inventory
	t := s.Site(o)
	for h, a := range allowed {
		inventory[t.GUID(h, 1)] = a
	}
	t.Victim("h2", "h6")
	t.Customer("h6", "h2")
	h1, h2 := t.Client("h1"), t.Client("h2")
	h2.Answered(aliases(t, "h2", 1, allowed["h2"])[0], "it asks for the alias that inventory has for it")
	s.Must(t.Settle(drill.SettleTime))
	s.Tried("where hosts may ask, and inventory has an alias for each of h1 and h2, h1 asks for that of h2, for the GUIDs of h2 and of the manager, and for one that no port has; and as its own GUID")
	t.Attack()
	held := true
	for _, guid := range []ib.GUID{allowed["h2"], t.GUID("h2", 1), t.GUID("sm", 1), 0x00BAD00000000001, ^ib.GUID(0)} {
		held = given(h1, aliases(t, "h1", 1, guid)[0], 1, 0, "it asks for alias %v", guid) && held
	}
	refused(h1, aliases(t, "h1", 0, t.GUID("h2", 1))[0], "it changes its port GUID to that of h2")
	place := t.Place("h1", 1)
	t.Reported(time.Second, "what h1 was refused", drill.Is(func(e *sa.AliasEvent) bool { return e.Reason == alias.NotAllowed && e.Asked.Place == place }))
	given(h1, aliases(t, "h1", 1, allowed["h1"])[0], 1, allowed["h1"], "it asks for its own alias")
	s.Must(t.Settle(drill.SettleTime))
	s.Tried("a guest of h1, which asks under that alias, claims the alias of h2 and releases that of h1")
	for _, q := range append(aliases(t, "h1", 2, allowed["h2"]), aliases(t, "h1", 1, allowed["h1"])...) {
		q.SGID = ib.MakeGID(ib.DefaultPrefix, allowed["h1"])
		held = h1.Silent(q, "its guest changes aliases") && held
	}
	t.Reported(time.Second, "that a guest of h1 changes aliases", drill.Is(func(e *sa.Violation) bool {
		return e.Verdict == trust.AliasRefused && e.Place == place && e.As == allowed["h1"]
	}))
	s.Must(t.Settle(drill.SettleTime))
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
func claimUnasked(s *drill.Scene) {
	t := s.Site(drill.Administered())
	h1 := t.Client("h1")
	s.Tried("h1 asks for aliases where nothing is configured")
	t.Attack()
	held := true
	for _, q := range aliases(t, "h1", 1, 0x00BAD00000000001) {
		held = h1.Silent(q, "it changes its aliases") && held
	}
	s.Must(t.Settle(drill.SettleTime))
	extra := slices.ContainsFunc(t.Fabric.GUIDs("h1", 1)[1:], func(g ib.GUID) bool { return g != 0 })
	if s.Check(!extra, "h1 has an alias") && held {
		s.Stopped("no client that is not trusted asks for aliases unless that is configured")
	}
	t.Reported(time.Second, "that h1 asks for aliases", t.Dropped("h1", trust.AliasRefused))
}

// given demands that an entry of an answer about aliases is as it should be, 0 for one
// that was refused.
func given(c *drill.Client, q drill.Question, n int, want ib.GUID, what string, args ...any) bool {
	m := c.Answered(q, what, args...)
	if m == nil {
		return false
	}
	var rec mad.GUIDInfoRecord
	s := c.Site.Scene
	s.Must(mad.Decode(m.SAData(), &rec))
	return s.Check(rec.GUID[n] == want, c.Host+" is given an alias or refused one: "+what, args...)
}
