package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// ref names an agent.
type ref struct {
	dev   int32
	class uint8
}

// fifo is a queue of devices, in which each stands at most once.
type fifo struct {
	list []int32
	head int
}

func (q *fifo) push(dev int32) { q.list = append(q.list, dev) }

func (q *fifo) pop() (int32, bool) {
	if q.head == len(q.list) {
		return 0, false
	}
	dev := q.list[q.head]
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > 1024 && 2*q.head > len(q.list) {
		q.list, q.head = q.list[:copy(q.list, q.list[q.head:])], 0
	}
	return dev, true
}

// queue has an agent worked on.
func (m *Manager) queue(x ref) {
	d, a, c := m.at(x)
	if a.queued || a.out || !d.up {
		return
	}
	a.queued = true
	if a.tries > 0 {
		c.again.push(x.dev)
	} else {
		c.first.push(x.dev)
	}
}

// pump works on agents while the windows have room.
func (m *Manager) pump() {
	if !m.master || !m.ready {
		return
	}
	for i := range m.classes {
		c := &m.classes[i]
		for c.out < c.cfg.Window {
			dev, ok := c.first.pop()
			if !ok {
				if dev, ok = c.again.pop(); !ok {
					break
				}
			}
			x := ref{dev, uint8(i)}
			m.devices[dev].agents[i].queued = false
			m.work(x)
		}
	}
}

// request is one that is out.
type request struct {
	x    ref
	op   op
	mod  uint32
	life uint32 // of the agent
}

// send puts a request of an agent into the output, and returns its attribute to be filled in.
func (m *Manager) send(x ref, o op, lid ib.LID, h mad.Header, key ib.MKey) []byte {
	_, a, c := m.at(x)
	id, r := m.wire.Take()
	*r = request{x: x, op: o, mod: h.Mod, life: a.life}
	a.out = true
	c.out++
	h.Class, h.ClassVersion, h.TID = c.mad.Class, c.mad.Version, ib.TID(id)
	m.out.Send = append(m.out.Send, sm.Request{ID: sm.RequestID(id), LID: lid})
	p := &m.out.Send[len(m.out.Send)-1].MAD
	p.SetHeader(h)
	p.SetMKey(key)
	return c.mad.Attribute(p)
}
