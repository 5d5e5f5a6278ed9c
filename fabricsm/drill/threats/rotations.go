package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/violation"
)

// forgedOf returns a request as it goes out, for a sender that is not to get the answer.
func forgedOf(r *sm.Request) sim.Forged {
	return sim.Forged{MAD: r.MAD, SLID: ib.PermissiveLID, DLID: r.LID}
}

// twoViolators is T59.
func twoViolators(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	leaf := t.SwitchPort("h1", 1).Node
	s.Tried("h7 sends 1000 SMPs with wrong M_Keys to the switch of h1; h4 sends ten in between")
	h7, h4 := t.Attacker("h7"), t.Attacker("h4")
	t.Attack()
	for i := range 1000 {
		h7.Ask(drill.SMP{To: leaf, Attr: mad.AttrPortInfo, Key: ib.NewMKey(uint64(i) | 1<<63)})
		t.Run(5 * time.Millisecond)
		if i%100 == 50 {
			t.Run(2 * time.Second)
			h4.Ask(drill.SMP{To: leaf, Attr: mad.AttrPortInfo, Key: ib.NewMKey(uint64(i) | 1<<62)})
			t.Run(2 * time.Second)
		}
	}
	t.Reported(10*time.Second, "the loud one", t.WrongMKey("h7"))
	t.Reported(10*time.Second, "the quiet one", t.WrongMKey("h4"))
	lines := 0
	for _, h := range t.Since(t.Begun) {
		if e, ok := h.Event.(*violation.Violation); ok && !e.Quiet {
			lines++
		}
	}
	if s.Check(lines < 60, "two violators filled %d lines", lines) {
		s.Stopped("each pair of a violator and a target is counted for itself: %d lines in all", lines)
	}
	s.Must(t.Settle(drill.SettleTime))
}

// singleKeyed is T60.
func singleKeyed(s *drill.Scene) {
	t := s.Site(hourly())
	t.Victim("h1", "h2")
	single := map[string]bool{"h4": true, "h7": true}
	device := t.Device
	device.DualMKey = false
	for _, node := range []string{"h4", "h7"} {
		s.Must(t.Fabric.SetDevice(node, device))
		s.Must(t.Fabric.Reboot(node))
	}
	t.Collect()
	s.Must(t.Settle(drill.SettleTime))
	s.Tried("h4 and h7 are adapters that hold one M_Key at a time")
	before := make(map[string]ib.MKey)
	for _, node := range t.Fabric.Nodes() {
		before[node] = t.KeyOf(node)
	}
	t.Attack()
	t.Run(90 * time.Minute)
	t.Reported(time.Hour, "how many devices keep the key that they have", drill.Is(func(e *keyevent.KeysRotated) bool { return e.Single == 2 && e.Done > 0 }))
	for _, node := range t.Fabric.Nodes() {
		kept := t.KeyOf(node) == before[node]
		s.Check(kept == single[node], "%s kept its M_Key: %v", node, kept)
		s.Check(!t.KeyOf(node).IsZero(), "%s has no M_Key", node)
	}
	s.Stopped("devices that cannot be rotated are counted and listed with the age of their keys, as old ones")
}
