package sim

import "portcullis/fabricsm/mad"

// noticeQueue keeps the notices of a device until its manager has read them (IBTA volume 1, 13.4.9). A Get of Notice
// returns the oldest, and a Set with the toggle of that one removes it. When it is full, the newest are lost.
type noticeQueue struct {
	list   [][mad.DataSize]byte
	toggle bool // of the oldest
}

// noticed queues a notice about an end port, if the device has a queue.
func (p *port) noticed(data *[mad.DataSize]byte) {
	if end := p.endPort(); len(end.notices.list) < p.node.model().NoticeQueue {
		end.notices.list = append(end.notices.list, *data)
	}
}

// notice answers a Get or Set of Notice.
func (p *port) notice(m *mad.MAD, set bool) mad.Status {
	if p.node.model().NoticeQueue == 0 {
		return mad.StatusUnsupportedMethodAttr
	}
	q := &p.endPort().notices
	if set {
		var n mad.Notice
		must(mad.Decode(m.Data(), &n))
		if n.Toggle == q.toggle && len(q.list) > 0 {
			q.list, q.toggle = q.list[1:], !q.toggle
		}
	}
	head := mad.Notice{NoticeHeader: mad.NoticeHeader{Type: mad.NoticeEmpty}}
	if len(q.list) > 0 {
		must(mad.Decode(q.list[0][:], &head))
	}
	head.Toggle, head.Count = q.toggle, uint16(len(q.list))
	clear(m.Data())
	must(mad.Encode(m.Data(), &head))
	return mad.StatusOK
}
