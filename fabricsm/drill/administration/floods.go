package administration

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// FloodDrills are about hosts that keep the manager from answering others.
func FloodDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T61", Threat: "flood subnet administration from one host", Play: oneFlood},
		{ID: "T62", Threat: "flood it from all hosts of a tenant together", Play: manyFloods},
		{ID: "T63", Threat: "ask for tables that cost much to make", Play: expensiveTables},
		{ID: "T64", Threat: "ask for tables and acknowledge none of them", Play: halfOpenTables},
		{ID: "T66", Threat: "have all hosts register everything again when the manager starts", Play: restartStorm},
		{ID: "T67", Threat: "flood the manager's port with classes that were not asked for", Play: otherClasses},
		{ID: "T142", Threat: "flood the master's link from a tenant's hosts, so that another manager takes over again and again", Play: failoverLoops},
		{ID: "T160", Threat: "flood the manager from hosts of a tenant, so that moves and releases of other hosts take long", Play: slowedMoves},
	}
}

// busy is a manager that can look at a million packets a second. As many packets wait as Linux posts receives.
func busy() testbed.Work {
	return testbed.Work{Packet: time.Microsecond, Dropped: 50 * time.Nanosecond, Waiting: 512}
}

// flood has hosts send for a time, in turn, together so many packets a millisecond, while
// customers ask.
func flood(t *drill.Site, d time.Duration, all int, from []*drill.Client, packet func(*drill.Client) transport.Packet) {
	const step = 10 * time.Microsecond
	sent := 0
	for began := t.Now(); t.Now()-began < d; {
		for due := int((t.Now() - began + step) * time.Duration(all) / time.Millisecond); sent < due; sent++ {
			c := from[sent%len(from)]
			c.At.Send(packet(c))
		}
		t.Collect()
		t.Until(step, func() bool { t.Poll(true); return false })
	}
	t.Until(2*drill.Patience, func() bool { return t.Poll(false) == 0 })
	t.Scene.Must(t.Err())
}

// oneFlood is T61.
func oneFlood(s *drill.Scene) {
	o := drill.Administered()
	o.Work = busy()
	t := s.Site(o)
	t.Customer("h2", "h6")
	t.Customer("h5", "h1")
	flood(t, 5*time.Millisecond, 0, nil, nil)
	before := t.Slowest()
	const each, ms = 2000, 20
	h1 := t.Client("h1")
	s.Tried("h1 sends two million questions for a path of its own a second, for %d ms", 2*ms)
	t.Attack()
	q := t.PathTo("h1", t.GIDOf("h5"))
	packet := func(c *drill.Client) transport.Packet { return c.Packet(&q) }
	flood(t, ms*time.Millisecond, each, []*drill.Client{h1}, packet)
	first := t.Slowest()
	flood(t, ms*time.Millisecond, each, []*drill.Client{h1}, packet)
	during := t.Slowest()
	answered := len(h1.At.Take(nil))
	if s.Check(during <= before*3/2, "questions of others took %v before the flood, %v during it", before, during) {
		s.Stopped("h1 is answered %d times, and then no oftener than a host may ask: questions of others take %v as before, at most %v while its burst is answered", answered, during, first)
	}
	// A few of the flood itself find no place at the beginning, before h1 has used up what it may send.
	s.Check(t.Overflowed() < 2*ms*each/8, "%d packets of %d were lost because too many waited", t.Overflowed(), 2*ms*each)
	t.Reported(3*time.Second, "who floods", t.Dropped("h1", trust.Flood))
}

// manyFloods is T62.
func manyFloods(s *drill.Scene) {
	const hosts = 1003 // with the manager's, and two of another tenant
	l, err := netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: 64})
	s.Must(err)
	o := drill.Administered()
	o.Netlist = l
	var flooding []string
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeCA && n.Name != "sm" && n.Name != "h2" && n.Name != "h6" {
			flooding = append(flooding, n.Name)
		}
	}
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: flooding}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	o.SA.Limiter.Administration = limiter.LaneConfig{
		All: limiter.Allowance{Rate: 20_000, Burst: 2048}, Node: limiter.Allowance{Rate: 2000, Burst: 400},
	}
	o.NoKeys = true
	t := s.Site(o)
	t.Customer("h2", "h6")
	t.Customer("h6", "h2")
	var all []*drill.Client
	for _, h := range flooding {
		all = append(all, t.Client(h))
	}
	s.Tried("the %d hosts of tenant A ask for paths, together 10 times as often as %d a second, which is all that is answered", len(all), o.SA.Limiter.Administration.All.Rate)
	t.Attack()
	q := t.PathTo(flooding[0], t.GIDOf(flooding[1]))
	flood(t, 100*time.Millisecond, 10*o.SA.Limiter.Administration.All.Rate/1000, all, func(c *drill.Client) transport.Packet { return c.Packet(&q) })
	answered := 0
	for _, c := range all {
		answered += len(c.At.Take(nil))
	}
	most := o.SA.Limiter.Administration.All.Burst + o.SA.Limiter.Administration.All.Rate/10
	if s.Check(answered > 0 && answered <= most, "tenant A is answered %d times in 0.1 s, want at most %d", answered, most) {
		s.Stopped("tenant A is answered %d times in 0.1 s: tenants share what there is, however many hosts they have, and tenant B is answered each time", answered)
	}
	t.Reported(3*time.Second, "who floods", t.Dropped(flooding[len(flooding)-1], trust.Flood))
}

// expensiveTables is T63.
func expensiveTables(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1 := t.Client("h1")
	t.Attack()
	s.Tried("h1 asks for the paths between all ports, from itself to all, from all to itself, and for all records of the fabric")
	own := mad.PathRecord{SGID: t.GIDOf("h1"), DGID: t.GIDOf("h1")}
	held := true
	for _, mask := range []mad.ComponentMask{0, mad.PathComponentSGID, mad.PathComponentDGID, mad.PathComponentNumbPath} {
		held = h1.Silent(drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrPathRecord, Mask: mask, Data: drill.With(s, &own)}, "paths of mask %#x", uint64(mask)) && held
	}
	for _, attr := range []mad.AttrID{mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrLinkRecord, mad.AttrLinearForwardingRecord} {
		held = h1.Silent(drill.Question{Method: mad.MethodGetTable, Attr: attr}, "table %v", attr) && held
	}
	if held {
		s.Stopped("who is not trusted gets tables of paths between two ports that he names, and no other tables: they are not even begun")
	}
	t.Reported(time.Second, "who asks for them", t.Dropped("h1", trust.NotAllowed))

	o := drill.Administered()
	o.SA.Trust.Model = false
	o.SA.Limiter.Work = limiter.WorkConfig{PerRequest: 12, Node: limiter.Allowance{Rate: 100, Burst: 100}}
	t = s.Site(o)
	t.Customer("h2", "h6")
	h1, h5 := t.Client("h1"), t.Client("h5")
	s.Tried("h1 asks the same where the enhanced trust model is off, over and over")
	t.Attack()
	nodes := drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord}
	whole, none := 0, 0
	for range 30 {
		got := h1.All(nodes)
		switch {
		case len(got) == 0:
			none++
		case got[len(got)-1].RMPPType() == mad.RMPPData && got[len(got)-1].RMPPFlags().Has(mad.RMPPLast):
			whole++
		}
	}
	if s.Check(whole == 0 && none > 0, "h1 got %d tables that cost more than a question may, and was refused %d times", whole, none) {
		s.Stopped("a table that costs more steps than a question may is given up, and %d questions of 30 are not begun because the host has used up its share", none)
	}
	path := t.PathTo("h5", t.GIDOf("h1"))
	path.Method = mad.MethodGetTable
	_, ok := h5.Table(path)
	s.Check(ok, "h5 gets no table of paths")
	s.Reported("what was given up is counted: %d", t.Administration().Stats().Costly)
}

// halfOpenTables is T64.
func halfOpenTables(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h6 := t.Client("h1"), t.Client("h6")
	const asked = 200
	s.Tried("h1 asks for %d tables of paths, and acknowledges not a segment of them", asked)
	t.Attack()
	table := t.PathTo("h1", t.GIDOf("h5"))
	table.Method = mad.MethodGetTable
	for range asked {
		h1.Send(table)
		t.Run(100 * time.Microsecond)
	}
	t.Live()
	h1.At.Take(nil)
	theirs := t.PathTo("h6", t.GIDOf("h2"))
	theirs.Method = mad.MethodGetTable
	records, ok := h6.Table(theirs)
	s.Check(ok && len(records) == 1, "h6 gets no table of its own")
	t.Run(3 * time.Second)
	open := make(map[ib.TID]bool)
	for _, p := range h1.At.Take(nil) {
		if p.MAD.RMPPType() == mad.RMPPData {
			open[p.MAD.TID()] = true // sent again: it was kept
		}
	}
	if s.Check(len(open) > 0 && len(open) <= 16, "%d tables for h1 are kept at once, want 1 to 16", len(open)) {
		s.Stopped("%d tables for one port are kept at once; h6 gets its own at once", len(open))
	}
	t.Run(30 * time.Second)
	left := t.Administration().Stats().RMPP
	if s.Check(left.Sending == 0, "%d tables are kept for ever", left.Sending) {
		s.Stopped("what is not acknowledged is sent a few times, and given up")
	}
	s.Reported("tables that were evicted or found no room are counted: %d", left.Evicted+left.Refused)
}

// restartStorm is T66.
func restartStorm(s *drill.Scene) {
	o := drill.Administered()
	o.Work = busy()
	t := s.Site(o)
	t.Victim("h2", "h6")
	c := map[string]*drill.Client{}
	for _, h := range []string{"h1", "h5", "h2", "h6"} {
		c[h] = t.Client(h)
	}
	mgid := drill.GroupOf(1)
	var rec mad.MCMemberRecord
	for _, h := range []string{"h1", "h5"} {
		m := c[h].Answered(t.Join(h, mgid, drill.KeyA), "it joins a group of tenant A")
		s.Check(m != nil && mad.Decode(m.SAData(), &rec) == nil, "the answer cannot be read")
	}
	c["h2"].Answered(t.Register("h2", 7, "drill", drill.KeyB), "it offers a service of tenant B")
	s.Must(t.Settle(drill.SettleTime))
	s.Tried("the manager is killed and starts again; then all hosts register the same group 50 times each within 10 ms")
	reach := func(what string) {
		to, err := t.Fabric.Multicast(drill.Port("h1"), rec.MLID)
		s.Must(err)
		s.Check(len(to) == 1 && to[0].Node == "h5", "%s a packet of h1 to its group reaches %v, not h5 alone", what, to)
	}
	reach("before the restart")
	t.Attack()
	t.Crash()
	t.Run(time.Second)
	t.Start()
	t.Want(t.Intent())
	s.Must(t.Settle(drill.SettleTime))
	reach("after the restart")
	held := s.Check(groupStatus(t, c["h5"], mgid) == mad.StatusOK, "the group is forgotten")
	m := c["h6"].Ask(t.Service("h2", 7, drill.KeyB))
	held = s.Check(m != nil && m.Status() == mad.StatusOK, "the service is forgotten") && held
	if held {
		s.Stopped("groups and services are durable before they are confirmed: no client has to register anything again")
	}
	facts := len(t.Facts())
	t.Customer("h2", "h6")
	var all []*drill.Client
	questions := map[*drill.Client]drill.Question{}
	for i := range t.List.Nodes {
		if n := &t.List.Nodes[i]; n.Type == ib.NodeCA && n.Name != "sm" {
			cl := t.Client(n.Name)
			all, questions[cl] = append(all, cl), t.Join(n.Name, mgid, drill.KeyA)
		}
	}
	flood(t, 10*time.Millisecond, 5*len(all), all, func(c *drill.Client) transport.Packet { q := questions[c]; return c.Packet(&q) })
	s.Must(t.Settle(drill.SettleTime))
	if s.Check(len(t.Facts()) == facts, "%d facts were written because of what was there already", len(t.Facts())-facts) {
		s.Stopped("what is registered again as it is leads to no write, neither to the store nor to switches, and others are answered meanwhile")
	}
	reach("after the storm")
	s.Reported("nothing: to register is allowed, and the storm changes nothing")
}

// groupStatus asks for a group and returns the status of the answer.
func groupStatus(t *drill.Site, c *drill.Client, mgid ib.GID) mad.Status {
	if m := c.Ask(t.Group(mgid)); m != nil {
		return m.Status()
	}
	return mad.StatusBusy
}

// otherClasses is T67.
func otherClasses(s *drill.Scene) {
	o := drill.Administered()
	o.Work = busy()
	o.Work.Packet *= 2
	t := s.Site(o)
	t.Customer("h2", "h6")
	t.Standby("h8")
	h1 := t.Client("h1")
	const ms = 20
	s.Tried("h1 sends two million MADs a second to the manager's port for %d ms: communication management, answers of performance management, vendor classes, SMInfo, traps and directed routes", ms)
	kinds := []mad.Header{
		{Class: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, Attr: 0x0010},
		{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGetResp, Attr: 0x0012},
		{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice},
		{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodGet, Attr: mad.AttrSMInfo},
		{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice},
	}
	way := t.Route("h1", "sm")
	n := 0
	t.Attack()
	h4 := t.GUID("h4", 1)
	t.Pull("h4")
	flood(t, ms*time.Millisecond, 2000, []*drill.Client{h1}, func(c *drill.Client) transport.Packet {
		n++
		p := transport.Packet{LID: t.View().LID, QP: drill.GMPQP}
		c.TID++
		if n%6 == 5 {
			p.LID, p.QP = ib.PermissiveLID, 0
			mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.TID}, &way, ib.MKey{})
			return p
		}
		h := kinds[n%6]
		h.TID = c.TID
		p.MAD.SetHeader(h)
		if p.MAD.IsSMP() {
			p.QP = 0
		}
		return p
	})
	// A few of the flood itself find no place at the beginning, before h1 has used up what it may send.
	if s.Check(t.Overflowed() < uint64(n)/8, "%d packets of %d were lost because too many waited", t.Overflowed(), n) {
		s.Stopped("of each class one port may send so much, and what is more is dropped before it is looked at; answers to the manager's own requests are never dropped, and another manager is answered each time")
	}
	gone := false
	for _, h := range t.Since(t.Begun) {
		e, ok := h.Event.(*sm.PortGone)
		gone = gone || ok && e.GUID == h4 && h.At-t.At < ms*time.Millisecond
	}
	s.Check(gone, "the manager did not see during the flood that h4 was unplugged")
	t.Reported(3*time.Second, "who floods", t.Dropped("h1", trust.Flood))
}
