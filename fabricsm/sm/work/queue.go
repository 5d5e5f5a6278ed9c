package work

import (
	"math/bits"

	"portcullis/fabricsm/topo"
)

// Queue holds the work to be looked at, by urgency. The zero Queue is empty.
//
// Marks say which work of a node or port waits. An entry of the queue whose work is no longer marked is void: it was done
// at a higher level, or is needed no longer.
type Queue struct {
	rings  [levels]Ring
	size   int // entries, void ones included
	find   int // entries of classes that discover
	wanted int // marks of these classes
	nodes  []marks
	ports  []marks
}

// marks is the state of a node or port by class, one bit each.
type marks struct {
	queued uint16 // stands in the queue
	busy   uint16 // a request is out
	again  uint16 // to be looked at when that request has ended
	held   uint16 // over its allowance: waits until it is freed
}

// fewNodes and fewPorts are what there is room for at least.
const (
	fewNodes = 64
	fewPorts = 128
)

// Extend makes room for nodes and ports.
func (q *Queue) Extend(nodes, ports int) {
	q.nodes = topo.ExtendNodes(q.nodes, max(nodes, fewNodes))
	q.ports = topo.ExtendPorts(q.ports, max(ports, fewPorts))
}

// ForgetNode removes the marks of a node, but not those of its ports.
func (q *Queue) ForgetNode(id topo.NodeID) { q.forget(&q.nodes[id]) }

// ForgetPort removes the marks of a port.
func (q *Queue) ForgetPort(id topo.PortID) { q.forget(&q.ports[id]) }

func (q *Queue) forget(m *marks) {
	q.unmark(m, m.queued)
	*m = marks{}
}

// mark sets a mark, and unmark clears marks.
func (q *Queue) mark(m *marks, bit uint16) {
	if m.queued&bit == 0 && bit&discovering != 0 {
		q.wanted++
	}
	m.queued |= bit
}

func (q *Queue) unmark(m *marks, some uint16) {
	q.wanted -= bits.OnesCount16(m.queued & some & discovering)
	m.queued &^= some
}

func (q *Queue) marksOf(x Ref) *marks {
	if x.Class.IsOnNode() {
		return &q.nodes[x.ID]
	}
	return &q.ports[x.ID]
}

// MarkNode has a node looked at soon.
func (q *Queue) MarkNode(cl Class, id topo.NodeID) { q.Mark(OnNode(cl, id)) }

// MarkPort has a port looked at soon.
func (q *Queue) MarkPort(cl Class, id topo.PortID) { q.Mark(OnPort(cl, id)) }

// Mark has work looked at soon.
func (q *Queue) Mark(x Ref) {
	m, bit := q.marksOf(x), x.Class.bit()
	switch {
	case m.held&bit != 0:
	case m.busy&bit != 0:
		m.again |= bit
	case m.queued&bit == 0:
		q.mark(m, bit)
		q.push(x.Class.level(), x)
	}
}

// MarkUrgent has work looked at before all other, whether it waits already, or is held.
func (q *Queue) MarkUrgent(x Ref) {
	m, bit := q.marksOf(x), x.Class.bit()
	if m.busy&bit != 0 {
		m.again |= bit
		return
	}
	q.mark(m, bit)
	q.push(urgent, x)
}

// Unmark drops work that waits.
func (q *Queue) Unmark(x Ref) { q.unmark(q.marksOf(x), x.Class.bit()) }

// IsAsked reports whether a request for work on a port is out.
func (q *Queue) IsAsked(cl Class, id topo.PortID) bool { return q.ports[id].busy&cl.bit() != 0 }

// Hold keeps work from being marked until Free.
func (q *Queue) Hold(x Ref) { q.marksOf(x).held |= x.Class.bit() }

// Free ends Hold.
func (q *Queue) Free(x Ref) { q.marksOf(x).held &^= x.Class.bit() }

// Begin records that a request for work goes out.
func (q *Queue) Begin(x Ref) { q.marksOf(x).busy |= x.Class.bit() }

// End records that the request for work has ended. It reports whether the work was marked since Begin.
func (q *Queue) End(x Ref) (again bool) {
	m, bit := q.marksOf(x), x.Class.bit()
	again = m.again&bit != 0
	m.busy &^= bit
	m.again &^= bit
	return again
}

func (q *Queue) push(level int, x Ref) {
	q.rings[level].Push(x)
	q.size++
	if x.Class.Discovers() {
		q.find++
	}
}

// Pop takes the most urgent entry out, whose work stays marked. It reports false if the queue is empty.
func (q *Queue) Pop() (Ref, bool) {
	if q.size == 0 {
		return Ref{}, false
	}
	for i := range q.rings {
		if x, ok := q.rings[i].Pop(); ok {
			q.size--
			if x.Class.Discovers() {
				q.find--
			}
			return x, true
		}
	}
	return Ref{}, false
}

// IsVoid reports whether an entry that Pop returned is not to be worked on. Work that was asked for in the meantime, out of
// its turn, is marked again when that request has ended.
func (q *Queue) IsVoid(x Ref) bool {
	m, bit := q.marksOf(x), x.Class.bit()
	if m.queued&m.busy&bit != 0 {
		q.unmark(m, bit)
		m.again |= bit
		return true
	}
	return m.queued&bit == 0
}

// PutBack puts an entry that Pop returned back at the end of its class, and reports whether its work is still marked.
func (q *Queue) PutBack(x Ref) bool {
	if q.marksOf(x).queued&x.Class.bit() == 0 {
		return false
	}
	q.push(x.Class.level(), x)
	return true
}

// PutBackAll puts back what PutBack does, for a list.
func (q *Queue) PutBackAll(list []Ref) {
	for _, x := range list {
		q.PutBack(x)
	}
}

// IsEmpty reports whether the queue has no entry.
func (q *Queue) IsEmpty() bool { return q.size == 0 }

// MayFind reports whether an entry is of a class that discovers.
func (q *Queue) MayFind() bool { return q.find > 0 }

// WillFind reports whether work of such a class is marked, in an entry or where work waits for its turn, or for a key.
func (q *Queue) WillFind() bool { return q.wanted > 0 }

// Urgent returns how many entries stand before all classes.
func (q *Queue) Urgent() int { return q.rings[urgent].Len() }

// Waiting returns how many entries of a class there are, without urgent ones.
func (q *Queue) Waiting(cl Class) int { return q.rings[cl.level()].Len() }
