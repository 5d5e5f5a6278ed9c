package administration

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// crowdKind is a kind of packet by which hosts flood the manager.
type crowdKind struct {
	name string
	make func(c *drill.Client, n uint64) transport.Packet // the packet of number n
}

// crowdKinds are the kinds of a site, for senders of directed routes that wander over switches.
func crowdKinds(t *drill.Site, routes map[string][]mad.Route) []crowdKind {
	smp := func(h mad.Header, data func([]byte)) func(*drill.Client, uint64) transport.Packet {
		return func(c *drill.Client, _ uint64) transport.Packet {
			c.TID++
			h.TID = c.TID
			p := transport.Packet{LID: t.View().LID}
			mad.NewSMP(&p.MAD, h, nil, ib.MKey{})
			if data != nil {
				data(p.MAD.Data())
			}
			return p
		}
	}
	gmp := func(h mad.Header) func(*drill.Client, uint64) transport.Packet {
		return func(c *drill.Client, _ uint64) transport.Packet {
			c.TID++
			h.TID = c.TID
			p := transport.Packet{LID: t.View().LID, QP: drill.GMPQP}
			p.MAD.SetHeader(h)
			return p
		}
	}
	path := t.PathTo("h1", t.GIDOf("h5"))
	flap := mad.Trap128{
		NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapLinkStateChange},
		SwitchLID:    t.LIDOf(t.SwitchPort("h1", 1).Node),
	}
	return []crowdKind{
		{"questions for SMInfo over directed routes that wander over switches, with another end of the return path each", func(c *drill.Client, n uint64) transport.Packet {
			c.TID++
			all := routes[c.Host]
			p, way := transport.Packet{LID: ib.PermissiveLID}, all[n%uint64(len(all))]
			mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.TID}, &way, ib.MKey{})
			binary.BigEndian.PutUint64(p.MAD[len(p.MAD)-8:], n*0x9e3779b97f4a7c15)
			return p
		}},
		{"traps that a link of its switch changed", smp(mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice}, drill.With(t.Scene, &flap))},
		{"answers to nothing that was asked", smp(mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrPortInfo}, nil)},
		{"questions for a path", func(c *drill.Client, _ uint64) transport.Packet { return c.Packet(&path) }},
		{"MADs of communication management", gmp(mad.Header{Class: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, Attr: 0x0010})},
		{"traps of a class with keys", gmp(mad.Header{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice})},
	}
}

// detoursOf returns so many directed routes from a host to another that wander over switches, the shortest first.
func detoursOf(t *drill.Site, from, to string, count int) (out []mad.Route) {
	type step struct {
		at  string
		way mad.Route
	}
	for queue := []step{{from, mad.Route{}}}; len(queue) > 0 && len(out) < count; queue = queue[1:] {
		s := queue[0]
		n := t.List.Find(s.at)
		if n.Name == to {
			out = append(out, s.way)
			continue
		}
		if n.Type != ib.NodeSwitch && n.Name != from {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if peer := n.Ports[num].Peer; peer != "" && peer != from {
				way, _ := s.way.Append(ib.PortNum(num))
				queue = append(queue, step{peer, way})
			}
		}
	}
	t.Scene.Check(len(out) == count, "%d ways from %s to %s, want %d", len(out), from, to, count)
	return out
}

// slowedMoves is T160.
func slowedMoves(s *drill.Scene) {
	const perMilli, moves, detours = 1000, 3, 200
	o := drill.Administered()
	o.Tenants[1].Hosts = append(o.Tenants[1].Hosts, "h3")
	o.Work = testbed.Work{Packet: 2 * time.Microsecond, Dropped: time.Microsecond / 2, Waiting: 512}
	t := s.Site(o)
	t.Customer("h2", "h6")
	from := []*drill.Client{t.Client("h1"), t.Client("h5")}
	routes := map[string][]mad.Route{"h1": detoursOf(t, "h1", "sm", detours), "h5": detoursOf(t, "h5", "sm", detours)}
	quiet := moveTimes(t, moves, nil)
	s.Tried("one host of tenant A, then two, send the master %d packets a second, of one kind after the other, while h3 of tenant B is released and admitted again %d times", perMilli*1000, moves)
	slowest, told, n := time.Duration(0), t.Mark(), uint64(0)
	t.Attack()
	for _, kind := range crowdKinds(t, routes) {
		for hosts := 1; hosts <= len(from); hosts++ {
			t.Run(time.Second) // a port may be worked on so often in a second
			began, sent := t.Now(), 0
			took := moveTimes(t, moves, func() {
				for due := int((t.Now() - began) * perMilli / time.Millisecond); sent < due; sent++ {
					n++
					c := from[sent%hosts]
					c.At.Send(kind.make(c, n))
				}
			})
			for _, c := range from {
				c.At.Take(nil)
			}
			slowest = max(slowest, took)
			s.Check(sent > 10_000, "%d %s were sent, so nothing is proven", sent, kind.name)
			s.Check(took <= quiet*3/2, "while %d hosts send %s, a move takes up to %v, and %v without a flood", hosts, kind.name, took, quiet)
		}
	}
	for _, h := range t.Since(told) {
		switch e := h.Event.(type) {
		case *sm.NodeUnreachable, *sm.PortGone, *sm.StateChanged:
			s.Check(false, "during the flood: %v", e)
		}
	}
	if len(s.Result.Failures) == 0 {
		s.Stopped("each port may send so much, and what is more is dropped before it is looked at: a move took at most %v with a flood, and %v without; %d packets were sent", slowest, quiet, n)
	}
	t.Reported(3*time.Second, "the flood", t.Dropped("h1", trust.Flood))
}

// moveTimes releases host h3 and admits it again, so many times, and returns the longest time from the order to the event
// that says the device was read back. Before each step of time it calls crowd, if that is not nil.
func moveTimes(t *drill.Site, count int, crowd func()) (longest time.Duration) {
	const step, pause, burst = 10 * time.Microsecond, 5 * time.Millisecond, 20 * time.Millisecond
	g := t.GrantOf("h3", 1, drill.KeyB)
	turn := func() {
		if crowd != nil {
			crowd()
			t.Collect()
		}
		t.Until(step, func() bool { t.Poll(true); return false })
	}
	crowded := func(d time.Duration) {
		for began := t.Now(); t.Now()-began < d; {
			turn()
		}
	}
	crowded(burst) // until each port has sent what it may send at once
	for i := range 2 * count {
		crowded(pause)
		asked, began, done := t.Mark(), t.Now(), false
		if i%2 == 0 {
			t.Withdraw(g)
		} else {
			t.Grant(g)
		}
		for !done && t.Now()-began < time.Second {
			turn()
			for ; asked < t.Mark(); asked++ {
				switch e := t.Events()[asked].Event.(type) {
				case *sm.MembershipRemoved:
					done = done || i%2 == 0 && e.GUID == g.GUID && e.HCAProven
				case *sm.MembershipApplied:
					done = done || i%2 == 1 && e.GUID == g.GUID
				}
			}
		}
		t.Scene.Check(done, "move %d of h3 is not done after %v", i, t.Now()-began)
		longest = max(longest, t.Now()-began)
	}
	t.Scene.Must(t.Err())
	return longest
}
