package administration

import (
	"encoding/binary"
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// MulticastDrills are those of multicast groups, T78 to T83.
func MulticastDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T78", Threat: "join a multicast group of another partition", Play: crossJoin},
		{ID: "T79", Threat: "make multicast groups until no multicast LID is left", Play: exhaustMLIDs},
		{ID: "T80", Threat: "make the groups of IP before others do, with parameters that no host can use", Play: brokenIPoIB},
		{ID: "T81", Threat: "drag a group down to the rate of a slow link", Play: slowMember},
		{ID: "T82", Threat: "have others leave their groups, or groups disappear", Play: endedGroups},
		{ID: "T83", Threat: "use up multicast LIDs with the groups of many IPv6 addresses", Play: manyAddresses},
	}
}

// gathering is a multicast group of victims: a packet from one of them must reach all others, and no other host.
type gathering struct {
	site    *drill.Site
	mgid    ib.GID
	pkey    ib.PKey
	members []string
	first   *drill.Client      // of the members
	rec     mad.MCMemberRecord // of the group
}

// gather has hosts join a group, which is made if it is not there, and checks that it
// works.
func gather(t *drill.Site, mgid ib.GID, pkey ib.PKey, members ...string) *gathering {
	return gatherBy(t, mgid, pkey, func(h string) drill.Question { return t.Join(h, mgid, pkey) }, members...)
}

// gatherBy is gather with what hosts ask when they join.
func gatherBy(t *drill.Site, mgid ib.GID, pkey ib.PKey, join func(host string) drill.Question, members ...string) *gathering {
	g := &gathering{site: t, mgid: mgid, pkey: pkey, members: members, first: t.Client(members[0])}
	for _, h := range members {
		c := g.first
		if h != members[0] {
			c = t.Client(h)
		}
		c.Answered(join(h), "it joins the group %v", mgid)
	}
	t.Scene.Must(t.Settle(drill.SettleTime))
	g.rec, _ = g.now()
	g.holds("in the beginning")
	return g
}

// now has the first member ask for the group.
func (g *gathering) now() (rec mad.MCMemberRecord, ok bool) {
	own := mad.MCMemberRecord{MGID: g.mgid, PortGID: g.site.GIDOf(g.members[0])}
	q := drill.Get(mad.AttrMCMemberRecord, mad.MCMemberComponentMGID|mad.MCMemberComponentPortGID, drill.With(g.site.Scene, &own))
	if m := g.first.Answered(q, "the group %v that it is a member of", g.mgid); m != nil {
		g.site.Scene.Must(mad.Decode(m.SAData(), &rec))
		ok = true
	}
	return rec, ok
}

// holds demands that the group is as it was in the beginning and reaches its members
// alone, by its tree and by packets.
func (g *gathering) holds(when string) bool {
	t, s := g.site, g.site.Scene
	s.Must(t.Settle(drill.SettleTime))
	rec, ok := g.now()
	ok = ok && s.Check(rec == g.rec, "%s the group of %v is another than before: %+v", when, g.members, rec)
	for _, from := range g.members {
		want := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(g.members), func(h string) bool { return h == from })))
		leads, err := t.Fabric.Multicast(drill.Port(from), g.rec.MLID)
		s.Must(err)
		ok = s.Check(slices.Equal(names(leads), want), "%s the tree of the group leads from %s to %v, not to %v", when, from, names(leads), want) && ok
		came := names(Multicast(t, from, g.rec.MLID, g.pkey))
		ok = s.Check(slices.Equal(came, want), "%s a packet of %s to its group reaches %v, not %v", when, from, came, want) && ok
		v := &s.Result.Victims
		v.Sent += uint64(len(want))
		for _, h := range want {
			if !slices.Contains(came, h) {
				v.Lost++
			}
		}
		for _, h := range came {
			if !slices.Contains(want, h) {
				v.Strayed++
			}
		}
	}
	return ok
}

// Multicast sends one packet from a host to a multicast LID, and returns its receivers.
func Multicast(t *drill.Site, from string, mlid ib.LID, key ib.PKey) []sim.Endpoint {
	return t.Inject(from, sim.Data{SLID: t.LID(from), DLID: mlid, PKey: key, DestQP: 2, Payload: 256}).To
}

// names sorts the names of the nodes of ports.
func names(list []sim.Endpoint) (out []string) {
	for _, e := range list {
		out = append(out, e.Node)
	}
	slices.Sort(out)
	return out
}

// joinAs asks for a membership with whatever a record says.
func joinAs(t *drill.Site, rec mad.MCMemberRecord, mask mad.ComponentMask) drill.Question {
	return drill.Question{Method: mad.MethodSet, Attr: mad.AttrMCMemberRecord, Mask: mask, Data: drill.With(t.Scene, &rec)}
}

// joinOpen joins a group that is there, as it is, as clients of IP do.
func joinOpen(t *drill.Site, host string, mgid ib.GID) drill.Question {
	return joinAs(t, mad.MCMemberRecord{MGID: mgid, PortGID: t.GIDOf(host), JoinState: ib.FullMember}, mad.MCMemberJoin)
}

// refused demands that a question is answered with some refusal.
func refused(c *drill.Client, q drill.Question, what string, args ...any) bool {
	m := c.Ask(q)
	s := c.Site.Scene
	return s.Check(m != nil, c.Host+" gets no answer: "+what, args...) && s.Check(m.Status() != mad.StatusOK, c.Host+" succeeds: "+what, args...)
}

// refusedGroup returns a test for events about a refusal to a host.
func refusedGroup(t *drill.Site, host string, why group.Reason) func(sm.Event) bool {
	guid, place := t.GUID(host, 1), t.Place(host, 1)
	return drill.Is(func(e *sa.GroupEvent) bool {
		return e.Kind == group.Refused && e.Reason == why && e.Asked.GUID == guid && e.Asked.Place == place
	})
}

// crossJoin is T78.
func crossJoin(s *drill.Scene) {
	o := drill.Administered()
	o.Shared = []drill.Shared{{PKey: drill.KeyStorage, Servers: []string{"h3"}, Clients: []string{"h1", "h5", "h2", "h6"}}}
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	g := gather(t, drill.GroupOf(1), drill.KeyB, "h2", "h6")
	h1 := t.Client("h1")
	s.Tried("h1 of tenant A, which knows the MGID of a group of tenant B, joins it as full member, as receiver and as sender, naming the P_Key of B, its own, that of a storage partition or none")
	t.Attack()
	held := true
	for _, state := range []ib.JoinState{ib.FullMember, ib.NonMember, ib.SendOnlyNonMember, ib.SendOnlyFullMember} {
		for _, key := range []ib.PKey{drill.KeyB, drill.KeyB.Limited(), drill.KeyA, drill.KeyStorage.Limited(), 0} {
			rec := mad.MCMemberRecord{MGID: g.mgid, PortGID: t.GIDOf("h1"), JoinState: state, PKey: key, QKey: g.rec.QKey}
			mask := mad.MCMemberCreate
			if key == 0 {
				mask = mad.MCMemberJoin
			}
			held = refused(h1, joinAs(t, rec, mask), "it joins the group of tenant B as %v, naming P_Key %v", state, key) && held
		}
	}
	there, none := joinOpen(t, "h1", g.mgid), joinOpen(t, "h1", drill.GroupOf(99))
	held = h1.Alike(there, none, "that the group of tenant B is there, when it joins") && held
	held = h1.Alike(t.Group(g.mgid), t.Group(drill.GroupOf(99)), "that the group of tenant B is there, when it asks for it") && held
	if held && g.holds("after h1 joined it in every way") {
		s.Stopped("a group takes, and is known to, ports that have its P_Key")
	}
	t.Reported(time.Second, "that h1 was refused, and where", refusedGroup(t, "h1", group.NotInPartition))

	s.Tried("h1 sends to the multicast LID of the group with each P_Key")
	for _, key := range []ib.PKey{drill.KeyB, drill.KeyB.Limited(), drill.KeyA, drill.KeyStorage, drill.KeyStorage.Limited(), ib.DefaultPKeyFull, ib.DefaultPKeyLimited} {
		to := Multicast(t, "h1", g.rec.MLID, key)
		s.Check(len(to) == 0, "a packet of h1 to the group of tenant B, with P_Key %v, reaches %v", key, names(to))
	}
	throughStorage(t)
	g.holds("in the end")
}

// throughStorage is the part of T78 in which both tenants are in one group, that of a
// partition which they share.
func throughStorage(t *drill.Site) {
	s := t.Scene
	s.Tried("h1 makes a group of the storage partition that h2 of tenant B joins, too")
	mgid := drill.GroupOf(2)
	var rec mad.MCMemberRecord
	for _, h := range []string{"h1", "h3", "h2"} {
		if m := t.Client(h).Answered(t.Join(h, mgid, drill.KeyStorage), "it joins the group of the storage partition"); m != nil {
			s.Must(mad.Decode(m.SAData(), &rec))
		}
	}
	s.Must(t.Settle(drill.SettleTime))
	held := true
	for _, key := range []ib.PKey{drill.KeyStorage.Limited(), drill.KeyStorage} {
		to := names(Multicast(t, "h1", rec.MLID, key))
		held = s.Check(!slices.Contains(to, "h2"), "a packet of h1 to the group of the storage partition, with P_Key %v, reaches %v", key, to) && held
	}
	to := names(Multicast(t, "h1", rec.MLID, drill.KeyStorage.Limited()))
	if s.Check(slices.Equal(to, []string{"h3"}), "a packet of h1 reaches %v, not the storage server alone, so nothing is proven", to) && held {
		s.Stopped("of a group of a partition that tenants share, a limited member reaches the servers alone")
	}
}

// exhaustMLIDs is T79.
func exhaustMLIDs(s *drill.Scene) {
	const lids, perPort, quota = 64, 32, 20
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6", "h4"}}}
	o.Fabric.MulticastCap = lids
	o.SA.Trust.MaxGroups = perPort
	o.SA.Groups.Quota = func(ib.PKey) int { return quota }
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := gather(t, drill.GroupOf(1000), drill.KeyB, "h2", "h6")
	s.Tried("both hosts of tenant A make groups until they get no more, in a fabric with %d multicast LIDs where a port may be in %d groups and a partition have %d", lids, perPort, quota)
	t.Attack()
	made, n := 0, uint16(0)
	used := make(map[ib.LID]bool)
	for _, h := range []string{"h1", "h5"} {
		c := t.Client(h)
		for range perPort + 3 {
			n++
			if m := c.Ask(t.Join(h, drill.GroupOf(n), drill.KeyA)); m != nil && m.Status() == mad.StatusOK {
				var rec mad.MCMemberRecord
				s.Must(mad.Decode(m.SAData(), &rec))
				made, used[rec.MLID] = made+1, true
			}
		}
	}
	s.Must(t.Settle(drill.SettleTime))
	if s.Check(made == quota, "tenant A made %d groups, with %d multicast LIDs; its quota is %d", made, len(used), quota) {
		s.Stopped("the partition of tenant A got as many groups as it may have, and the answer to each request for more says that there are no resources")
	}
	t.Reported(time.Second, "that tenant A has as many groups as it may have", refusedGroup(t, "h1", group.PartitionQuota))
	other := gather(t, drill.GroupOf(1001), drill.KeyB, "h2", "h4")
	held := s.Check(other.rec.MLID != g.rec.MLID && !used[other.rec.MLID], "the new group of tenant B shares multicast LID 0x%04x", uint16(other.rec.MLID))
	if held && g.holds("with all groups that tenant A could make") {
		s.Stopped("tenant B makes a new group, with a multicast LID of its own")
	}
}

// brokenIPoIB is T80.
func brokenIPoIB(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h3"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	o.SA.Fixed = []group.Fixed{group.IPoIB(drill.KeyA, 0), group.IPoIB(drill.KeyB, 0)}
	t := s.Site(o)
	t.Customer("h5", "h3")
	broadcast, allHosts := group.Broadcast(drill.KeyA, linkLocal), ipGroup(0x401B, drill.KeyA, 1)
	h1 := t.Client("h1")
	s.Tried("h1 is the first of its partition to ask: it makes the broadcast group and that of all hosts, of this scope and of another, with a wrong Q_Key, an MTU of 256, 2.5 Gb/s, a traffic class, a flow label and the P_Key of tenant B")
	t.Attack()
	const create = mad.MCMemberCreate
	held := true
	for _, mgid := range []ib.GID{broadcast, group.Broadcast(drill.KeyA, siteLocal), allHosts} {
		for _, bad := range badParams(t, "h1", mgid) {
			held = refused(h1, bad.Question, "it makes or joins the group %v with %s", mgid, bad.what) && held
		}
	}
	foreign := mad.MCMemberRecord{MGID: group.Broadcast(drill.KeyB, linkLocal), PortGID: t.GIDOf("h1"), JoinState: ib.FullMember, PKey: drill.KeyA, QKey: group.IPoIBQKey}
	held = refused(h1, joinAs(t, foreign, create), "it makes the broadcast group of tenant B with the P_Key of A") && held
	t.Reported(time.Second, "that h1 asked for other parameters", refusedGroup(t, "h1", group.ParamsDiffer))
	t.Reported(time.Second, "that h1 asked for a group that is not as the broadcast group", refusedGroup(t, "h1", group.NotAsBroadcast))

	b := gatherBy(t, broadcast, drill.KeyA, func(h string) drill.Question { return joinOpen(t, h, broadcast) }, "h5", "h3")
	ok := s.Check(b.rec.QKey == group.IPoIBQKey && b.rec.MTU == ib.MTU2048 && b.rec.Rate == ib.Rate10 && b.rec.SL == 0, "the broadcast group has parameters of h1: %+v", b.rec)
	all := gatherBy(t, allHosts, drill.KeyA, func(h string) drill.Question { return joinIP(t, h, allHosts, &b.rec) }, "h5", "h3")
	ok = s.Check(all.rec.QKey == b.rec.QKey && all.rec.MTU == b.rec.MTU && all.rec.Rate == b.rec.Rate, "the group of all hosts has parameters of h1: %+v", all.rec) && ok
	if held && ok {
		s.Stopped("broadcast groups are there from the beginning, as configured, and other groups of IP must be as that of their partition")
	}
}

// Scopes of multicast groups.
const (
	linkLocal = 2
	siteLocal = 5
)

// ipGroup is the GID of a group of IP with a signature and the last 28 bits of an address.
func ipGroup(signature uint16, pkey ib.PKey, address uint32) (m ib.GID) {
	m[0], m[1] = 0xFF, 0x10|linkLocal
	binary.BigEndian.PutUint16(m[2:], signature)
	binary.BigEndian.PutUint16(m[4:], uint16(pkey))
	binary.BigEndian.PutUint32(m[12:], address)
	return m
}

// joinIP joins a group of IP as clients do: with all parameters of the broadcast group.
func joinIP(t *drill.Site, host string, mgid ib.GID, broadcast *mad.MCMemberRecord) drill.Question {
	rec := *broadcast
	rec.MGID, rec.PortGID, rec.JoinState = mgid, t.GIDOf(host), ib.FullMember
	const mask = mad.MCMemberCreate | mad.MCMemberComponentMTUSelector | mad.MCMemberComponentMTU |
		mad.MCMemberComponentRateSelector | mad.MCMemberComponentRate | mad.MCMemberComponentHopLimit
	return joinAs(t, rec, mask)
}

// odd is a request for a group that is wrong in one thing.
type odd struct {
	drill.Question
	what string
}

// badParams returns requests for a group of IP of tenant A that no host could use.
func badParams(t *drill.Site, host string, mgid ib.GID) (out []odd) {
	right := mad.MCMemberRecord{MGID: mgid, PortGID: t.GIDOf(host), JoinState: ib.FullMember, PKey: drill.KeyA, QKey: group.IPoIBQKey}
	for _, bad := range []struct {
		what string
		mask mad.ComponentMask
		set  func(*mad.MCMemberRecord)
	}{
		{"a wrong Q_Key", 0, func(r *mad.MCMemberRecord) { r.QKey = 0x666 }},
		{"an MTU of 256", mad.MCMemberComponentMTUSelector | mad.MCMemberComponentMTU, func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = mad.SelectExactly, ib.MTU256 }},
		{"2.5 Gb/s", mad.MCMemberComponentRateSelector | mad.MCMemberComponentRate, func(r *mad.MCMemberRecord) { r.RateSelector, r.Rate = mad.SelectExactly, ib.Rate2_5 }},
		{"traffic class 7", 0, func(r *mad.MCMemberRecord) { r.TClass = 7 }},
		{"flow label 7", 0, func(r *mad.MCMemberRecord) { r.FlowLabel = 7 }},
	} {
		rec := right
		bad.set(&rec)
		out = append(out, odd{joinAs(t, rec, mad.MCMemberCreate|bad.mask), bad.what})
	}
	return out
}
