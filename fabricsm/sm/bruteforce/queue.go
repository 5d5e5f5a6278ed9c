package bruteforce

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// noticesAtOnce is how many notices are read for one reason.
const noticesAtOnce = 32

// queue is what is known of the queue of notices of an end port.
type queue struct {
	more   bool // it is looked at again soon: the last notice proved something, or was old
	left   int  // notices that may be read before there is another reason to
	begun  bool // toggle is that of the last notice
	toggle bool
	taking *mad.Notice // to be taken away, nil: none
}

// Next says when the queue of a device is to be asked again.
type Next uint8

// When a queue is to be asked again.
const (
	Never Next = iota // not before there is another reason
	Now
	Later
)

// ReadQueue begins to read the notices of a device that was shown wrong keys. It reports whether they prove something.
func (d *Detector) ReadQueue(p topo.PortID) bool {
	if !d.fabric.VouchesFor(d.topo.Port(p).Node) {
		return false
	}
	q := d.queues[p]
	if q == nil {
		q = &queue{more: true}
		d.queues[p] = q
	}
	q.left = noticesAtOnce
	return true
}

// NextNotice returns the notice of a device that is to be taken away; nil: the oldest is to be read. It reports false if no
// request is due.
func (d *Detector) NextNotice(p topo.PortID) (taking *mad.Notice, due bool) {
	q := d.queues[p]
	if q == nil || q.left <= 0 {
		return nil, false
	}
	if taking, q.taking = q.taking, nil; taking == nil {
		q.left--
	}
	return taking, true
}

// RecordTaken records that a device has taken its oldest notice away.
func (d *Detector) RecordTaken(p topo.PortID) Next {
	if d.queues[p] == nil {
		return Never
	}
	return Now
}

// RecordNotice records the oldest notice of a device; data is the attribute that it was decoded from. A notice that the
// device shows again is not counted again.
func (d *Detector) RecordNotice(p topo.PortID, n *mad.Notice, data []byte) Next {
	q := d.queues[p]
	if q == nil {
		return Never
	}
	if n.Count == 0 || n.Type == mad.NoticeEmpty {
		q.left, q.begun, q.toggle = 0, true, !n.Toggle
		if q.more {
			q.left, q.more = noticesAtOnce, false
			return Later
		}
		return Never
	}
	if !q.begun || n.Toggle != q.toggle {
		q.begun, q.toggle = true, n.Toggle
		if n.IsGeneric && n.TrapNumber == mad.TrapBadMKey {
			var bad mad.Trap256
			q.more = mad.Decode(data, &bad) == nil && d.checkMKey(p, &bad) || q.more
		}
	}
	q.taking = n
	return Now
}

// Forget forgets what was read of a port that goes, or whose notices cannot be read.
func (d *Detector) Forget(p topo.PortID) { delete(d.queues, p) }
