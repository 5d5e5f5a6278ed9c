package sm

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Detection of hosts that guess keys. A place is acted upon only if two things are proven: that a wrong key was shown, and
// the path by which it came. No trap proves either, and a LID proves no path. These do:
//
//   - a notice that a switch of the declared topology has queued, read with a Get
//     under its key. It shows the path of a directed route, which the switches wrote;
//   - a command with a wrong SM_Key that came to ourselves by a directed route.
//
// This proof is not beyond doubt: an SMP whose hop pointer is already past its hop count is taken by the first node that
// gets it (IBTA volume 1, C14-9), with a return path that its sender made up, and neither shows afterwards. So by default a
// place is only reported. An operator whose devices discard such SMPs may have the place switched off.
//
// Adapters are not believed, since their hosts may have changed them. Paths over a switch that the declared topology does
// not vouch for are not believed either. Most devices of today queue no notices: a host that tries M_Keys of those is only
// reported, see KeyGuessing, and an operator has to decide. A host counts as guessing when it shows one device another key
// than before; a tool with no key, or with an old one for each device, does not.

// trial is the wrong key that a place showed to a device last.
type trial struct {
	place  ib.Place
	victim topo.PortID
}

type tried struct {
	key uint64
	at  time.Time
}

// noticeReading is what is known of the queue of notices of an end port.
type noticeReading struct {
	more   bool // it is looked at again soon: the last notice proved something, or was old
	left   int  // notices that may be read before there is another reason to
	begun  bool // toggle is that of the last notice
	toggle bool
	taking *mad.Notice // to be taken away, nil: none
}

// guessing is the known state of hosts that try keys.
type guessing struct {
	trials map[trial]tried
	queues map[topo.PortID]*noticeReading
}

const (
	// maxTrials bounds the trials that are remembered.
	maxTrials = 4096
	// noticesAtOnce is how many notices are read for one reason.
	noticesAtOnce = 32
)

func newGuessing() guessing {
	return guessing{trials: make(map[trial]tried), queues: make(map[topo.PortID]*noticeReading)}
}

// vouches reports whether the notices of a switch prove something: the declared topology has the switch where it is.
func (c *Core) vouches(id topo.NodeID) bool {
	return c.law.on() && c.topo.Node(id).Type == ib.NodeSwitch && c.law.judge.Trusts(c.nodeGUID(id))
}

// readNotices reads what a device has noticed, which was shown wrong keys.
func (c *Core) readNotices(p topo.PortID) {
	if !c.vouches(c.ports[p].node) || !c.ports[p].info.CapabilityMask.Has(mad.IsNoticeSupported) {
		return
	}
	q := c.guessing.queues[p]
	if q == nil {
		q = &noticeReading{more: true}
		c.guessing.queues[p] = q
	}
	q.left = noticesAtOnce
	c.markPort(clsNotice, p)
}

// workNotice reads the oldest notice of a device, or takes it away.
func (c *Core) workNotice(p topo.PortID) {
	q, x, id := c.guessing.queues[p], ref{clsNotice, int32(p)}, c.ports[p].node
	if q == nil || q.left <= 0 || !c.writing() {
		return
	}
	c.auditing = true // nothing that is wanted depends on it
	defer func() { c.auditing = false }()
	if q.taking == nil {
		q.left--
		c.ask(x, id, mad.MethodGet, mad.AttrNotice, 0)
		return
	}
	m := c.ask(x, id, mad.MethodSet, mad.AttrNotice, 0)
	c.encode(mad.Encode(m.Data(), q.taking))
	q.taking = nil
}

// gotNotice takes a notice of a device. One that the device shows again is not
// counted again.
func (c *Core) gotNotice(p topo.PortID, r *request, m *mad.MAD, status mad.Status) {
	var n mad.Notice
	q := c.guessing.queues[p]
	if q == nil || status != mad.StatusOK || mad.Decode(m.Data(), &n) != nil {
		delete(c.guessing.queues, p)
		return
	}
	if r.method == mad.MethodSet {
		c.markPort(clsNotice, p)
		return
	}
	if n.Count == 0 || n.Type == mad.NoticeEmpty {
		q.left, q.begun, q.toggle = 0, true, !n.Toggle
		if q.more {
			q.left, q.more = noticesAtOnce, false
			c.after(checkPause, timerRetry, ref{clsNotice, int32(p)})
		}
		return
	}
	if !q.begun || n.Toggle != q.toggle {
		q.begun, q.toggle = true, n.Toggle
		if n.IsGeneric && n.TrapNumber == mad.TrapBadMKey {
			var bad mad.Trap256
			c.decode(mad.Decode(m.Data(), &bad))
			q.more = c.guessedBy(p, &bad) || q.more
		}
	}
	q.taking = &n
	c.markPort(clsNotice, p)
}

// guessedBy takes a switch's notice of an SMP with a wrong M_Key, and reports whether it proves which host sent the SMP.
func (c *Core) guessedBy(p topo.PortID, n *mad.Trap256) bool {
	hops := int(n.DRHopCount)
	if !n.DRNotice || n.DRPathTruncated || hops >= len(n.DRReturnPath) || n.DrSLID.IsUnicast() || n.LID.IsUnicast() {
		return false // part of its way is not known, or was routed by LID
	}
	back := slices.Clone(n.DRReturnPath[1 : hops+1])
	slices.Reverse(back)
	return c.showedKey(c.vouchedEnd(c.ports[p].node, back), p, n.MKey.Reveal())
}

// guessedSMKey takes a command to us with a wrong SM_Key, by the way it came.
func (c *Core) guessedSMKey(way *mad.Route, key ib.SMKey) {
	back := make([]ib.PortNum, 0, way.Len())
	for i := way.Len() - 1; i >= 0; i-- {
		back = append(back, way.At(i))
	}
	c.showedKey(c.vouchedEnd(c.root, back), c.own(), key.Reveal())
}

// vouchedEnd walks back along the ports by which a directed route came into each node, the last first, and returns the
// adapter that it began at. It returns None unless the declared topology has that adapter where it is, and all switches on
// the way. Entries beyond the adapter are its own invention. Our own adapter is vouched for by being ours.
func (c *Core) vouchedEnd(at topo.NodeID, back []ib.PortNum) topo.PortID {
	for i, num := range back {
		p := c.topo.PortOf(at, num)
		if p == topo.None || !c.probes(p) || !c.vouches(at) && (i > 0 || at != c.root) {
			return topo.None
		}
		end := c.peer(p)
		if end == topo.None {
			return topo.None
		}
		if at = c.ports[end].node; c.topo.Node(at).Type != ib.NodeSwitch {
			if c.lawful(c.placeOf(end)) {
				return end
			}
			return topo.None
		}
	}
	return topo.None
}

// showedKey counts a wrong key that an adapter showed to a device, and reports whether
// it is one that may count.
func (c *Core) showedKey(from, victim topo.PortID, key uint64) bool {
	if key == 0 || from == topo.None || from == c.own() || c.listed(from) {
		return false // one that we work with may have to try two keys on each device
	}
	g, place := &c.guessing, c.placeOf(from)
	name := trial{place, victim}
	was, known := g.trials[name]
	if !known && len(g.trials) >= maxTrials {
		clear(g.trials)
	}
	g.trials[name] = tried{key, c.now}
	if known && was.key != key && c.now.Sub(was.at) < c.cfg.Health.Guessing.Window {
		c.strike(place, c.nodeGUID(c.ports[from].node), Guessing)
	}
	return true
}

// forgetGuessing forgets what was read of a port that goes.
func (c *Core) forgetGuessing(p topo.PortID) { delete(c.guessing.queues, p) }
