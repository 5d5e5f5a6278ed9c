package sm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// An adapter that refuses its M_Key. A host can set another M_Key on its own adapter. Then this subnet manager can no
// longer write there, and another tenant's LID would stay. So the switch port in front is closed: its link is taken down to
// Init, in which only SMPs pass. The adapter is asked further, under its keys. As soon as it answers it is admitted like
// any host that was cabled there. A restart also leads to this, as an M_Key does not survive it.
//
// Neither silence nor a trap closes a port. For an adapter that answered under its key since its link came up, these do:
//
//   - an answer with an M_Key that is none of ours, or in which one is hidden, or
//   - that it answers under none of its keys while the switch in front, asked by package
//     counterwatch, has counted packets from it twice, in the same life of the link:
//     it works, and refuses.
//
// Where many adapters do so at once the fault is more likely in a firmware, or ours, than in so many hosts. Then the rest
// stays as it is, and is reported.

// PortCounted is the input by which package counterwatch says how many packets the switch
// port has received in front of an adapter of View.Refusing.
type PortCounted struct {
	GUID    ib.GUID // port GUID of the adapter
	Packets uint64
}

func (*PortCounted) input() {}

// RefusingPort is an adapter that answers under none of its M_Keys. The packets that the
// switch port in front receives say whether it works.
type RefusingPort struct {
	GUID   ib.GUID
	Place  ib.Place
	Switch topo.PortID // port 0 of the switch in front
}

// MKeyRefused says that an adapter works and refuses its M_Key. The switch port in front is then closed, until the adapter
// answers under a key of ours or under none.
type MKeyRefused struct {
	GUID    ib.GUID
	Place   ib.Place
	LID     ib.LID // that was read there last
	Packets uint64 // that it sent while it refused, as the switch in front counts; 0: it showed an M_Key that is not ours
	Open    bool   // the port was left open, since too many were closed lately
}

func (*MKeyRefused) FabricEvent() {}

// String implements fmt.Stringer.
func (e *MKeyRefused) String() string {
	how := "shows an M_Key that is not ours"
	if e.Packets > 0 {
		how = fmt.Sprintf("answers under no M_Key of ours and has sent %d packets meanwhile", e.Packets)
	}
	then := "the switch port is closed until it answers under a key of ours or none"
	if e.Open {
		then = fmt.Sprintf("the switch port stays open, for %d were closed for this within %v: look at the firmware of these hosts, then close it with: portcullis fabric health mark %v", maxRefused, refusedWindow, e.Place)
	}
	return fmt.Sprintf("port %v at %v %s; its host gave it another; %s", e.GUID, e.Place, how, then)
}

// MKeyObeyed says that an adapter for which a switch port was closed answers again.
type MKeyObeyed struct {
	GUID  ib.GUID
	Place ib.Place
}

func (*MKeyObeyed) FabricEvent() {}

// String implements fmt.Stringer.
func (e *MKeyObeyed) String() string {
	return fmt.Sprintf("port %v at %v answers again; its switch port is opened", e.GUID, e.Place)
}

// refusal is what is known of an adapter that answers under none of its keys.
type refusal struct {
	place   ib.Place
	first   uint64 // packets at the first count
	last    uint64
	counts  int
	grew    int
	stopped bool // it was decided what follows
}

const (
	// refusedCounts is how often the count of packets must have grown.
	refusedCounts = 2
	// maxRefused is how many switch ports may be closed for this within refusedWindow.
	maxRefused    = 4
	refusedWindow = 10 * time.Minute
	// closedEvery is how often an adapter is asked behind a closed switch port.
	closedEvery = 2 * time.Second
	// closedSettles is how long the link of a port may be down because it was closed.
	closedSettles = 10 * time.Second
	// refusedOften is how many times within refusedWindow a port may be closed before the device behind it is isolated as
	// unhealthy.
	refusedOften = 3
)

// refusals is what is known of adapters that refuse their keys.
type refusals struct {
	ports  map[topo.PortID]*refusal
	closed map[ib.Place]closing // switch ports that are closed
	lately []refusedAt          // closed within refusedWindow
	asking bool                 // work.Closed runs
}

// closing is for which adapter a switch port was closed, and when.
type closing struct {
	guid ib.GUID
	at   time.Time
}

type refusedAt struct {
	place ib.Place
	at    time.Time
}

func newRefusals() refusals {
	return refusals{ports: make(map[topo.PortID]*refusal), closed: make(map[ib.Place]closing)}
}

// mayRefuse reports whether an adapter answered under its key since its link came up, and is behind a switch port which can
// be closed.
func (c *Core) mayRefuse(p topo.PortID) bool {
	if !c.cfg.Controls.Ports.Closes() || !c.wrote.IsAdapter(p) || !c.ports[p].obeyed || !c.writing() || c.mkeys.IsReleasing() || !c.mkeys.Places().IsVerified(p) {
		return false
	}
	sp := c.topo.Peer(p)
	return c.ports[sp].known && c.ports[sp].info.PortState == ib.PortActive && !c.quarantine.IsProtected(sp) && !c.nodes[c.ports[sp].node].silent
}

// refuses takes that an adapter answers under none of its keys. shown: an answer of it
// shows that it has another.
func (c *Core) refuses(p topo.PortID, shown bool) {
	if !c.mayRefuse(p) {
		return
	}
	r := c.refusals.ports[p]
	if r == nil {
		r = &refusal{place: c.topo.PlaceOf(p)}
		c.refusals.ports[p] = r
		c.viewDue = true // counterwatch sees it there
	}
	if shown && !r.stopped {
		c.closeRefusing(p, r)
	}
}

// obeys takes that an adapter answered under its key, or that it has gone.
func (c *Core) obeys(p topo.PortID) {
	if r := c.refusals.ports[p]; r != nil {
		delete(c.refusals.ports, p)
		c.faults.Clear(fault.Key{Kind: fault.KeyRefused, Place: r.place})
		c.viewDue = true
	}
}

// portCounted takes how many packets an adapter has sent that may refuse its key.
func (c *Core) portCounted(in *PortCounted) {
	p, here := c.byPort[in.GUID]
	r := c.refusals.ports[p]
	if !here || r == nil || r.stopped {
		return
	}
	if !c.mayRefuse(p) || !c.stranded(p) && !c.nodes[c.ports[p].node].silent && !c.failures.IsPaused(work.OnPort(work.Info, p)) {
		c.obeys(p)
		return
	}
	switch r.counts++; {
	case r.counts == 1:
		r.first = in.Packets
	case in.Packets > r.last:
		r.grew++
	case in.Packets < r.last: // they were reset
		r.counts, r.grew, r.first = 1, 0, in.Packets
	}
	if r.last = in.Packets; r.grew >= refusedCounts {
		c.closeRefusing(p, r)
	}
}

// stranded reports whether a port answers under none of its keys.
func (c *Core) stranded(p topo.PortID) bool {
	do, keyed := c.mkeys.Do(p)
	return keyed && do == keys.Stranded
}

// closeRefusing closes the switch port in front of an adapter that refuses its key.
func (c *Core) closeRefusing(p topo.PortID, r *refusal) {
	r.stopped = true
	sp, guid, place := c.topo.Peer(p), c.topo.GUIDOf(p), c.topo.PlaceOf(p)
	e := &MKeyRefused{GUID: guid, Place: place, LID: c.ports[p].info.LID, Packets: r.last - r.first}
	h := &c.refusals
	h.lately = slices.DeleteFunc(h.lately, func(a refusedAt) bool { return c.now.Sub(a.at) >= refusedWindow })
	others, here := 0, 0
	for _, a := range h.lately {
		if a.place == place {
			here++
		} else {
			others++
		}
	}
	if e.Open = others >= maxRefused; e.Open {
		c.problem(fault.Key{Kind: fault.KeyRefused, Place: place}, e)
		return
	}
	h.lately = append(h.lately, refusedAt{place, c.now})
	c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostMKey, LID: e.LID})
	delete(h.ports, p)
	h.closed[place] = closing{guid, c.now}
	c.askClosedLater()
	c.problem(fault.Key{Kind: fault.KeyRefused, Place: place}, e)
	if may := c.health.MayConfine(place); may && here+1 >= refusedOften && c.health.IsMarked(place, health.MarkNone) {
		c.health.Confine(&health.Unhealthy{Place: place, GUID: c.topo.NodeGUID(c.ports[p].node), Condition: health.RefusesKey, Count: here + 1, Window: refusedWindow, Action: health.Isolate})
		return // which closes it, too
	}
	if c.unlink(sp); c.nodes[c.ports[sp].node].alive {
		c.quarantine.Shut(sp)
		c.q.MarkPort(work.Probe, sp)
	}
}

// hasOtherKey reports whether an adapter answers under a key that is none of ours.
func (c *Core) hasOtherKey(p topo.PortID) bool {
	if !c.mkeys.IsOn() || p == topo.None || !c.wrote.IsAdapter(p) {
		return false
	}
	do, keyed := c.mkeys.Do(p)
	return keyed && (do == keys.Foreign || do == keys.Stranded)
}

// isClosed reports whether a switch port is closed.
func (c *Core) isClosed(sp topo.PortID) bool {
	if len(c.refusals.closed) == 0 || !c.topo.IsExternal(sp) {
		return false
	}
	_, closed := c.refusals.closed[c.topo.PlaceOf(sp)]
	return closed
}

// askClosed asks again behind switch ports that are closed. A restart does not show there:
// the port was in Init before.
func (c *Core) askClosed() {
	c.refusals.asking = false
	if len(c.refusals.closed) == 0 {
		return
	}
	places := slices.SortedFunc(maps.Keys(c.refusals.closed), func(a, b ib.Place) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	for _, place := range places {
		sp := c.topo.SwitchPortAt(place)
		if sp == topo.None || !c.nodes[c.ports[sp].node].alive {
			continue
		}
		if p := c.topo.Peer(sp); p != topo.None {
			c.keyDoubted(p)
			c.background(p)
		} else {
			c.q.MarkPort(work.Probe, sp)
		}
	}
	c.askClosedLater()
}

func (c *Core) askClosedLater() {
	if !c.refusals.asking {
		c.refusals.asking = true
		c.after(closedEvery, work.Closed, work.Ref{})
	}
}

// keepClosed takes the link of a switch port down again that is closed, if it is in use.
func (c *Core) keepClosed(sp topo.PortID) {
	if c.isClosed(sp) {
		c.quarantine.Shut(sp)
	}
}

// reopened takes that an adapter answers under a key of ours, or under none.
func (c *Core) reopened(p topo.PortID) {
	place, sp := c.topo.PlaceOf(p), c.topo.Peer(p)
	was, closed := c.refusals.closed[place]
	if !closed {
		return
	}
	delete(c.refusals.closed, place)
	c.faults.Clear(fault.Key{Kind: fault.KeyRefused, Place: place})
	c.event(&MKeyObeyed{GUID: was.guid, Place: place})
	c.q.MarkPort(work.Set, sp)
}

// closedLinkDown takes that a switch port has no link: if that is not from being closed,
// the cable was pulled, or the host is off.
func (c *Core) closedLinkDown(sp topo.PortID) {
	place := c.topo.PlaceOf(sp)
	if was, closed := c.refusals.closed[place]; closed && c.now.Sub(was.at) > closedSettles {
		delete(c.refusals.closed, place)
		c.faults.Clear(fault.Key{Kind: fault.KeyRefused, Place: place})
	}
}

// refusing lists for views the adapters whose packets are to be counted.
func (c *Core) refusing() (out []RefusingPort) {
	for p, r := range c.refusals.ports {
		if !r.stopped && c.mayRefuse(p) {
			sw := c.topo.Node(c.ports[c.topo.Peer(p)].node).FirstPort
			out = append(out, RefusingPort{GUID: c.topo.GUIDOf(p), Place: c.topo.PlaceOf(p), Switch: sw})
		}
	}
	slices.SortFunc(out, func(a, b RefusingPort) int { return cmp.Compare(a.GUID, b.GUID) })
	return out[:min(len(out), maxRefused)]
}
