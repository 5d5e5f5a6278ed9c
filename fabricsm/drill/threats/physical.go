package threats

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/keyevent"
)

// physicalDrills are those of cables and devices, T148 to T153.
func physicalDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T148", Threat: "swap two cables", Play: playBreaches("T148", swappedRunning)},
		{ID: "T149", Threat: "plug in a cable to another fabric", Play: playBreaches("T149")},
		{ID: "T150", Threat: "insert a switch, or a loopback plug", Play: playBreaches("T150", loopback)},
		{ID: "T151", Threat: "replace an HCA without an announcement", Play: playBreaches("T151", announcedRMA)},
		{ID: "T152", Threat: "forget the devices inside switches in the declared topology", Play: insideSwitches},
		{ID: "T153", Threat: "make a link flap, to have things discovered again and again", Play: flappingLink},
	}
}

// flappingLink is T153.
func flappingLink(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	s.Tried("the link of h7 goes down and up 100 times in 20 s")
	at, place := t.SwitchPort("h7", 1), t.Place("h7", 1)
	sent, before, late := 0, 0, 0
	t.OnSend = func(*sm.Request) bool { sent++; return false }
	t.Attack()
	closed := time.Duration(0)
	for i := range 100 {
		if i == 50 {
			before = sent
		}
		s.Must(t.Fabric.Bounce(at.Node, at.Port))
		t.Collect()
		t.Run(200 * time.Millisecond)
		if closed == 0 && !t.Open("h7") {
			closed = t.Now() - t.At
		}
	}
	late = sent - before
	t.OnSend = nil
	t.Reported(time.Second, "that the link flaps", drill.Is(func(e *health.Unhealthy) bool { return e.Place == place && e.Condition == health.Flapping }))
	if s.Check(!t.Open("h7"), "the port of h7 is open after 100 flaps") {
		drill.Longest(&s.Result.Isolated, closed)
		s.Stopped("the link is kept from carrying data until it has been quiet for a minute")
	}
	s.Check(late < 50*20, "the last 50 flaps cost %d requests", late)
	if s.Check(t.Until(5*time.Minute, func() bool { return t.Open("h7") }), "the port stays closed although the link is quiet") {
		s.Stopped("and opened again after that")
	}
}

// swappedRunning is the part of T148 in which the hosts run on while their cables are swapped: they keep their M_Keys, and
// show nothing without them.
func swappedRunning(s *drill.Scene) {
	silent(s, "the cables of h4 and h7 of tenant C are swapped while both run", []string{"h4", "h7"}, func(t *drill.Site) {
		s.Must(t.Fabric.Swap(drill.Port("h4"), drill.Port("h7")))
	})
}

// loopback is the part of T150 with a cable from a switch to itself.
func loopback(s *drill.Scene) {
	silent(s, "one cable joins the ports of h7 and h8 of tenant C on their leaf switch", []string{"h7", "h8"}, func(t *drill.Site) {
		s.Must(t.Fabric.Recable(t.SwitchPort("h7", 1), t.SwitchPort("h8", 1)))
	})
}

// silent plays something after which devices with M_Keys are where they do not belong:
// no key is tried on them, so that nothing answers, and their ports stay closed. When
// the cables are right again all is as before.
func silent(s *drill.Scene, tried string, hosts []string, do func(*drill.Site)) {
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: hosts}), Declared: true})
	t.Victim("h1", "h5")
	s.Tried("where the topology is declared, %s", tried)
	t.Attack()
	mark := t.Begun
	do(t)
	t.Collect()
	for _, h := range hosts {
		place := t.Place(h, 1)
		t.Begun = mark
		guid := t.GUID(h, 1)
		t.Reported(10*time.Second, "who does not answer at "+place.String()+" any more", drill.Is(func(e *sm.NodeUnreachable) bool {
			return e.Place == place && slices.Contains(e.Keyed, guid) && e.Where != "" && e.Declared != ""
		}))
		if t.Isolated(time.Second, "port "+place.String()+" is closed", func() bool { return !t.Open(h) }) {
			s.Stopped("no key is tried on a device that it is not for, so nothing answers at %v, and the port stays closed", place)
		}
	}
	one, other := t.Place(hosts[0], 1), t.Place(hosts[1], 1)
	t.Begun = mark
	t.Reported(10*time.Second, "that the two belong together", drill.Is(func(e *sm.NodeUnreachable) bool {
		return e.Place == one && e.With == other || e.Place == other && e.With == one
	}))
	t.Run(time.Minute)
	for _, h := range t.Since(mark) {
		e, ok := h.Event.(*keyevent.KeyExposed)
		s.Check(!ok, "%v", e)
	}
	for _, h := range hosts {
		s.Must(t.Fabric.Recable(drill.Port(h), t.SwitchPort(h, 1)))
	}
	t.Collect()
	s.Check(t.Until(5*time.Minute, func() bool { return t.Open(hosts[0]) && t.Open(hosts[1]) }), "the ports stay closed although the cables are right again")
	r := t.Send(hosts[0], hosts[1], drill.KeyC)
	s.Check(r.Fate == sim.Delivered, "%s does not reach %s after the cables are right again: %v", hosts[0], hosts[1], r.Fate)
}
