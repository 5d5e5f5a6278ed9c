package drill

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
)

// knowledgeDrills are about what hosts learn from subnet administration, and with whose
// name or key they ask.
func knowledgeDrills() []Drill {
	return []Drill{
		{ID: "T69", Threat: "find out with path questions which GIDs other tenants have", Play: pathOracle},
		{ID: "T72", Threat: "guess the SA_Key", Play: guessSAKey},
		{ID: "T74", Threat: "ask subnet administration with another's source GID", Play: foreignSGID},
	}
}

// pathOracle is T69.
func pathOracle(s *Scene) {
	o := administered()
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h5", "h1")
	h1 := t.client("h1")
	nobody := ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001)
	t.Attack()
	s.Tried("h1 of tenant A asks for paths to hosts of tenant B, to hosts that are in no tenant and to GIDs that nobody has, by GID and by LID, and compares the answers")
	h1.answered(t.pathTo("h1", t.gidOf("h5")), mad.StatusOK, "the path to h5 of its own tenant")
	held := true
	for _, host := range []string{"h2", "h6", "h8", "leaf2"} {
		there := ib.MakeGID(ib.DefaultPrefix, t.GUID(host, t.endPortOf(host)))
		held = h1.alike(t.pathTo("h1", there), t.pathTo("h1", nobody), "that %s is there", host) && held
		known := mad.PathRecord{SLID: t.LID("h1"), DLID: t.lidOf(host)}
		empty := mad.PathRecord{SLID: t.LID("h1"), DLID: 0xBEEF}
		const lids = mad.PathComponentSLID | mad.PathComponentDLID
		held = h1.alike(get(mad.AttrPathRecord, lids, with(s, &known)), get(mad.AttrPathRecord, lids, with(s, &empty)), "that %s has LID %v", host, t.lidOf(host)) && held
		q, unknown := t.pathTo("h1", there), t.pathTo("h1", nobody)
		q.method, unknown.method = mad.MethodGetTable, mad.MethodGetTable
		held = h1.alike(q, unknown, "by a table that %s is there", host) && held
	}
	if held {
		s.Stopped("a port that shares no partition with h1 is answered for as one that is not there, in content and in time")
	}
	s.Tried("h1 asks in the name of h2 for the path from h2 to h6")
	foreign := t.pathTo("h2", t.gidOf("h6"))
	m := h1.ask(foreign)
	if s.Check(m == nil || m.Status() != mad.StatusOK, "h1 learns the path from h2 to h6") {
		s.Stopped("a path is told to who shares a partition with both of its ends")
	}
	s.Reported("nothing: questions for paths are an ordinary thing, and answers tell nothing")
}

// guessSAKey is T72.
func guessSAKey(s *Scene) {
	t := s.Site(administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1 := t.client("h1")
	const guesses = 200
	s.Tried("h1 asks for all nodes with %d SA_Keys that it guessed, the usual ones first", guesses)
	t.Attack()
	nodes := question{method: mad.MethodGetTable, attr: mad.AttrNodeRecord}
	held := true
	for i := range uint64(guesses) {
		nodes.key = ib.NewSAKey(1 + i*i*0x9E3779B9)
		held = h1.silent(nodes, "SA_Key number %d", i+1) && held
	}
	if held {
		s.Stopped("a request with a wrong SA_Key is not answered at all, not even what anybody may ask without one")
	}
	own := t.pathTo("h1", t.gidOf("h5"))
	own.key = ib.NewSAKey(1)
	h1.silent(own, "a question with a wrong SA_Key that is allowed without one")
	t.Reported(time.Second, "the first guess", t.dropped("h1", trust.WrongKey))
	t.Run(2 * time.Second)
	n := t.droppedTotal("h1", trust.WrongKey, mad.AttrNodeRecord, mad.MethodGetTable)
	if s.Check(n == guesses, "%d guesses of %d are told of", n, uint64(guesses)) {
		s.Reported("all %d guesses are counted in the end, and told of at numbers 1, 2, 5, 10, 20, 50 and so on", n)
	}
	nodes.key = saKey
	records, ok := t.client("h8").table(nodes)
	s.Check(ok && len(records) == len(t.List.Nodes), "who has the SA_Key gets %d of %d nodes", len(records), len(t.List.Nodes))
}

// foreignSGID is T74.
func foreignSGID(s *Scene) {
	t := s.Site(administered())
	t.Victim("h2", "h6")
	t.Customer("h2", "h6")
	h1, h5 := t.client("h1"), t.client("h5")
	s.Tried("h1 shows source GIDs that are not its own: that of h2, that of the manager, one that nobody has and its own of another subnet; with and without the SA_Key it asks for paths of h2, makes groups and offers services")
	t.Attack()
	own := t.pathTo("h1", t.gidOf("h5"))
	own.sgid = t.gidOf("h1")
	h1.answered(own, mad.StatusOK, "a question with a header of its own GID")
	held, n := true, uint16(0)
	for _, sgid := range []ib.GID{t.gidOf("h2"), t.gidOf("sm"), ib.MakeGID(ib.DefaultPrefix, 0x00BAD00000000001), ib.MakeGID(0xFEC0000000000001, t.GUID("h1", 1))} {
		for _, key := range []ib.SAKey{{}, saKey} {
			n++
			for _, q := range []question{
				t.pathTo("h2", t.gidOf("h6")), t.join("h1", groupOf(n), keyA), t.register("h1", ib.ServiceID(n), "drill", keyA),
			} {
				q.sgid, q.key = sgid, key
				held = h1.silent(q, "a request with source GID %v", sgid) && held
			}
			held = t.hasNot(h5, groupOf(n), ib.ServiceID(n), "h1", "it asked for with source GID %v", sgid) && held
		}
	}
	if held {
		s.Stopped("a request with a source GID that is not the port's with the source LID is dropped, with the SA_Key too, and nothing comes of it")
	}
	t.Reported(time.Second, "whose LID the requests came from", t.dropped("h1", trust.SpoofedSGID))
	h5.ask(t.join("h5", groupOf(1), keyA)) // to be sure that there could be one
	m := h5.ask(t.group(groupOf(1)))
	s.Check(m != nil && m.Status() == mad.StatusOK, "h5 cannot make a group, so nothing is proven")
}

// hasNot demands that a host of a tenant finds neither a group nor a service of another
// host. What says what.
func (t *Site) hasNot(c *client, mgid ib.GID, id ib.ServiceID, of, what string, args ...any) bool {
	s := t.scene
	m := c.ask(t.group(mgid))
	held := s.Check(m != nil && m.Status() == mad.StatusNoRecords, of+" has the group that "+what, args...)
	m = c.ask(t.service(of, id, keyA))
	return s.Check(m != nil && m.Status() == mad.StatusNoRecords, of+" offers the service that "+what, args...) && held
}
