package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// lockedOutAsAnother is the part of T37 in which a host sets its adapter to the LID of
// another tenant's host too, and asks subnet administration in its name.
func lockedOutAsAnother(s *drill.Scene) {
	o := drill.Administered()
	o.Tenants = append(o.Tenants, drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h8"}})
	t := s.Site(o)
	s.Tried("h7 of tenant C sets an M_Key and the LID of h1 on its own adapter, and asks subnet administration 4,000 times a second as h1")
	victim, h7 := t.Client("h1"), t.Attacker("h7")
	place, lid := t.Place("h7", 1), t.LID("h1")
	path := t.PathTo("h1", t.GIDOf("h5"))
	s.Check(len(victim.All(path)) == 1, "h1 gets no answer before the attack, so nothing is proven")
	t.Attack()
	pi := t.Fabric.PortInfo("h7", 1)
	pi.LID, pi.MKey, pi.MKeyProtectBits, pi.MKeyLeasePeriod = lid, ib.NewMKey(0x0123456789ABCDEF), 2, 0
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	for range 2 { // the second ends that the adapter obeys the key before, too
		h7.Ask(drill.SMP{To: "h7", Set: true, Attr: mad.AttrPortInfo, Mod: 1, Data: drill.With(s, &pi)})
	}
	s.Check(t.LID("h7") == lid, "h7 could not take the LID, so nothing is proven")

	forger, at := t.Client("h7"), t.SwitchPort("h7", 1)
	closed := func() bool { return t.Fabric.PortInfo(at.Node, at.Port).PortState == ib.PortInit }
	for end := t.Now() + 30*time.Second; !closed() && t.Now() < end; {
		forger.Send(path)
		t.Run(250 * time.Microsecond)
	}
	t.Isolated(time.Millisecond, "the switch port of h7 is closed", closed)
	t.Reported(time.Second, "that h7 refuses its M_Key", drill.Is(func(e *sm.MKeyRefused) bool { return e.Place == place && e.Packets > 0 && !e.Open }))
	within := t.Now() - t.At
	s.Check(within < 8*time.Second, "h7 could ask as h1 for %v", within)
	t.Run(time.Second) // of what it has used up
	for range 20 {
		forger.Send(path)
		s.Check(len(victim.All(path)) == 1, "h1 gets no answer after that")
		t.Run(50 * time.Millisecond)
	}
	s.Must(t.Fabric.Reboot("h7"))
	t.Collect()
	s.Check(t.Until(30*time.Second, func() bool { return t.Open("h7") && t.LID("h7") != lid }), "h7 is not let in after a restart")
	s.Check(t.Send("h7", "h8", drill.KeyC).Fate == sim.Delivered, "h7 does not reach its tenant after a restart")
	s.Stopped("LIDs are read every two seconds; an adapter that sends and refuses its M_Key is closed at the switch port, until it is restarted")
}
