package administration

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim/netlist"
)

// slowMember is T81.
func slowMember(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h4"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2})
	s.Must(err)
	slowest := netlist.Link{Width: 1, Speed: 1}
	h4 := l.Find("h4")
	h4.Ports[1].Link = slowest
	l.Find(h4.Ports[1].Peer).Ports[h4.Ports[1].PeerPort].Link = slowest
	o.Netlist = l
	o.SA.Fixed = []group.Fixed{group.IPoIB(drill.KeyA, 0)}
	t := s.Site(o)
	t.Customer("h1", "h5")
	broadcast := group.Broadcast(drill.KeyA, linkLocal)
	b := gatherBy(t, broadcast, drill.KeyA, func(h string) drill.Question { return joinOpen(t, h, broadcast) }, "h1", "h5")
	g := gather(t, drill.GroupOf(1), drill.KeyA, "h1", "h5")
	s.Check(ib.Rate2_5.Compare(g.rec.Rate) < 0, "the group of h1 and h5 has rate %v, so nothing is proven", g.rec.Rate)
	slow := t.Client("h4")
	s.Tried("h4, whose link has 2.5 Gb/s, joins the groups of h1 and h5: as they are, asking for the rate that it has, for less, and for a smaller MTU")
	t.Attack()
	held := true
	for _, to := range []*gathering{b, g} {
		rec := mad.MCMemberRecord{MGID: to.mgid, PortGID: t.GIDOf("h4"), JoinState: ib.FullMember, PKey: drill.KeyA, QKey: to.rec.QKey, Rate: ib.Rate2_5, MTU: ib.MTU256}
		for _, state := range []ib.JoinState{ib.FullMember, ib.NonMember, ib.SendOnlyNonMember} {
			rec.JoinState = state
			held = refused(slow, joinAs(t, rec, mad.MCMemberJoin), "it joins a group that is faster than its link, as %v", state) && held
		}
		rec.JoinState = ib.FullMember
		for _, sel := range []mad.Selector{mad.SelectExactly, mad.SelectLess, mad.SelectBest} {
			rec.RateSelector, rec.MTUSelector = sel, sel
			held = refused(slow, joinAs(t, rec, mad.MCMemberJoin|mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate), "it asks for a rate that it has") && held
			held = refused(slow, joinAs(t, rec, mad.MCMemberJoin|mad.MCMemberComponentMTUSelector|mad.MCMemberComponentMTU), "it asks for a smaller MTU") && held
		}
	}
	t.Reported(time.Second, "that the link of h4 is too slow", refusedGroup(t, "h4", group.TooSlow))
	if b.holds("after h4 asked") && g.holds("after h4 asked") && held {
		s.Stopped("a group keeps the rate and the MTU that it was made with, and a port whose link has less is refused")
	}
}

// endedGroups is T82.
func endedGroups(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h3"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	o.SA.Fixed = []group.Fixed{group.IPoIB(drill.KeyA, 0)}
	t := s.Site(o)
	t.Customer("h5", "h3")
	h1, h2 := t.Client("h1"), t.Client("h2")
	h1.Answered(t.Join("h1", drill.GroupOf(1), drill.KeyA), "it makes a group that others join")
	broadcast := group.Broadcast(drill.KeyA, linkLocal)
	h1.Answered(joinOpen(t, "h1", broadcast), "it joins the broadcast group")
	before := mlidOf(t, h1, broadcast)
	h1.Answered(t.Leave("h1", broadcast), "it leaves the broadcast group as the last member")
	g := gatherJoined(t, h1, drill.GroupOf(1), drill.KeyA, "h5", "h3")

	s.Tried("h1 deletes the memberships of h5 and h3 in a group of their tenant, h2 of tenant B does, and h1, which made the group, leaves what it is not in")
	t.Attack()
	held := true
	for _, of := range []string{"h5", "h3"} {
		held = h1.Silent(t.Leave(of, g.mgid), "it deletes the membership of %s", of) && held
		held = h2.Silent(t.Leave(of, g.mgid), "it deletes the membership of %s", of) && held
	}
	held = h1.Silent(t.Leave("h8", g.mgid), "it deletes the membership of a host that has none") && held
	refused(h1, t.Leave("h1", g.mgid), "it leaves the group once more")
	refused(h2, t.Leave("h2", g.mgid), "it leaves a group of tenant A")
	t.Reported(time.Second, "that h1 acts for others", t.Dropped("h1", trust.Proxy))
	t.Reported(time.Second, "that h2 acts for others", t.Dropped("h2", trust.Proxy))
	if g.holds("after others deleted it") && held {
		s.Stopped("a membership is ended by the port that has it; who made a group has no more rights in it than others")
	}
	s.Tried("h1 was the last member of the broadcast group and left it")
	b := gatherBy(t, broadcast, drill.KeyA, func(h string) drill.Question { return joinOpen(t, h, broadcast) }, "h5", "h3")
	if s.Check(b.rec.MLID == before && before != 0, "the broadcast group has multicast LID 0x%04x, and had 0x%04x", uint16(b.rec.MLID), uint16(before)) {
		s.Stopped("groups of the configuration stay without members, with their multicast LID")
	}
}

// mlidOf asks for the multicast LID of a group, 0 if there is no answer.
func mlidOf(t *drill.Site, c *drill.Client, mgid ib.GID) ib.LID {
	var rec mad.MCMemberRecord
	if m := c.Ask(t.Group(mgid)); m != nil && m.Status() == mad.StatusOK {
		t.Scene.Must(mad.Decode(m.SAData(), &rec))
	}
	return rec.MLID
}

// gatherJoined has hosts join a group that another host made, which leaves it then.
func gatherJoined(t *drill.Site, maker *drill.Client, mgid ib.GID, pkey ib.PKey, members ...string) *gathering {
	return gatherBy(t, mgid, pkey, func(h string) drill.Question {
		if h != members[0] {
			maker.Answered(t.Leave(maker.Host, mgid), "it leaves the group that it made")
		}
		return t.Join(h, mgid, pkey)
	}, members...)
}

// manyAddresses is T83.
func manyAddresses(s *drill.Scene) {
	const lids, perPort = 64, 40
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6", "h4"}}}
	o.Fabric.MulticastCap = lids
	o.SA.Trust.MaxGroups, o.SA.Groups.ShareSNM = perPort, true
	o.SA.Fixed = []group.Fixed{group.IPoIB(drill.KeyA, 0), group.IPoIB(drill.KeyB, 0)}
	t := s.Site(o)
	t.Customer("h2", "h6")
	g := gather(t, drill.GroupOf(1000), drill.KeyB, "h2", "h6")
	s.Tried("both hosts of tenant A configure IPv6 addresses, each of which has a group, in a fabric with %d multicast LIDs where a port may be in %d groups", lids, perPort)
	t.Attack()
	used := make(map[ib.LID]bool)
	held := true
	for i, h := range []string{"h1", "h5"} {
		c := t.Client(h)
		for n := range perPort + 1 {
			q := joinIPv6(t, h, drill.KeyA, uint32(i*1000+n))
			if n == perPort {
				held = c.Silent(q, "it joins the group of address number %d", n+1) && held
				break
			}
			var rec mad.MCMemberRecord
			if m := c.Answered(q, "it joins the group of address number %d", n+1); m != nil {
				s.Must(mad.Decode(m.SAData(), &rec))
				used[rec.MLID] = true
			}
		}
	}
	if held {
		s.Stopped("a port is in as many groups as it may be, and no more")
	}
	t.Reported(time.Second, "that h1 has too many groups", t.Dropped("h1", trust.TooManyGroups))
	if s.Check(len(used) == 1, "the groups of addresses of tenant A use %d multicast LIDs", len(used)) {
		s.Stopped("the groups of all addresses in a partition share one multicast LID")
	}
	other := gather(t, drill.GroupOf(1001), drill.KeyB, "h2", "h4")
	s.Check(!used[other.rec.MLID] && other.rec.MLID != g.rec.MLID, "the new group of tenant B shares multicast LID 0x%04x", uint16(other.rec.MLID))
	six := ipv6Group(drill.KeyB, 7)
	gatherBy(t, six, drill.KeyB, func(h string) drill.Question { return joinIPv6(t, h, drill.KeyB, 7) }, "h2", "h6")
	g.holds("with all groups that tenant A could make")
}

// ipv6Group is the group of a solicited node, for the last 24 bits of an address.
func ipv6Group(pkey ib.PKey, address uint32) ib.GID {
	m := ipGroup(0x601B, pkey, 0xFF<<24|address)
	m[11] = 1
	return m
}

// joinIPv6 joins the group of an address.
func joinIPv6(t *drill.Site, host string, pkey ib.PKey, address uint32) drill.Question {
	rec := mad.MCMemberRecord{MGID: ipv6Group(pkey, address), PortGID: t.GIDOf(host), JoinState: ib.FullMember, PKey: pkey, QKey: group.IPoIBQKey}
	return joinAs(t, rec, mad.MCMemberCreate)
}
