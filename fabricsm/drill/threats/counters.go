package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// counterPeriod is how often the drill has counters looked at.
const counterPeriod = 30 * time.Second

// resetCounters is T56.
func resetCounters(s *drill.Scene) {
	o := shared()
	o.Device().InboundBaseOnly = false
	o.SM.Counters = sm.CountersConfig{Period: counterPeriod}
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Victim("h5", "h3")
	h1 := t.Attacker("h1")
	t.Run(2 * counterPeriod)
	s.Tried("h1 reads and resets the counters of a host of tenant B, of its switch, and of a server that it shares with tenant B")
	t.Attack()
	for _, w := range []way{{to: "h2", pkey: ib.DefaultPKeyLimited}, {to: t.SwitchPort("h2", 1).Node, pkey: ib.DefaultPKeyLimited}, {to: t.SwitchPort("h2", 1).Node, pkey: ib.DefaultPKeyFull}} {
		before := t.Fabric.PacketsSent(w.to, t.EndPortOf(w.to))
		read := counters(h1, w, false)
		counters(h1, w, true)
		held := s.Check(read == nil, "h1 reads how much %s has sent", w.to)
		if s.Check(t.Fabric.PacketsSent(w.to, t.EndPortOf(w.to)) >= before, "h1 reset the counters of %s", w.to) && held {
			s.Stopped("no MAD of h1 reaches %s: hosts and switches are limited members of the default partition", w.to)
		}
	}
	counters(h1, way{to: "h3", pkey: drill.KeyA}, true)
	guid := t.GUID("h3", 1)
	if !t.Reported(counterPeriod+time.Second, "that the counters of h3 went backwards", drill.Is(func(e *sm.CountersReset) bool { return e.GUID == guid })) {
		s.Check(false, "h1 goes on: no event asks for its port to be closed")
		return
	}
	s.Stopped("the class has no key: hosts that share a P_Key with a server can reset its counters, which is reported within %v", counterPeriod)
	shutOut(t, "h3")
	s.Must(t.Settle(drill.SettleTime))
}

// attrCounters is PortCountersExtended.
const attrCounters mad.AttrID = 0x001D

// counters reads the counters of a device, or resets them.
func counters(a *drill.Attacker, w way, reset bool) *mad.MAD {
	num := byte(1)
	if a.Site.EndPortOf(w.to) == 0 {
		num = 255 // of all ports
	}
	return a.Request(drill.GMP{To: w.to, PKey: w.pkey, Class: mad.ClassPerf, Set: reset, Attr: attrCounters, Body: []byte{0, num, 0xFF, 0xFF}})
}
