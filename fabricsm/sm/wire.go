package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// A request id is a slot number and a generation, so that a late answer to an
// earlier request of the slot is not taken for the present one.
const (
	slotBits = 12
	maxSlots = 1 << slotBits
	slotMask = maxSlots - 1
)

// request is an SMP that is out.
type request struct {
	id     RequestID // 0: the slot is free
	ref    ref
	node   topo.NodeID // target, None for one not known yet
	epoch  uint32      // of the target, or of the port's node
	method mad.Method
	attr   mad.AttrID
	mod    uint32
	sent   time.Time
	late   bool // no longer counts against the window
	audit  bool // part of the background audit
}

// wire is the window of requests.
type wire struct {
	slots []request
	free  []uint16
	gen   uint32
	order []RequestID // by time of sending; head is the oldest that may not be late yet
	head  int
	out   int // requests out
	fresh int // of which count against the window
	find  int // fresh ones of classes that discover

	sent map[sentKey]uint64
	sets uint64
	all  uint64
}

type sentKey struct {
	method mad.Method
	attr   mad.AttrID
}

// room reports whether one more request may be sent. Late ones do not count,
// so that silent nodes cannot stall the others; but they are bounded.
func (w *wire) room(cfg *Config) bool { return w.fresh < cfg.Window && w.out < 4*cfg.Window }

func (w *wire) take() *request {
	if len(w.free) == 0 {
		w.slots = append(w.slots, request{})
		w.free = append(w.free, uint16(len(w.slots)-1))
	}
	slot := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	w.gen = (w.gen + 1) & (1<<(32-slotBits) - 1)
	if w.gen == 0 {
		w.gen = 1
	}
	r := &w.slots[slot]
	*r = request{id: RequestID(w.gen<<slotBits | uint32(slot))}
	w.out++
	return r
}

// end frees the slot of a request that is out.
func (w *wire) end(id RequestID) (request, bool) {
	slot := int(id & slotMask)
	if id == 0 || slot >= len(w.slots) || w.slots[slot].id != id {
		return request{}, false
	}
	r := w.slots[slot]
	w.slots[slot] = request{}
	w.free = append(w.free, uint16(slot))
	w.out--
	w.notFresh(&r)
	return r, true
}

func (w *wire) notFresh(r *request) {
	if r.late {
		return
	}
	r.late = true
	w.fresh--
	if r.ref.class.discovers() {
		w.find--
	}
}

// age marks requests late and returns the time at which the next will be.
func (w *wire) age(now time.Time, late time.Duration) (next time.Time) {
	for ; w.head < len(w.order); w.head++ {
		id := w.order[w.head]
		r := &w.slots[id&slotMask]
		if r.id != id || r.late {
			continue
		}
		if due := r.sent.Add(late); due.After(now) {
			return due
		}
		w.notFresh(r)
	}
	w.order, w.head = w.order[:0], 0
	return time.Time{}
}

// trim drops the part of order that was dealt with.
func (w *wire) trim() {
	if w.head > 4*maxSlots {
		w.order = append(w.order[:0], w.order[w.head:]...)
		w.head = 0
	}
}

// ask makes a request to a known node and returns its MAD, for the attribute of a Set to be written.
func (c *Core) ask(x ref, n topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	m := c.send(x, n, c.nodes[n].epoch, method, attr, mod, c.routeFor(x, n))
	c.nodes[n].out++
	c.nodes[n].written = c.nodes[n].written || method == mad.MethodSet
	return m
}

// routeFor returns the route for a piece of work. Work on a CA port goes in by that very port: for some attributes the port
// asked is the port entered by.
func (c *Core) routeFor(x ref, n topo.NodeID) *mad.Route {
	if peer := c.ownEntry(x); peer != topo.None {
		if r, ok := c.routeTo(c.ports[peer].node).Append(c.ports[peer].num); ok {
			return &r
		}
	}
	return c.routeTo(n)
}

// ownEntry returns the switch port in front of the CA port that a piece of work is about, if the request goes through that
// one; None if it goes the way of the node.
func (c *Core) ownEntry(x ref) topo.PortID {
	if x.class.onNode() || x.class == clsProbe {
		return topo.None
	}
	p := topo.PortID(x.id)
	peer := c.topo.Peer(p)
	if p == c.rootPort || peer == topo.None || peer == c.nodes[c.ports[p].node].up || c.topo.IsExternal(p) || !c.topo.IsExternal(peer) {
		return topo.None
	}
	return peer
}

// send puts a request into the output and returns its MAD for the attribute to be filled in.
func (c *Core) send(x ref, n topo.NodeID, epoch uint32, method mad.Method, attr mad.AttrID, mod uint32, route *mad.Route) *mad.MAD {
	r := c.wire.take()
	r.ref, r.node, r.epoch = x, n, epoch
	r.method, r.attr, r.mod, r.sent = method, attr, mod, c.now
	r.audit = c.auditing
	if x.class != clsLFT && x.class != clsMFT {
		c.marksOf(x).busy |= 1 << x.class
	}
	if len(c.failures) > 0 && c.failures[x].tries > 0 && x.class != clsSMInfo {
		r.late = true // a repetition delays no other work
		c.tally.Repeated++
	} else {
		c.wire.fresh++
		if x.class.discovers() {
			c.wire.find++
		}
		c.wire.order = append(c.wire.order, r.id)
	}
	c.count(r)
	c.spend(x)

	c.out.Send = append(c.out.Send, Request{ID: r.id, LID: ib.PermissiveLID})
	m := &c.out.Send[len(c.out.Send)-1].MAD
	h := mad.Header{Method: method, TID: ib.TID(r.id), Attr: attr, Mod: mod}
	mad.NewSMP(m, h, route, c.headerKey(x, n))
	return m
}

func (c *Core) count(r *request) {
	if !r.audit || r.method == mad.MethodSet && r.ref.class != clsNotice {
		c.disturb()
	}
	c.wire.sent[sentKey{r.method, r.attr}]++
	c.wire.all++
	if r.method == mad.MethodSet {
		c.wire.sets++
	}
}

// reply takes the end of a request.
func (c *Core) reply(in *Reply) {
	r, ok := c.wire.end(in.ID)
	if !ok {
		c.dropped++
		return
	}
	c.tally.noteReply(in.Outcome, &in.MAD)
	if r.node != topo.None && c.nodes[r.node].epoch == r.epoch {
		n := &c.nodes[r.node]
		n.out--
		defer c.unpark(n)
	}
	if !c.current(&r) {
		return
	}
	m := c.marksOf(r.ref)
	bit := uint16(1) << r.ref.class
	m.busy &^= bit
	again := m.again&bit != 0
	m.again &^= bit

	outcome := in.Outcome
	if outcome == Answered && !r.answeredBy(&in.MAD) {
		c.dropped++
		outcome = TimedOut
	}
	c.auditing = r.audit
	c.lids.spoken = c.lids.spoken || r.ref.class == clsLFT || r.ref.class == clsSwitch
	switch {
	case outcome != Answered:
		c.failed(&r, outcome)
	case in.MAD.Status().IsBusy():
		c.failed(&r, Undelivered)
	default:
		c.answered(&r, &in.MAD)
	}
	c.auditing = false
	if again && c.current(&r) {
		c.mark(r.ref)
	}
}

// current reports whether what a request was about is still there.
func (c *Core) current(r *request) bool {
	switch {
	case r.ref.class == clsRoot:
		return true
	case r.ref.class.onNode():
		return c.nodes[r.ref.id].epoch == r.epoch
	default:
		return c.nodes[c.ports[r.ref.id].node].epoch == r.epoch
	}
}

func (r *request) answeredBy(m *mad.MAD) bool {
	return m.IsSMP() && (!m.IsDR() || m.Returning()) && m.BaseVersion() == 1 && m.Method() == mad.MethodGetResp && m.Attr() == r.attr && m.Mod() == r.mod
}

// answered hands an answer to the code that asked.
func (c *Core) answered(r *request, m *mad.MAD) {
	if len(c.failures) > 0 {
		c.spoke(r, m.Status())
	}
	if r.node != topo.None {
		c.heard(r.node)
	}
	status := m.Status()
	p, n := topo.PortID(r.ref.id), topo.NodeID(r.ref.id)
	switch r.ref.class {
	case clsRoot, clsProbe:
		c.gotNodeInfo(r, m, status)
	case clsSwitch:
		c.gotSwitchInfo(n, r, m, status)
	case clsInfo:
		c.gotPortInfo(p, m, status)
	case clsSMInfo:
		c.gotSMInfo(p, r, m, status)
	case clsPKey:
		c.gotPKeys(p, r, m, status)
	case clsLFT:
		c.gotLFT(n, r, m, status)
	case clsGUID:
		c.gotGUIDs(p, r, m, status)
	case clsMFT:
		c.gotMFT(n, r, m, status)
	case clsVLArb:
		c.gotVLArb(p, r, m, status)
	case clsVendor:
		c.gotVendor(r, m, status)
	case clsNotice:
		c.gotNotice(p, r, m, status)
	case clsSLtoVL:
		c.gotSLtoVL(p, r, m, status)
	case clsSet:
		c.gotSet(p, r, m, status)
	case clsDesc:
		c.gotDescription(n, m, status)
	}
}
