package administration

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim/netlist"
)

// KnowledgeDrills are about what hosts learn from subnet administration, and with whose
// name or key they ask.
func KnowledgeDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T68", Threat: "ask for every record of the fabric", Play: enumerate},
		{ID: "T69", Threat: "find out with path questions which GIDs other tenants have", Play: pathOracle},
		{ID: "T70", Threat: "subscribe to what happens to others, and to security traps", Play: listenIn},
		{ID: "T72", Threat: "guess the SA_Key", Play: guessSAKey},
		{ID: "T73", Threat: "go on with an SA_Key that was stolen", Play: stolenSAKey},
		{ID: "T74", Threat: "ask subnet administration with another's source GID", Play: foreignSGID},
		{ID: "T76", Threat: "count the ports of other tenants that come and go", Play: countPorts},
	}
}

// pathOracle is T69.
func pathOracle(s *drill.Scene) {
	o := drill.Administered()
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h5", "h1")
	h1 := t.Client("h1")
	nobody := ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001)
	t.Attack()
	s.Tried("h1 of tenant A asks for paths to hosts of tenant B, to hosts that are in no tenant and to GIDs that no port has, by GID and by LID, and compares the answers")
	h1.Answered(t.PathTo("h1", t.GIDOf("h5")), "the path to h5 of its own tenant")
	held := true
	for _, host := range []string{"h2", "h6", "h8", "leaf2"} {
		there := ib.MakeGID(ib.DefaultPrefix, t.GUID(host, t.EndPortOf(host)))
		held = h1.Alike(t.PathTo("h1", there), t.PathTo("h1", nobody), "that %s is there", host) && held
		known := mad.PathRecord{SLID: t.LID("h1"), DLID: t.LIDOf(host)}
		empty := mad.PathRecord{SLID: t.LID("h1"), DLID: 0xBEEF}
		const lids = mad.PathComponentSLID | mad.PathComponentDLID
		held = h1.Alike(drill.Get(mad.AttrPathRecord, lids, drill.With(s, &known)), drill.Get(mad.AttrPathRecord, lids, drill.With(s, &empty)), "that %s has LID %v", host, t.LIDOf(host)) && held
		q, unknown := t.PathTo("h1", there), t.PathTo("h1", nobody)
		q.Method, unknown.Method = mad.MethodGetTable, mad.MethodGetTable
		held = h1.Alike(q, unknown, "by a table that %s is there", host) && held
	}
	if held {
		s.Stopped("a port that shares no partition with h1 is answered for as one that is not there")
	}
	s.Tried("h1 asks in the name of h2 for the path from h2 to h6")
	foreign := t.PathTo("h2", t.GIDOf("h6"))
	m := h1.Ask(foreign)
	if s.Check(m == nil || m.Status() != mad.StatusOK, "h1 learns the path from h2 to h6") {
		s.Stopped("a path is returned to ports that share a partition with both of its ends")
	}
	s.Reported("nothing: questions for paths are an ordinary thing, and answers reveal nothing")
}

// guessSAKey is T72.
func guessSAKey(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1 := t.Client("h1")
	const guesses = 200
	s.Tried("h1 asks for all nodes with %d SA_Keys that it guessed, the usual ones first", guesses)
	t.Attack()
	nodes := drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord}
	held := true
	for i := range uint64(guesses) {
		nodes.Key = ib.NewSAKey(1 + i*i*0x9E3779B9)
		held = h1.Silent(nodes, "SA_Key number %d", i+1) && held
	}
	if held {
		s.Stopped("a request with a wrong SA_Key is not answered at all, not even what every client may ask without one")
	}
	own := t.PathTo("h1", t.GIDOf("h5"))
	own.Key = ib.NewSAKey(1)
	h1.Silent(own, "a question with a wrong SA_Key that is allowed without one")
	t.Reported(time.Second, "the first guess", t.Dropped("h1", trust.WrongKey))
	t.Run(2 * time.Second)
	n := t.DroppedTotal("h1", trust.WrongKey, mad.AttrNodeRecord, mad.MethodGetTable)
	if s.Check(n == guesses, "%d guesses of %d are reported", n, uint64(guesses)) {
		s.Reported("all %d guesses are counted in the end, and reported at numbers 1, 2, 5, 10, 20, 50 and so on", n)
	}
	nodes.Key = drill.SAKey
	records, ok := t.Client("h8").Table(nodes)
	s.Check(ok && len(records) == len(t.List.Nodes), "who has the SA_Key gets %d of %d nodes", len(records), len(t.List.Nodes))
}

// foreignSGID is T74.
func foreignSGID(s *drill.Scene) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2, Routers: 1})
	s.Must(err)
	o := drill.Administered()
	o.Netlist = l
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h5 := t.Client("h1"), t.Client("h5")
	s.Tried("h1 shows source GIDs that are not its own: that of h2, that of the manager, one that no port has and its own of another subnet; with and without the SA_Key it asks for paths of h2, makes groups and offers services")
	t.Attack()
	own := t.PathTo("h1", t.GIDOf("h5"))
	own.SGID = t.GIDOf("h1")
	h1.Answered(own, "a question with a header of its own GID")
	held, n := true, uint16(0)
	for _, sgid := range []ib.GID{t.GIDOf("h2"), t.GIDOf("sm"), ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001), ib.MakeGID(0xFEC0000000000001, t.GUID("h1", 1))} {
		for _, key := range []ib.SAKey{{}, drill.SAKey} {
			n++
			for _, q := range []drill.Question{
				t.PathTo("h2", t.GIDOf("h6")), t.Join("h1", drill.GroupOf(n), drill.KeyA), t.Register("h1", ib.ServiceID(n), "drill", drill.KeyA),
			} {
				q.SGID, q.Key = sgid, key
				held = h1.Silent(q, "a request with source GID %v", sgid) && held
			}
			held = hasNot(t, h5, drill.GroupOf(n), ib.ServiceID(n), "h1", "it asked for with source GID %v", sgid) && held
		}
	}
	if held {
		s.Stopped("a request with a source GID that is not the port's with the source LID is dropped, with the SA_Key too, and nothing comes of it")
	}
	t.Reported(time.Second, "whose LID the requests came from", t.Dropped("h1", trust.SpoofedSGID))
	beyond := drill.Get(mad.AttrClassPortInfo, 0, nil)
	beyond.SGID = ib.MakeGID(0xFEC0000000000001, 0x00BAD00000000002)
	before := t.Administration().Stats().Answers
	t.Client("rt1").Send(beyond)
	t.Run(drill.AnswerTime)
	s.Check(t.Administration().Stats().Answers == before+1, "what a router brings from another subnet is not answered")
	h5.Ask(t.Join("h5", drill.GroupOf(1), drill.KeyA)) // to be sure that there could be one
	m := h5.Ask(t.Group(drill.GroupOf(1)))
	s.Check(m != nil && m.Status() == mad.StatusOK, "h5 cannot make a group, so nothing is proven")
}

// hasNot demands that a host of a tenant finds neither a group nor a service of another host. The text names the two.
func hasNot(t *drill.Site, c *drill.Client, mgid ib.GID, id ib.ServiceID, of, what string, args ...any) bool {
	s := t.Scene
	m := c.Ask(t.Group(mgid))
	held := s.Check(m != nil && m.Status() == mad.StatusNoRecords, of+" has the group that "+what, args...)
	m = c.Ask(t.Service(of, id, drill.KeyA))
	return s.Check(m != nil && m.Status() == mad.StatusNoRecords, of+" offers the service that "+what, args...) && held
}

// enumerate is T68.
func enumerate(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h8 := t.Client("h1"), t.Client("h8")
	s.Tried("h1 asks every record by every method, with no SA_Key and with wrong ones")
	t.Attack()
	open := map[mad.AttrID][]mad.Method{ // whatever the service thinks of it
		mad.AttrClassPortInfo: {mad.MethodGet}, mad.AttrPathRecord: {mad.MethodGet}, mad.AttrInformInfo: {mad.MethodSet},
		mad.AttrMCMemberRecord: {mad.MethodGet, mad.MethodSet, mad.MethodDelete},
		mad.AttrServiceRecord:  {mad.MethodGet, mad.MethodSet, mad.MethodDelete},
	}
	records := []mad.AttrID{
		mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingRecord,
		mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrGUIDInfoRecord, mad.AttrPKeyTableRecord,
	}
	others := []mad.AttrID{
		mad.AttrSLtoVLRecord, mad.AttrVLArbitrationRecord, mad.AttrClassPortInfo, mad.AttrNotice, mad.AttrInformInfo, mad.AttrRandomForwardingRecord, mad.AttrMulticastForwardingRecord,
		mad.AttrServiceRecord, mad.AttrPathRecord, mad.AttrMCMemberRecord, mad.AttrTraceRecord, mad.AttrMultiPathRecord,
		mad.AttrServiceAssociationRecord, mad.AttrInformInfoRecord, 0x0050, 0x0053, 0x1234,
	}
	methods := []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodDelete, mad.MethodGetTrace, mad.MethodGetMulti}
	silent, asked := 0, 0
	for _, attr := range slices.Concat(records, others) {
		for _, method := range methods {
			for _, key := range []ib.SAKey{{}, ib.NewSAKey(1), ib.NewSAKey(drill.SAKey.Reveal() ^ 1)} {
				if key.IsZero() && slices.Contains(open[attr], method) {
					continue
				}
				asked++
				q := drill.Question{Method: method, Attr: attr, Key: key}
				if h1.Silent(q, "%v of attribute 0x%04x, with an SA_Key: %v", method, uint16(attr), !key.IsZero()) {
					silent++
				}
			}
		}
	}
	ends := mad.PathRecord{SGID: t.GIDOf("h1"), DGID: t.GIDOf("h2")}
	q := drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrPathRecord, Mask: mad.PathComponentSGID, Data: drill.With(s, &ends)}
	h1.Silent(q, "paths from itself to all ports")
	if silent == asked {
		s.Stopped("%d questions of %d are dropped without a word: who shows no SA_Key gets paths, groups, services, subscriptions and ClassPortInfo", silent, asked)
	}
	t.Reported(time.Second, "what h1 asked without a key", t.Dropped("h1", trust.NotAllowed))
	t.Reported(time.Second, "what it asked with a wrong one", t.Dropped("h1", trust.WrongKey))
	for _, attr := range records {
		got, ok := h8.Table(drill.Question{Method: mad.MethodGetTable, Attr: attr, Key: drill.SAKey})
		s.Check(ok && len(got) > 0, "who has the SA_Key gets no record 0x%04x, so nothing is proven", uint16(attr))
	}
}

// stolenSAKey is T73.
func stolenSAKey(s *drill.Scene) {
	o := drill.Administered()
	o.SA.Key = ib.SAKey{}
	o.SA.Source = keys.Derived{Master: s.Master()}
	o.SA.Trust.KeyPeriod, o.SA.Trust.KeyGrace = 10*time.Minute, 2*time.Minute
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h8 := t.Client("h1"), t.Client("h8")
	stolen := t.Administration().SAKey()
	nodes := func(key ib.SAKey) drill.Question {
		return drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord, Key: key}
	}
	_, ok := h1.Table(nodes(stolen))
	s.Check(ok, "the key that h1 stole is no use to it, so nothing is proven")
	s.Tried("h1 has stolen the SA_Key from a tool on h8, and goes on with it when the next one is in force")
	t.Run(o.SA.Trust.KeyPeriod)
	_, ok = h8.Table(nodes(stolen))
	s.Check(ok, "in its grace the key before is not taken from tools that do not have the next one yet")
	t.Run(o.SA.Trust.KeyGrace)
	t.Attack()
	if h1.Silent(nodes(stolen), "all nodes, under the key that it stole") {
		s.Stopped("the SA_Key changes every %v, and the one before is taken for %v more: what was stolen is worth nothing then", o.SA.Trust.KeyPeriod, o.SA.Trust.KeyGrace)
	}
	t.Reported(time.Second, "who goes on with the key that was retired", t.Dropped("h1", trust.RetiredKey))
	_, ok = h8.Table(nodes(t.Administration().SAKey()))
	s.Check(ok, "no client has the key that is in force")
	s.Tried("the manager starts again, and h1 tries the key once more")
	t.Crash()
	t.Start()
	t.Want(t.Intent())
	s.Must(t.Settle(drill.SettleTime))
	h1.Silent(nodes(stolen), "all nodes after a restart, under the key that it stole")

	o = drill.Administered()
	o.Netlist = t.List
	o.SA.Trust.TrustedSources = []ib.GUID{t.GUID("h8", 1)}
	t = s.Site(o)
	h1, h8 = t.Client("h1"), t.Client("h8")
	s.Tried("h1 shows the SA_Key that is in force where it is taken from h8 alone")
	t.Attack()
	if h1.Silent(nodes(drill.SAKey), "all nodes, under the right key") {
		s.Stopped("the SA_Key is taken from the ports that are named in sa_trusted_guids, and is nothing elsewhere")
	}
	_, ok = h8.Table(nodes(drill.SAKey))
	s.Check(ok, "h8 may not use the key")
	t.Reported(time.Second, "where the key is shown that may not be used there", t.Dropped("h1", trust.KeyElsewhere))
}

// listener is a program on a host that is sent reports.
type listener struct {
	drill.Client
	heard []mad.ReportNotice
}

// hears subscribes a host to notices of all traps of a kind, and demands that it may.
func hears(t *drill.Site, host string, key ib.SAKey) *listener {
	at, err := t.Fabric.Station(host, true)
	t.Scene.Must(err)
	l := &listener{Client: drill.Client{Site: t, Host: host, At: at}}
	for _, q := range []drill.Question{drill.Subscribe(t.Scene, mad.AllTraps), subscribeVendor(t)} {
		q.Key = key
		l.Answered(q, "a subscription to all notices")
	}
	return l
}

// subscribeVendor asks for all notices of vendors.
func subscribeVendor(t *drill.Site) drill.Question {
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	return drill.Question{Method: mad.MethodSet, Attr: mad.AttrInformInfo, Data: drill.With(t.Scene, &info)}
}

// listen takes reports, and answers them, for a time.
func listen(t *drill.Site, d time.Duration, all ...*listener) {
	for until := t.Now() + d; t.Now() < until; {
		t.Run(20 * time.Millisecond)
		for _, l := range all {
			for _, p := range l.At.Take(nil) {
				var n mad.ReportNotice
				if p.MAD.Method() != mad.MethodReport || mad.Decode(p.MAD.SAData(), &n) != nil {
					continue
				}
				l.heard = append(l.heard, n)
				p.MAD.SetMethod(mad.MethodReportResp)
				l.At.Send(p)
			}
		}
		t.Collect()
	}
}

// of counts the notices of a trap that a listener has heard.
func (l *listener) of(trap mad.TrapNum) (n int) {
	for i := range l.heard {
		if h := &l.heard[i].NoticeHeader; h.IsGeneric && h.TrapNumber == trap {
			n++
		}
	}
	return n
}

// secret counts those that are about security.
func (l *listener) secret() (n int) {
	for i := range l.heard {
		h := &l.heard[i].NoticeHeader
		if !h.IsGeneric || h.TrapNumber >= mad.TrapBadMKey && h.TrapNumber <= mad.TrapBadPKeySwitch {
			n++
		}
	}
	return n
}

// listenIn is T70.
func listenIn(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Victim("h1", "h5")
	t.Customer("h5", "h1")
	h1, h2, h8 := hears(t, "h1", ib.SAKey{}), hears(t, "h2", ib.SAKey{}), hears(t, "h8", drill.SAKey)
	s.Tried("h1 subscribes to ports and groups that come and go, to security traps by number and by wildcard, to notices of vendors, and to what is reported of h6 alone")
	t.Attack()
	for _, trap := range []mad.TrapNum{mad.TrapBadMKey, mad.TrapBadPKey, mad.TrapBadQKey, mad.TrapBadPKeySwitch} {
		if h1.Silent(drill.Subscribe(s, trap), "a subscription to trap %v", trap) {
			s.Stopped("a subscription to trap %v is dropped", trap)
		}
	}
	t.Reported(time.Second, "who asked for security traps", t.Dropped("h1", trust.SecurityTraps))
	info := mad.InformInfo{GID: t.GIDOf("h6"), IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	one := drill.Question{Method: mad.MethodSet, Attr: mad.AttrInformInfo, Data: drill.With(s, &info)}
	m := h1.Ask(one)
	s.Check(m == nil || m.Status() != mad.StatusOK, "h1 subscribes to what is reported of h6")
	info.GID = ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001)
	h1.Alike(one, drill.Question{Method: mad.MethodSet, Attr: mad.AttrInformInfo, Data: drill.With(s, &info)}, "that h6 is there")
	listen(t, 100*time.Millisecond, h1, h2, h8)
	before := len(h1.heard)

	s.Tried("h6 of tenant B goes and comes back, h2 makes a group and deletes it, h7 tries an M_Key and a wrong SA_Key")
	t.Pull("h6")
	listen(t, 2*time.Second, h1, h2, h8)
	s.Must(t.Fabric.Restore("h6", ib.NoPort))
	t.Collect()
	listen(t, 2*time.Second, h1, h2, h8)
	b := t.Client("h2")
	b.Answered(t.Join("h2", drill.GroupOf(1), drill.KeyB), "it makes a group")
	b.Answered(t.Leave("h2", drill.GroupOf(1)), "it deletes the group")
	h7 := t.Attacker("h7")
	h7.Ask(drill.SMP{To: "sm", Attr: mad.AttrPortInfo, Key: ib.NewMKey(0xBAD)})
	t.Client("h7").Silent(drill.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord, Key: ib.NewSAKey(2)}, "all nodes, under a wrong key")
	listen(t, 2*time.Second, h1, h2, h8)
	for _, trap := range []mad.TrapNum{mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted} {
		s.Check(h2.of(trap) > 0, "h2 of tenant B gets no notice of trap %v, so nothing is proven", trap)
	}
	s.Check(h8.secret() > 0, "the client with the SA_Key gets no notice of an attack, so nothing is proven")
	s.Check(h2.secret() == 0, "h2 gets notices of %d attacks", h2.secret())
	if s.Check(len(h1.heard) == before, "h1 gets %d notices about tenant B and about attacks: %v", len(h1.heard)-before, h1.heard) {
		s.Stopped("notices go to ports that share a partition with the port or have the P_Key of the group, and those of attacks to clients with the SA_Key: h2 gets notices of its own tenant %d times, h1 not once", len(h2.heard))
	}
}

// countPorts is T76.
func countPorts(s *drill.Scene) {
	t := s.Site(drill.Administered())
	t.Customer("h5", "h1")
	h1, h2 := hears(t, "h1", ib.SAKey{}), hears(t, "h2", ib.SAKey{})
	listen(t, 100*time.Millisecond, h1, h2)
	before := len(h1.heard)
	const times = 5
	s.Tried("h1 has subscribed to all ports that come and go, and counts: tenant B takes h6 away and brings it back %d times, and then takes h8 in", times)
	t.Attack()
	for range times {
		t.Pull("h6")
		listen(t, time.Second, h1, h2)
		s.Must(t.Fabric.Restore("h6", ib.NoPort))
		t.Collect()
		listen(t, time.Second, h1, h2)
	}
	t.Grant(t.GrantOf("h8", 1, drill.KeyB))
	listen(t, time.Second, h1, h2)
	if s.Check(len(h1.heard) == before, "h1 gets %d notices of ports of tenant B", len(h1.heard)-before) {
		s.Stopped("h1 gets no notice of a port of tenant B, not even that there is one; h2 gets %d", len(h2.heard))
	}
	s.Check(h2.of(mad.TrapGIDOutOfService) >= times && h2.of(mad.TrapGIDInService) >= times, "h2 gets notices of %d ports that went and %d that came, want %d of each", h2.of(mad.TrapGIDOutOfService), h2.of(mad.TrapGIDInService), times)
	s.Reported("nothing: to subscribe is allowed, and reveals nothing to h1")
}
