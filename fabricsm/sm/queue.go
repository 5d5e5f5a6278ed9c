package sm

import "portcullis/fabricsm/topo"

// class is a kind of work on one node or one port, in order of urgency.
type class uint8

const (
	clsRoot   class = iota // node: NodeInfo over no hop, the beginning of everything
	clsSwitch              // node: SwitchInfo, read and write
	clsInfo                // port: read PortInfo. Before probes: a switch that shows all its cables is not asked from the far side, too.
	clsProbe               // port: NodeInfo of the device at the other end of the cable
	clsSMInfo              // port: SMInfo of another subnet manager
	clsPKey                // port: P_Key table, read and write
	clsLFT                 // node: linear forwarding table, read and write
	clsSLtoVL              // port: SL-to-VL tables, read and write
	clsSet                 // port: write PortInfo
	clsDesc                // node: NodeDescription
	clsMFT                 // node: multicast forwarding table, read and write
	clsGUID                // port: GUIDInfo, read and write
	clsVLArb               // port: VL arbitration tables, read and write
	clsVendor              // port: MlnxExtendedPortInfo, see fdr10.go
	clsNotice              // port: Notice, read and taken away, see guessing.go
	numClasses

	// urgent comes before all classes: a P_Key is to be taken away.
	urgent = 0
	levels = 1 + int(numClasses)
)

func (cl class) onNode() bool {
	return cl == clsRoot || cl == clsSwitch || cl == clsLFT || cl == clsDesc || cl == clsMFT
}

// discovers reports work that may find nodes or links.
func (cl class) discovers() bool { return cl <= clsProbe }

// ref names one piece of work: a class and a node or port id.
type ref struct {
	class class
	id    int32
}

// keepRing is how much memory, in entries, an empty list keeps.
const keepRing = 1024

// again empties a list so that its memory is used again, unless it grew in one of
// the few moments at which everything changes.
func again[T any](s []T) []T {
	if cap(s) > keepRing {
		return nil
	}
	return s[:0]
}

// ring is a queue in chunks: it grows without copying, and frees memory while it is emptied.
type ring struct {
	first, last *chunk
	head, tail  int // next to be taken from the first, and put into the last
	size        int
	spare       *chunk // emptied last
}

// chunk fills a page of memory.
type chunk struct {
	refs [511]ref
	next *chunk
}

func (r *ring) push(x ref) {
	if r.last == nil || r.tail == len(r.last.refs) {
		r.grow()
	}
	r.last.refs[r.tail] = x
	r.tail++
	r.size++
}

// grow puts a chunk at the end.
func (r *ring) grow() {
	c := r.spare
	if r.spare = nil; c == nil {
		c = new(chunk)
	}
	if r.tail = 0; r.last == nil {
		r.first, r.last, r.head = c, c, 0
		return
	}
	r.last.next, r.last = c, c
}

func (r *ring) pop() (x ref, ok bool) {
	if r.size == 0 {
		return ref{}, false
	}
	if r.head == len(r.first.refs) {
		r.spare = r.first
		r.first, r.head = r.first.next, 0
		r.spare.next = nil
	}
	x = r.first.refs[r.head]
	r.head++
	if r.size--; r.size == 0 {
		r.head, r.tail = 0, 0 // one chunk is left
	}
	return x, true
}

// queue holds the work to be looked at. An entry whose item is no longer
// marked is void: it was done at a higher level.
type queue struct {
	rings [levels]ring
	size  int // entries, void ones included
	find  int // entries of classes that discover
}

func (q *queue) push(level int, x ref) {
	q.rings[level].push(x)
	q.size++
	if x.class.discovers() {
		q.find++
	}
}

func (q *queue) pop() (ref, bool) {
	if q.size == 0 {
		return ref{}, false
	}
	for i := range q.rings {
		if x, ok := q.rings[i].pop(); ok {
			q.size--
			if x.class.discovers() {
				q.find--
			}
			return x, true
		}
	}
	return ref{}, false
}

// marks is the state of an item by class, one bit each.
type marks struct {
	queued uint16 // stands in the queue
	busy   uint16 // a request is out
	again  uint16 // to be looked at when that request has ended
	held   uint16 // over its allowance: waits for timerHold
}

func (c *Core) marksOf(x ref) *marks {
	if x.class.onNode() {
		return &c.nodes[x.id].marks
	}
	return &c.ports[x.id].marks
}

// mark has an item looked at soon.
func (c *Core) mark(x ref) { c.markAt(1+int(x.class), x) }

func (c *Core) markAt(level int, x ref) {
	m, bit := c.marksOf(x), uint16(1)<<x.class
	switch {
	case m.held&bit != 0 && level != urgent:
	case m.busy&bit != 0:
		m.again |= bit
	case m.queued&bit == 0 || level == urgent:
		m.queued |= bit
		c.q.push(level, x)
	}
}

// asked reports whether a request for a piece of work of a port is out.
func (c *Core) asked(cl class, p topo.PortID) bool { return c.ports[p].busy&(1<<cl) != 0 }

func (c *Core) markNode(cl class, n topo.NodeID) { c.mark(ref{cl, int32(n)}) }
func (c *Core) markPort(cl class, p topo.PortID) { c.mark(ref{cl, int32(p)}) }

// pump takes work from the queue while the window has room.
func (c *Core) pump() {
	c.resumeThrottled()
	for c.wire.room(&c.cfg) {
		c.readLevel()
		x, ok := c.q.pop()
		if !ok {
			return
		}
		m, bit := c.marksOf(x), uint16(1)<<x.class
		target, ok := c.targetOf(x)
		if m.queued&bit == 0 || m.busy&bit != 0 {
			if m.queued&m.busy&bit != 0 { // asked in the meantime, out of its turn
				m.queued, m.again = m.queued&^bit, m.again|bit
			}
			c.passTurn(target, ok)
			continue
		}
		if !ok {
			m.queued &^= bit
			continue
		}
		if c.throttle(x, target) {
			c.passTurn(target, ok)
			continue
		}
		if target != topo.None && c.cfg.MKey.on() {
			if p, held := c.holds(x, target); held {
				c.awaitKey(x, p)
				c.passTurn(target, ok)
				continue
			}
		}
		if target != topo.None && c.awaitsLID(x, target) {
			c.holdForLID(x, target)
			c.passTurn(target, ok)
			continue
		}
		if target != topo.None && int(c.nodes[target].out) >= c.cfg.PerTarget {
			n := &c.nodes[target]
			n.parked = append(n.parked, x)
			continue
		}
		m.queued &^= bit
		if c.overdrawn(x) {
			c.passTurn(target, ok)
			continue
		}
		if target == topo.None {
			c.work(x)
			continue
		}
		before := c.nodes[target].out
		c.work(x)
		if n := &c.nodes[target]; n.out == before {
			c.unpark(n) // its turn was not used
		}
	}
}

// passTurn lets the next work that waits for a node go ahead, after work that sent nothing. That work may have used the
// turn of a node, and nothing else would pass it on.
func (c *Core) passTurn(target topo.NodeID, ok bool) {
	if ok && target != topo.None {
		c.unpark(&c.nodes[target])
	}
}

// targetOf returns the node that a piece of work is to ask, None if it is not known yet. Work on nodes that are gone or
// silent is dropped: all work of a node is marked when it comes back.
func (c *Core) targetOf(x ref) (topo.NodeID, bool) {
	switch {
	case x.class == clsRoot, x.class == clsProbe:
		return topo.None, true
	case x.class.onNode():
		n := &c.nodes[x.id]
		return topo.NodeID(x.id), n.alive && !n.silent
	default:
		id := c.ports[x.id].node
		return id, c.nodes[id].alive && !c.nodes[id].silent
	}
}

// unpark puts one piece of work back that waited for its node.
func (c *Core) unpark(n *node) {
	for len(n.parked) > 0 && int(n.out) < c.cfg.PerTarget {
		x := n.parked[0]
		n.parked = n.parked[1:]
		if len(n.parked) == 0 {
			n.parked = nil
		}
		if m := c.marksOf(x); m.queued&(1<<x.class) != 0 {
			c.q.push(1+int(x.class), x)
			return
		}
	}
}

// work looks at one item and sends the next request for it, if any.
func (c *Core) work(x ref) {
	switch x.class {
	case clsRoot:
		c.workRoot()
	case clsSwitch:
		c.workSwitch(topo.NodeID(x.id))
	case clsInfo:
		c.workInfo(topo.PortID(x.id))
	case clsProbe:
		c.workProbe(topo.PortID(x.id))
	case clsSMInfo:
		c.workSMInfo(topo.PortID(x.id))
	case clsPKey:
		c.workPKeys(topo.PortID(x.id))
	case clsLFT:
		c.workLFT(topo.NodeID(x.id))
	case clsSLtoVL:
		c.workSLtoVL(topo.PortID(x.id))
	case clsSet:
		c.workSet(topo.PortID(x.id))
	case clsDesc:
		c.workDescription(topo.NodeID(x.id))
	case clsGUID:
		c.workAliases(topo.PortID(x.id))
	case clsMFT:
		c.workMFT(topo.NodeID(x.id))
	case clsVLArb:
		c.workVLArb(topo.PortID(x.id))
	case clsVendor:
		c.workVendor(topo.PortID(x.id))
	case clsNotice:
		c.workNotice(topo.PortID(x.id))
	}
}
