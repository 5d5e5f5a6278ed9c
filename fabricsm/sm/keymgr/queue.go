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

// A request id is a slot number and a generation, so that a late answer to an
// earlier request of the slot is not taken for the present one.
const (
	slotBits = 12
	slotMask = 1<<slotBits - 1
)

// request is one that is out.
type request struct {
	id   sm.RequestID // 0: the slot is free
	x    ref
	op   op
	mod  uint32
	life uint32 // of the agent
}

// wire is the requests that are out: at most one for each agent, and no more than
// the windows of the classes together.
type wire struct {
	slots []request
	free  []uint16
	gen   uint32
}

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
	*r = request{id: sm.RequestID(w.gen<<slotBits | uint32(slot))}
	return r
}

// end frees the slot of a request that is out.
func (w *wire) end(id sm.RequestID) (request, bool) {
	slot := int(id & slotMask)
	if id == 0 || slot >= len(w.slots) || w.slots[slot].id != id {
		return request{}, false
	}
	r := w.slots[slot]
	w.slots[slot] = request{}
	w.free = append(w.free, uint16(slot))
	return r, true
}

// send puts a request of an agent into the output, and returns its attribute to be filled in.
func (m *Manager) send(x ref, o op, lid ib.LID, h mad.Header, key ib.MKey) []byte {
	_, a, c := m.at(x)
	r := m.wire.take()
	r.x, r.op, r.mod, r.life = x, o, h.Mod, a.life
	a.out = true
	c.out++
	h.Class, h.ClassVersion, h.TID = c.mad.Class, c.mad.Version, ib.TID(r.id)
	m.out.Send = append(m.out.Send, sm.Request{ID: r.id, LID: lid})
	p := &m.out.Send[len(m.out.Send)-1].MAD
	p.SetHeader(h)
	p.SetMKey(key)
	return c.mad.Attribute(p)
}
