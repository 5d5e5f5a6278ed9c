package fabric

import (
	"cmp"
	"slices"

	"portcullis/api/fabric/records"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// observed is a view of the subnet manager as far as this package reads it.
type observed struct {
	fabric   *topo.Fabric
	revision int64 // of the intent in force
	quiet    bool  // no request is out, so that tables are what was read
	settled  bool
	smState  ib.SMState
	down     bool                      // our own port is seen, and has no link
	closed   map[ib.Place]health.State // places that the subnet manager shut
	pkeys    func(topo.PortID) (keys []ib.PKey, proven bool)
	state    v1.SM // Updated left out
}

func fromView(v *sm.View) *observed {
	o := &observed{
		fabric: v.Fabric, revision: v.Revision, quiet: v.Pending == 0, settled: v.Settled, smState: v.State, pkeys: v.PKeys, closed: shutPlaces(v.Health),
		state: v1.SM{
			State: v.State.String(), GUID: v.GUID, LID: v.LID, Priority: v.Priority, Settled: v.Settled,
			Pending: v.Pending, Revision: v.Revision, SMPs: map[string]int{}, Problems: slices.Clone(v.Problems),
		},
	}
	if !v.Intent {
		o.revision = 0
	}
	for _, id := range v.Fabric.PortsByGUID(v.GUID) {
		o.down = v.Fabric.Port(id).State == ib.PortDown
	}
	for _, c := range v.SMPs {
		o.state.SMPs[c.Method.String()+" "+c.Attr.String()] = int(c.Sent)
	}
	return o
}

// report is what the subnet manager reported since it was last asked.
type report struct {
	events []sm.Event // in order
	view   *sm.View   // newest, nil: none
	known  int        // how many of the events a view knows, this one or one before it; -1: views only repeated older ones
}

// observe takes a report. It reports whether the intent must be said again: the subnet manager answers once for what is to
// be proven absent, and an HCA that could not be asked then can be now.
func (b *book) observe(r report) (again bool) {
	older := r.events[:max(0, r.known)]
	if r.known < 0 {
		older = r.events
	}
	again = b.handle(older)
	if r.known >= 0 {
		clear(b.news)
	}
	if r.view != nil && r.view.Fabric != nil {
		b.look(fromView(r.view))
	}
	return b.handle(r.events[len(older):]) || again
}

// handle takes events, and reports whether the intent must be said again.
func (b *book) handle(events []sm.Event) (again bool) {
	var withdrawn map[ib.GUID][]records.Key // as soon as a port is placed: after a start all are
	for _, ev := range events {
		b.event(ev)
		if e, ok := ev.(*sm.PortPlaced); ok {
			if withdrawn == nil {
				withdrawn = b.withdrawn()
			}
			again = again || b.owes(withdrawn[e.GUID])
		}
	}
	return again
}

// withdrawn returns the grants that are withdrawn, by port.
func (b *book) withdrawn() map[ib.GUID][]records.Key {
	out := map[ib.GUID][]records.Key{}
	for k, g := range b.grants {
		if g.withdrawn {
			out[k.GUID] = append(out[k.GUID], k)
		}
	}
	return out
}

// owes reports whether the P_Key of one of some withdrawn grants is still to be proven
// absent from the port's HCA.
func (b *book) owes(withdrawn []records.Key) bool {
	return slices.ContainsFunc(withdrawn, func(k records.Key) bool {
		m, _ := b.memberships.get(k.String())
		return !m.HCAProven
	})
}

// event handles an event that can be reported without a view.
func (b *book) event(ev sm.Event) {
	switch e := ev.(type) {
	case *sm.PortPlaced:
		b.placed(e)
	case *sm.PortGone:
		b.gone(e.GUID, e.Place)
	case *sm.MembershipApplied:
		k := records.Key{PKey: e.PKey.Base(), GUID: e.GUID, Place: e.Place}
		if b.grants[k].form(k.PKey) == e.PKey { // else it is what it was before the grant changed
			b.found(k, records.Membership{State: records.Applied, Revision: e.Revision})
		}
	case *sm.MembershipRemoved:
		b.found(records.Key{PKey: e.PKey.Base(), GUID: e.GUID, Place: e.Place}, records.Membership{State: records.Removed, Revision: e.Revision, HCAProven: e.HCAProven})
	case *sm.MembershipRefused:
		b.found(records.Key{PKey: e.PKey.Base(), GUID: e.GUID, Place: e.Place}, records.Membership{State: records.Refused, Revision: e.Revision, Reason: e.Reason})
	case *sm.InheritedPKeys:
		b.takeover.take(e)
	case *sm.ForeignPKeys:
		b.foreign.take(e, cmp.Or(b.owners.ports[e.GUID], b.owners.cables[e.Place]))
	}
}

func (b *book) placed(e *sm.PortPlaced) {
	if _, ours := b.cables[e.GUID]; !ours {
		return
	}
	p, _ := b.ports.get(e.GUID.String())
	was := p
	p.Shut = ""
	p.Place, p.LID, p.NodeGUID = e.Place, e.LID, e.NodeGUID
	b.news[e.GUID] = true
	b.setPort(e.GUID, was, p)
}

func (b *book) gone(g ib.GUID, from ib.Place) {
	p, known := b.ports.get(g.String())
	if !known || p.Place != from {
		return
	}
	b.news[g] = true
	b.setPort(g, p, records.Port{})
	// A port that comes back, even a moment later, has to be read back again.
	for k, gr := range b.grants {
		if k.GUID == g && !gr.withdrawn {
			b.found(k, records.Membership{})
		}
	}
}

// setPort records a port unless nothing but the time would change.
func (b *book) setPort(g ib.GUID, was, p records.Port) {
	p.Time = was.Time
	reason := p.Shut
	if p.Shut = was.Shut; p != was || was.Time.IsZero() {
		p.Time = b.clock()
	}
	if p.Shut = reason; p != was {
		b.ports.set(g.String(), p)
	}
}

// found records what was read back about a grant; other memberships do not concern the store. Time is filled in. A fact
// that the store knows already, under a revision that counts, is not written again.
func (b *book) found(k records.Key, m records.Membership) {
	g, wanted := b.grants[k]
	if !wanted {
		return
	}
	was, _ := b.memberships.get(k.String())
	m.Time, m.Ordered = was.Time, was.Ordered
	if was.Revision >= g.modified {
		m.Revision = max(m.Revision, was.Revision)
		if was.State == m.State && was.HCAProven == m.HCAProven && was.Reason == m.Reason {
			return
		}
	}
	if m != was {
		m.Time, m.Ordered = b.clock(), g.learned
		b.memberships.set(k.String(), m)
	}
}

// look takes a view. While the subnet manager discovers the fabric, its views show a part of what there is, and say nothing
// of ports and tables yet.
func (b *book) look(o *observed) {
	b.seen, b.stale = o, true
	if b.began.IsZero() {
		b.began = b.clock()
	}
	b.settledOnce = b.settledOnce || o.settled
	if o.smState != ib.SMDiscovering {
		b.review()
		b.find()
	}
	b.lookTakeover()
	if b.clock().Sub(b.written) >= nodesEvery {
		b.show() // tick does it otherwise: a host must not decide how often the store is written
	}
}

// review compares ports and memberships with the last view. Of a port that came or went since then, it knows nothing.
func (b *book) review() {
	if b.seen == nil {
		return
	}
	for g, cable := range b.cables {
		if !b.news[g] {
			b.reviewPort(g, cable)
		}
	}
	for k := range b.grants {
		if !b.news[k.GUID] {
			b.reviewGrant(k)
		}
	}
	for _, key := range b.ports.keys() {
		if g, err := ib.ParseGUID(key); err != nil || !b.inventoried(g) {
			b.ports.drop(key)
		}
	}
}

func (b *book) inventoried(g ib.GUID) bool {
	_, ok := b.cables[g]
	return ok
}

func (b *book) reviewPort(g ib.GUID, cable ib.Place) {
	was, _ := b.ports.get(g.String())
	id := b.portOf(g, cable)
	if id == topo.None {
		// Not seen is believed only when there is nothing left to discover.
		if b.seen.settled {
			b.setPort(g, was, records.Port{Shut: b.seen.shut(cable)})
		}
		return
	}
	f := b.seen.fabric
	port, node := f.Port(id), f.NodeOf(id)
	p := records.Port{NodeGUID: node.GUID, Place: f.PlaceOf(id), LID: port.LID, State: port.State.String(), HCACap: int(node.PartitionCap)}
	if peer := f.SwitchPortOf(id); peer != topo.None {
		p.SwitchCap = int(f.NodeOf(peer).PartitionEnforcementCap)
	}
	if f.LinkUp(id) == topo.None {
		p.Place, p.Shut = ib.Place{}, b.seen.shut(cable)
	}
	b.setPort(g, was, p)
}

// portOf returns the end port with a GUID; of several that show it, the one at the place where inventory says it is, if it
// is there.
func (b *book) portOf(g ib.GUID, cable ib.Place) topo.PortID {
	ids := b.seen.fabric.PortsByGUID(g)
	for _, id := range ids {
		if b.seen.fabric.PlaceOf(id) == cable {
			return id
		}
	}
	if len(ids) == 0 {
		return topo.None
	}
	return ids[0]
}

// reviewGrant finds in the tables what no event says again: that a membership
// which was granted, withdrawn and granted again between two intents never
// ceased to be there, and that a withdrawn one is absent also from an HCA that
// could not be asked before. It believes tables only while no request is out
// under an intent that has the grant as it is now.
func (b *book) reviewGrant(k records.Key) {
	g := b.grants[k]
	if !b.seen.quiet || b.seen.revision < g.modified {
		return
	}
	was, _ := b.memberships.get(k.String())
	form := g.form(k.PKey)
	onSwitch, switchProven := b.tableHolds(b.switchPort(k.Place), form, g.withdrawn)
	onHCA, hcaProven := b.tableHolds(b.portOf(k.GUID, k.Place), form, g.withdrawn)
	switch {
	case g.withdrawn && switchProven && !onSwitch:
		m := records.Membership{State: records.Removed, Revision: b.seen.revision, HCAProven: hcaProven && !onHCA}
		current := was.State == records.Removed && was.Revision >= g.modified
		if !current || m.HCAProven && !was.HCAProven {
			b.found(k, m)
		}
	case !g.withdrawn && was.State == records.Applied && was.Revision < g.modified:
		if switchProven && onSwitch && hcaProven && onHCA {
			b.found(k, records.Membership{State: records.Applied, Revision: b.seen.revision})
		}
	}
}

func (b *book) switchPort(p ib.Place) topo.PortID {
	sw := b.seen.fabric.NodeByGUID(p.Switch)
	if sw == topo.None {
		return topo.None
	}
	return b.seen.fabric.PortOf(sw, p.Port)
}

// tableHolds reports whether a table has a P_Key, with this membership or in any form.
func (b *book) tableHolds(id topo.PortID, k ib.PKey, anyhow bool) (holds, proven bool) {
	if id == topo.None {
		return false, false
	}
	keys, proven := b.seen.pkeys(id)
	return slices.ContainsFunc(keys, func(have ib.PKey) bool { return have == k || anyhow && have.Base() == k.Base() }), proven
}
