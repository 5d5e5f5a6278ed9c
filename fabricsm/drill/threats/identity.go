package threats

import (
	"fmt"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/sham"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
)

// identityDrills are those of forged GUIDs and other lies about identity, T17 to T28.
func identityDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T17", Threat: "take the GUID of a host that is running", Play: playBreaches("T17", stolenGUID)},
		{ID: "T18", Threat: "take the GUID of a host that is switched off, to inherit its partition", Play: playBreaches("T18", idleGUID)},
		{ID: "T19", Threat: "use a GUID that inventory does not know", Play: playBreaches("T19")},
		{ID: "T20", Threat: "take the GUID of the Subnet Manager's port", Play: playBreaches("T20", managerGUID)},
		{ID: "T21", Threat: "claim to be a switch, and show a fabric behind an adapter", Play: playBreaches("T21", fakeSwitch)},
		{ID: "T22", Threat: "change the GUID while the link stays up", Play: playBreaches("T22", quietGUID)},
		{ID: "T23", Threat: "show the right GUID now and a wrong one then", Play: playBreaches("T23", flipFlop)},
		{ID: "T24", Threat: "swap the GUIDs of two hosts", Play: playBreaches("T24")},
		{ID: "T25", Threat: "take the name and the system image GUID of another machine", Play: borrowedName},
		{ID: "T26", Threat: "show GUIDs that no device may have", Play: playBreaches("T26", oddGUIDs)},
		{ID: "T27", Threat: "send requests to the Subnet Administrator with another's source GID", Play: falseSources},
		{ID: "T28", Threat: "cross the cables of one host's adapters", Play: playBreaches("T28")},
	}
}

// stolenGUID is T17.
func stolenGUID(s *drill.Scene) {
	for _, forgery := range []struct {
		what string
		do   func(t *drill.Site)
	}{
		{"the node GUID and the port GUID, and keeps its M_Key,", func(t *drill.Site) { t.Rename("h7", t.List.Find("h1").GUID) }},
		{"the node GUID and the port GUID", func(t *drill.Site) { t.Replug("h7", t.List.Find("h1").GUID) }},
		{"the port GUID alone", func(t *drill.Site) {
			t.Pull("h7")
			s.Must(t.Fabric.Reboot("h7"))
			t.Run(50 * time.Millisecond)
			s.Must(t.Fabric.Lie("h7", 1, mad.NodeInfo{
				BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, PartitionCap: 64,
				SystemImageGUID: t.List.Find("h7").GUID, NodeGUID: t.List.Find("h7").GUID, PortGUID: t.GUID("h1", 1),
			}))
			s.Must(t.Fabric.Restore("h7", 1))
			t.Collect()
		}},
	} {
		t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
		t.Victim("h1", "h5")
		s.Tried("h7, of no tenant, boots with %s of h1, which is tenant A's: %v", forgery.what, t.GUID("h1", 1))
		t.Attack()
		forgery.do(t)
		place := t.Place("h7", 1)
		t.Reported(10*time.Second, "that the GUID is at two places", drill.Is(func(e *sm.DuplicateGUID) bool { return e.Second == place }))
		if t.Isolated(10*time.Second, "the port of the forger is closed", func() bool { return !t.Open("h7") }) {
			s.Stopped("switch port %v is closed, nothing else: who came first keeps the GUID", place)
		}
		t.Run(time.Minute)
		s.Check(!t.Open("h7"), "the forger's port is open again")
		s.Check(t.Open("h1"), "the victim's port was closed")
		for _, h := range t.Since(t.Begun) {
			gone, ok := h.Event.(*sm.PortGone)
			s.Check(!ok || gone.Place != t.Place("h1", 1), "the manager takes the victim for gone")
		}
		for _, at := range []sim.Endpoint{drill.Port("h7"), t.SwitchPort("h7", 1)} {
			s.Check(len(t.TenantKeys(at)) == 0, "%s port %d of the forger holds %v", at.Node, at.Port, t.TenantKeys(at))
		}
		r := t.Send("h7", "h5", drill.KeyA)
		s.Check(r.Fate != sim.Delivered, "a packet of the forger with %v reached h5", drill.KeyA)
	}
}

// fakeSwitch is T21.
func fakeSwitch(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	place := t.Place("h7", 1)
	s.Tried("h7 shows a switch with 3 hosts behind it in place of its adapter, one of them with the GUID of h1")
	t.Attack()
	replace(t, "h7", fakeGUID, ghosts(t))
	t.Reported(10*time.Second, "a switch where a host belongs", drill.Is(func(e *sm.BadAnswer) bool { return e.GUID == fakeGUID }))
	if t.Isolated(10*time.Second, "the port with the switch is closed", func() bool { return !t.Open("h7") }) {
		s.Stopped("nothing behind %v is looked at, the port stays closed", place)
	}
	t.Run(time.Minute)
	s.Check(!t.Open("h7"), "the port with the switch is open again")
	for _, g := range []string{"ghost1", "ghost2", "ghost3"} {
		s.Check(t.LID(g) == 0, "%s has LID %v", g, t.LID(g))
		s.Check(len(t.TenantKeys(drill.Port(g))) == 0, "%s holds %v", g, t.TenantKeys(drill.Port(g)))
	}
	endless(t)
	madeUp(t)
}

// madeUp is the part of T21 where switches are made up when they are asked for, and no topology is declared.
func madeUp(t *drill.Site) {
	s := t.Scene
	const cable, most = 200, 4000
	b := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), NoHosts: true, SM: sm.Config{Growth: sm.GrowthConfig{Ceiling: 8000, Entry: 4000, Cable: cable}}})
	b.Victim("h1", "h5")
	place := b.Place("h7", 1)
	for _, sham := range []struct {
		what string
		sham.Sham
	}{
		{"a tree without end of switches with 64 ports", sham.Sham{Ports: 64}},
		{"a chain without end of switches", sham.Sham{Ports: 2}},
		{"a tree without end of switches that have another GUID each time they are asked", sham.Sham{
			Ports: 64, GUID: func(path []ib.PortNum, visit int) ib.GUID { return sham.GUID(path) + ib.GUID(visit)<<40 },
		}},
		{"a tree without end of switches that answer as late as they can", sham.Sham{Ports: 64, Delay: 190 * time.Millisecond}},
	} {
		s.Tried("h7 shows %s, where inventory says nothing of a host", sham.what)
		b.Attack()
		b.Pull("h7")
		b.Run(50 * time.Millisecond)
		s.Must(b.Fabric.Pretend("h7", &sham.Sham))
		s.Must(b.Fabric.Restore("h7", 1))
		b.Collect()
		b.Reported(time.Minute, "that a cable shows too much", drill.Is(func(e *health.Unhealthy) bool { return e.Condition == health.Overgrown && e.Place == place }))
		b.Run(time.Second)
		asked := b.Fabric.Pretended("h7")
		if s.Check(asked <= most, "it was asked %d times, and there is no end", asked) {
			s.Stopped("what hangs by the cable at %v alone is let go when it has grown by %d, after %d requests", place, cable, asked)
		}
		for _, h := range b.Since(b.Begun) {
			e, ok := h.Event.(*health.Unhealthy)
			s.Check(!ok || e.Condition != health.Overgrown || e.Place == place, "another port was held: %v", h.Event)
		}
		b.Pull("h7")
		s.Must(b.Fabric.Pretend("h7", nil))
		s.Must(b.Fabric.Restore("h7", 1))
		b.Collect()
		b.Isolated(time.Hour, "the host is itself again and its port is open", func() bool { return b.Open("h7") })
	}
}

// endless is the part of T21 where no inventory says what belongs there.
func endless(t *drill.Site) {
	s := t.Scene
	const size, most = 600, 200
	b := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), NoHosts: true, SM: sm.Config{Growth: sm.GrowthConfig{Ceiling: 400, Entry: 100}}})
	b.Victim("h1", "h5")
	place := b.Place("h7", 1)
	s.Tried("h7 shows a tree of %d switches, where inventory says nothing of a host", size)
	b.Attack()
	tree(b, "h7", size)
	b.Reported(10*time.Second, "that a link shows too much", drill.Is(func(e *health.Unhealthy) bool { return e.Condition == health.Overgrown }))
	b.Run(time.Minute)
	known := 0
	for i := range size {
		if b.Fabric.PortInfo(treeName(i), 0).LID != 0 {
			known++
		}
	}
	if s.Check(known <= most, "%d of %d made-up switches have a LID", known, size) {
		s.Stopped("what is behind %v is let go when it has grown by 100: %d of %d have a LID", place, known, size)
	}
}

const fakeGUID ib.GUID = 0x00BAD00000000001

func fakeHost(name string, guid ib.GUID) netlist.Node {
	return netlist.NewNode(ib.NodeCA, name, guid, 1)
}

// replace takes a host off its cable and puts a switch there with a GUID, and other nodes behind it.
func replace(t *drill.Site, host string, guid ib.GUID, behind []netlist.Node) {
	at := t.SwitchPort(host, 1)
	t.Pull(host)
	t.Run(50 * time.Millisecond)
	sw := netlist.NewNode(ib.NodeSwitch, "fake", guid, len(behind)+1)
	sw.Ports[1].Peer, sw.Ports[1].PeerPort = at.Node, at.Port
	t.Scene.Must(t.Fabric.Insert(sw))
	for i, n := range behind {
		n.Ports[1].Peer, n.Ports[1].PeerPort = sw.Name, ib.PortNum(i+2)
		t.Scene.Must(t.Fabric.Insert(n))
	}
	t.Collect()
}

func treeName(i int) string { return fmt.Sprintf("fake%d", i) }

// tree takes a host off its cable and puts a tree of switches there, each with three below it.
func tree(t *drill.Site, host string, size int) {
	at := t.SwitchPort(host, 1)
	t.Pull(host)
	t.Run(50 * time.Millisecond)
	for i := range size {
		n := netlist.NewNode(ib.NodeSwitch, treeName(i), fakeGUID+ib.GUID(i), 4)
		n.Ports[1].Peer, n.Ports[1].PeerPort = at.Node, at.Port
		if i > 0 {
			n.Ports[1].Peer, n.Ports[1].PeerPort = treeName((i-1)/3), ib.PortNum(2+(i-1)%3)
		}
		t.Scene.Must(t.Fabric.Insert(n))
	}
	t.Collect()
}

// idleGUID is T18.
func idleGUID(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	s.Must(t.Fabric.PowerOff("h2"))
	t.Collect()
	s.Must(t.Settle(drill.SettleTime))
	guid := t.GUID("h2", 1)
	s.Tried("h2 of tenant B is switched off; h7 boots with its GUID %v", guid)
	t.Attack()
	t.Replug("h7", t.List.Find("h2").GUID)
	t.Reported(10*time.Second, "that the GUID is at another place", drill.Is(func(e *sm.PortPlaced) bool {
		return e.GUID == guid && e.Place == t.Place("h7", 1)
	}))
	t.Run(time.Minute)
	s.Must(t.Settle(drill.SettleTime))
	for _, at := range []sim.Endpoint{drill.Port("h7"), t.SwitchPort("h7", 1)} {
		if s.Check(len(t.TenantKeys(at)) == 0, "%s port %d holds %v", at.Node, at.Port, t.TenantKeys(at)) {
			s.Stopped("the membership is bound to %v: nothing is granted at %v", t.Place("h2", 1), t.Place("h7", 1))
		}
	}
	r := t.Send("h7", "h6", drill.KeyB)
	s.Check(r.Fate != sim.Delivered, "h7 reaches h6 of tenant B")
}

// managerGUID is T20.
func managerGUID(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	s.Tried("h7 boots with the GUID of the manager, %v", t.GUID("sm", 1))
	t.Attack()
	t.Replug("h7", t.List.Find("sm").GUID)
	place := t.Place("h7", 1)
	t.Reported(10*time.Second, "that the GUID is at two places", drill.Is(func(e *sm.DuplicateGUID) bool { return e.Second == place }))
	if t.Isolated(10*time.Second, "the port of the forger is closed", func() bool { return !t.Open("h7") }) {
		s.Stopped("switch port %v is closed; the manager knows where it is itself", place)
	}
	t.Run(time.Minute)
	at := t.SwitchPort("h7", 1)
	for _, k := range t.Fabric.PKeys(at.Node, at.Port) {
		s.Check(k != ib.DefaultPKeyFull || !t.Open("h7"), "the forger is a full member of the default partition")
	}
	r := t.Send("h1", "sm", ib.DefaultPKeyLimited)
	s.Check(r.Fate == sim.Delivered && r.At.Node == "sm", "what h1 sends to the manager ends at %s: %v", r.At.Node, r.Fate)
	s.Check(t.Fabric.PKeyAt("sm", 1, 0) == ib.DefaultPKeyFull, "the manager is no longer a full member of the default partition")
}

// quietGUID is T22.
func quietGUID(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h4"}})})
	t.Victim("h1", "h5")
	s.Tried("h7 of tenant C changes its GUIDs to those of h1 while its link is up: no trap, nothing to see")
	t.Attack()
	stolen := t.List.Find("h1").GUID
	s.Must(t.Fabric.SetGUIDs("h7", stolen, stolen))
	place := t.Place("h7", 1)
	t.Reported(25*time.Minute, "that another GUID answers there", drill.Is(func(e *sm.DuplicateGUID) bool { return e.Second == place }))
	if t.Isolated(time.Minute, "the port of the forger is closed", func() bool { return !t.Open("h7") }) {
		s.Stopped("the audit asks each port again who it is, and closes %v", place)
	}
	s.Check(len(t.TenantKeys(t.SwitchPort("h1", 1))) == 1, "the victim's port has lost its P_Key")
}

// flipFlop is T23.
func flipFlop(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h4"}})})
	t.Victim("h1", "h5")
	s.Tried("h7 of tenant C shows the GUIDs of h1 for 50 s of every 90 s, for two hours, while its link is up")
	t.Attack()
	place, closed := t.Place("h7", 1), time.Duration(0)
	alternate(t, 80, func() bool {
		if closed == 0 && !t.Open("h7") {
			closed = t.Now() - t.At
		}
		return false
	})
	t.Reported(time.Second, "that another GUID answers there", drill.Is(func(e *sm.DuplicateGUID) bool { return e.Second == place }))
	if s.Check(closed > 0, "the port of h7 was never closed") {
		drill.Longest(&s.Result.Isolated, closed)
		s.Stopped("the audit asks at times that h7 does not know, and closes %v", place)
	}
	s.Check(len(t.TenantKeys(t.SwitchPort("h1", 1))) == 1, "the victim's port has lost its P_Key")
}

// borrowedName is T25.
func borrowedName(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	s.Tried("h7 calls itself h1 and shows the system image GUID of h1")
	t.Attack()
	s.Must(t.Fabric.SetNodeDescription("h7", t.List.Find("h1").Description))
	s.Must(t.Fabric.SetSystemImage("h7", t.List.Find("h1").SystemImageGUID))
	t.Collect()
	place := t.Place("h7", 1)
	t.Reported(10*time.Second, "that h7 says something else of itself", drill.Is(func(e *violation.TrapReceived) bool {
		return e.Place == place && (e.Trap == mad.TrapLocalChange || e.Trap == mad.TrapSystemImageGUID)
	}))
	t.Run(time.Minute)
	s.Must(t.Settle(drill.SettleTime))
	for _, at := range []sim.Endpoint{drill.Port("h7"), t.SwitchPort("h7", 1)} {
		if s.Check(len(t.TenantKeys(at)) == 0, "%s port %d holds %v", at.Node, at.Port, t.TenantKeys(at)) {
			s.Stopped("names are shown and mean nothing: h7 gets no P_Key")
		}
	}
	r := t.Send("h7", "h5", drill.KeyA)
	s.Check(r.Fate != sim.Delivered, "h7 reaches h5 of tenant A")
}

// oddGUIDs is T26.
func oddGUIDs(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	place := t.Place("h7", 1)
	for _, odd := range []struct {
		what       string
		node, port ib.GUID
	}{
		{"no node GUID", 0, 0x00BAD00000000001},
		{"no port GUID", 0x00BAD00000000001, 0},
		{"a node GUID of all ones", ^ib.GUID(0), 0x00BAD00000000001},
		{"a port GUID of all ones", 0x00BAD00000000001, ^ib.GUID(0)},
	} {
		s.Tried("h7 shows %s", odd.what)
		t.Attack()
		t.Pull("h7")
		t.Run(50 * time.Millisecond)
		s.Must(t.Fabric.Lie("h7", 1, mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, PartitionCap: 64, NodeGUID: odd.node, PortGUID: odd.port,
		}))
		s.Must(t.Fabric.Restore("h7", 1))
		t.Collect()
		t.Reported(10*time.Second, "the GUID that no port may have", func(e sm.Event) bool {
			bad, ok := e.(*sm.BadAnswer)
			return ok && bad.Request == "Get NodeInfo"
		})
		if t.Isolated(time.Second, "the port of h7 is closed", func() bool { return !t.Open("h7") }) {
			s.Stopped("what answers with such a GUID is not looked at, %v stays closed", place)
		}
		t.Run(10 * time.Second)
		s.Check(t.LID("h7") == 0 || !t.Open("h7"), "h7 has LID %v and its port is open", t.LID("h7"))
	}
}

// falseSources is T27.
func falseSources(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h5 := t.Client("h1"), t.Client("h5")
	h2, err := t.Fabric.Station("h2", true)
	s.Must(err)
	s.Tried("h1 asks in the name of h2, by its GID, by its LID and by both, for the path to h6, and registers a group of its own under the GID of h2")
	t.Attack()
	held, n := true, uint16(0)
	for _, lid := range []ib.LID{t.LID("h1"), t.LID("h2")} {
		for _, sgid := range []ib.GID{{}, t.GIDOf("h1"), t.GIDOf("h2")} {
			for _, q := range []drill.Question{t.PathTo("h2", t.GIDOf("h6")), t.Join("h1", drill.GroupOf(n), drill.KeyA)} {
				if lid == t.LID("h1") && sgid != t.GIDOf("h2") {
					continue // its own
				}
				q.SGID = sgid
				forge(h1, q, lid)
				t.Run(drill.AnswerTime)
				for _, p := range h1.At.Take(nil) {
					held = s.Check(p.MAD.Status() != mad.StatusOK, "h1 gets what it asked for with LID %v and GID %v", lid, sgid) && held
				}
			}
			if m := h5.Ask(t.Group(drill.GroupOf(n))); m != nil {
				held = s.Check(m.Status() == mad.StatusNoRecords, "h1 has the group that it asked for with LID %v and GID %v", lid, sgid) && held
			}
			n++
			t.Live()
		}
	}
	h2.Close()
	if held {
		s.Stopped("a source GID that the port with the source LID does not have is dropped, and an answer goes to who has the LID, never to h1")
	}
	t.Reported(time.Second, "the port with whose LID the foreign GID came", t.Dropped("h1", trust.SpoofedSGID))
	s.Tried("h1 sends data to h6 with LID and GID of h2")
	for _, key := range []ib.PKey{drill.KeyA, drill.KeyB, ib.DefaultPKeyLimited, ib.DefaultPKeyFull} {
		r := t.Inject("h1", sim.Data{
			SLID: t.LID("h2"), DLID: t.LID("h6"), PKey: key, DestQP: 2, Payload: 256, GRH: &sim.GRH{SGID: t.GIDOf("h2"), DGID: t.GIDOf("h6")},
		})
		if s.Check(r.Fate != sim.Delivered, "a packet of h1 in the name of h2, with P_Key %v, reached h6", key) {
			s.Stopped("in the name of h2 with P_Key %v: %v", key, r.Fate)
		}
	}
}

// forge sends a question with any source LID, from which no answer comes back.
func forge(c *drill.Client, q drill.Question, lid ib.LID) {
	p := c.Packet(&q)
	m := sim.Forged{MAD: p.MAD, SLID: lid, DLID: p.LID, SQP: drill.GMPQP, DQP: drill.GMPQP, PKey: ib.DefaultPKeyLimited}
	if q.SGID != (ib.GID{}) {
		m.GRH = &sim.GRH{SGID: q.SGID, DGID: p.GRH.GID}
	}
	m.MAD.SetTID(m.MAD.TID() | ib.TID(c.At.Slot())<<48)
	c.Site.Scene.Must(c.Site.Fabric.InjectMAD(drill.Port(c.Host), m))
	c.Site.Collect()
}
