package driver

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// An adapter has one queue for all incoming SMPs, and loses those that find it full. So during a flood, answers to this
// manager are lost with the rest. To wait for the timeout of each would make devices appear silent. Requests that may be
// sent twice are then sent again with the same transaction id: the first answer counts. The timeout of all requests is
// three times as long, since a full queue stays full for a while. Requests to another subnet manager are always sent again:
// its adapter may be the flooded one.

const (
	// againAfter is when a request is first sent again, each further time later by half.
	againAfter = 10 * time.Millisecond
	// crowdCount is how many packets that are dropped within crowdTime are a flood. Half of
	// it would not fill the queue of an adapter.
	crowdCount = 256
	crowdTime  = 100 * time.Millisecond
	// crowdLasts is how long after that it counts as going on.
	crowdLasts = time.Second
)

// crowding detects floods by the packets that were dropped.
type crowding struct {
	since time.Time
	count int
	until time.Time
}

// note counts packets that were dropped.
func (c *crowding) note(now time.Time, dropped int) {
	if now.Sub(c.since) >= crowdTime {
		c.since, c.count = now, 0
	}
	if c.count += dropped; c.count >= crowdCount {
		c.until = now.Add(crowdLasts)
	}
}

// repeatable reports whether a request has the same effect when a device takes it twice: one that reads, or that writes
// SwitchInfo or a block of a table. A Set of PortInfo may change the M_Key under which it is sent.
func repeatable(m *mad.MAD) bool {
	switch m.Method() {
	case mad.MethodGet:
		return true
	case mad.MethodSet:
		switch m.Attr() {
		case mad.AttrSwitchInfo, mad.AttrPKeyTable, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrGUIDInfo, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitration:
			return true
		default:
		}
	default:
	}
	return false
}

// again is of a request that is out.
type again struct {
	packet transport.Packet
	at     time.Time // when to send it again; zero: never
	pause  time.Duration
}

// askedManager reports whether another subnet manager was asked.
func (f *flight) askedManager() bool { return f.attr == mad.AttrSMInfo && !f.again.at.IsZero() }

// resends sends requests again that are due, all or only questions to other subnet
// managers, and returns when the next will be.
func (t *timeouts) resends(now time.Time, all bool, send func(transport.Packet)) (next time.Time) {
	for i := range t.flight {
		f := &t.flight[i]
		if f.tid == 0 || f.again.at.IsZero() || !all && !f.askedManager() {
			continue
		}
		if !now.Before(f.again.at) {
			send(f.again.packet)
			f.again.pause += f.again.pause / 2
			f.again.at = now.Add(f.again.pause)
		}
		if next.IsZero() || f.again.at.Before(next) {
			next = f.again.at
		}
	}
	return next
}

// crowded reports whether a flood goes on.
func (g *gate) crowded(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.crowding.until)
}

// resend sends requests again that are due, unless packets still wait for room on the wire.
func (l *loop) resend(waiting int) {
	if l.now.Before(l.again) {
		return
	}
	crowded := l.out.waits() > 0 && l.gate.crowded(l.now)
	if l.out.slack = 0; crowded {
		l.out.slack = 2 * l.out.wait
	}
	if l.again = (time.Time{}); !crowded && l.out.managers == 0 {
		return
	}
	l.again = l.now.Add(againAfter) // no request that is sent until then is due earlier
	if waiting > 0 {
		return
	}
	next := l.out.resends(l.now, crowded, func(p transport.Packet) { l.send = append(l.send, p) })
	if !next.IsZero() && next.Before(l.again) {
		l.again = next
	}
}
