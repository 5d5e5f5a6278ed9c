package drill

import (
	"time"

	"portcullis/fabricsm/sm"
)

// physicalDrills are those of cables and devices, T148 to T153.
func physicalDrills() []Drill {
	return []Drill{
		{ID: "T148", Threat: "swap two cables", Needs: needsSpec},
		{ID: "T149", Threat: "plug in a cable to another fabric", Needs: needsSpec},
		{ID: "T150", Threat: "insert a switch, or a loopback plug", Needs: needsSpec},
		{ID: "T151", Threat: "replace an HCA without telling anybody", Needs: needsSpec},
		{ID: "T152", Threat: "forget the devices inside switches in the declared topology", Needs: needsSpec},
		{ID: "T153", Threat: "make a link flap, to have things discovered again and again", Play: flappingLink},
	}
}

// flappingLink is T153.
func flappingLink(s *Scene) {
	t := s.Site(SiteOptions{Tenants: twoTenants()})
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
			closed = t.Now() - t.at
		}
	}
	late = sent - before
	t.OnSend = nil
	t.Reported(time.Second, "that the link flaps", is(func(e *sm.Unhealthy) bool { return e.Place == place && e.Condition == sm.Flapping }))
	if s.Check(!t.Open("h7"), "the port of h7 is open after 100 flaps") {
		longest(&s.result.Isolated, closed)
		s.Stopped("the link is kept from carrying data until it has been quiet for a minute")
	}
	s.Check(late < 50*20, "the last 50 flaps cost %d requests", late)
	if s.Check(t.Until(5*time.Minute, func() bool { return t.Open("h7") }), "the port stays closed although the link is quiet") {
		s.Stopped("and opened again after that")
	}
}
