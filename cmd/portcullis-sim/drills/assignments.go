package drills

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/admission"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// earlyAdmission is T108: in whatever order the conditions of an admission are met, the host is in no partition before the
// last one is.
func earlyAdmission(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(HandOver) {
			o.Judge = unsealing{}
		}
	}})
	e.mark()
	orders := []string{
		"evidence seal cable", "evidence cable seal", "cable evidence seal", "cable evidence pull seal cable", "cable evidence reassign seal",
	}
	for _, order := range orders {
		s.Tried("the conditions for %s are met in this order: %s", suspect, order)
		e.inOrder(strings.Fields(order))
	}
	e.told(proven, "evidence.seal", "ok")
	s.Stopped("each commit decides by all conditions together: in %d orders the host was admitted by the last condition, or not at all", len(orders))
}

// inOrder plays the steps of an admission one after the other.
func (e *evidenceSite) inOrder(steps []string) {
	s, m := e.scene, e.hosts[suspect]
	e.unplug(suspect)
	e.sync()
	e.reassign("acme")
	boot(m, eventlogtest.Example().Image)
	plugged := false
	var hand func() error
	late := false // the hand-over is that of an earlier assignment
	for i, step := range steps {
		switch step {
		case "evidence":
			ses, seal, err := e.show(m)
			s.Must(err)
			hand = func() error { return e.seal(m, ses, seal) }
		case "seal":
			err := hand()
			s.Check((err != nil) == late, "the hand-over of %s is answered with %v; it is that of an earlier assignment: %v", suspect, err, late)
		case "cable":
			e.plug(suspect)
			e.sync()
			plugged = true
		case "pull":
			e.unplug(suspect)
			e.sync()
			plugged = false
		case "reassign":
			e.reassign("acme")
			late = true
		}
		if last := i == len(steps)-1; !last || late {
			e.outside("of which was done: " + strings.Join(steps[:i+1], " "))
		}
	}
	e.sync()
	s.Check(late || e.phase(suspect) == v1.PhaseAdmitted, "after %v, which are all conditions, %s is %s", steps, suspect, e.phase(suspect))
	if !plugged {
		e.plug(suspect)
	}
}

// unverifiedRelease is T109: a host is released while its switch port answers nothing, and another tenant wants it.
func unverifiedRelease(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	blue := v.cluster("ann", "blue", "h2", "h6")
	v.VictimOf("h1", "h5", red)
	v.VictimOf("h2", "h6", blue)

	s.Tried("h4 leaves red while the switch at its port gets none of the requests that remove the P_Key; blue wants the host")
	v.mark()
	lost := losePKeys(v, "h4")
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	if s.Off(ReadBack) {
		believe(v, "h4")
	}
	v.rounds(3)
	s.Check(*lost > 0, "no request was lost, so nothing is proven")
	s.Check(slices.Contains(v.TenantKeys(v.SwitchPort("h4", 1)), red), "the P_Key is gone, so nothing is proven")
	v.refused("host_releasing", "ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"blue"}`)
	v.attested("h4")
	v.rounds(3)
	s.Check(v.clusterOf("h4") != "blue" || !v.delivered("h4", "h1", red), "h4 is in cluster blue while it reaches h1 of red")
	if s.Off(ReadBack) {
		return
	}
	host, err := v.admission.Host(v.ctx(), "h4")
	s.Must(err)
	v.Counted(host.Status.Phase == v1.PhaseReleasing, "status of host h4: %s", host.Status.Phase)
	v.refused("host_granted", "ann", "DELETE", "/v1/hosts/h4", `{"reason":"it leaves"}`)

	s.Tried("the switch answers again")
	v.OnSend = nil
	v.sync()
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "the switch port of h4 holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))
	v.admit("ann", "blue", "h4")
	if s.Check(v.delivered("h4", "h2", blue) && !v.delivered("h4", "h1", red), "h4 of blue does not reach h2, or reaches h1 of red") {
		s.Stopped("a host is released when the tables were read and the P_Key is in none, and no earlier")
	}
}

// losePKeys loses the requests that write P_Key tables of the switch at a host's port, and counts them.
func losePKeys(v *site, host string) *int {
	at, lost := v.SwitchPort(host, 1), new(int)
	v.OnSend = func(r *sm.Request) bool {
		lose := r.MAD.Method().String() == "Set" && r.MAD.Attr().String() == "P_KeyTable" && ib.PortNum(r.MAD.Mod()>>16) == at.Port
		if lose {
			*lost++
		}
		return lose
	}
	return lost
}

// rounds runs service and Subnet Manager for some minutes, whether they come to rest or not.
func (v *site) rounds(n int) {
	for range n {
		v.scene.Must(v.admission.Settle(v.ctx()))
		in, err := v.turn.Intent(v.ctx())
		v.scene.Must(err)
		v.pass(in)
		v.Run(time.Minute)
		v.show()
	}
}

// ghostMember is T110: a host is released while no Subnet Manager runs, and another host is admitted.
func ghostMember(s *drill.Scene) {
	v := newSite(s, options{fabric: drill.SiteOptions{SM: sm.Config{IntentWait: time.Minute}}, credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)

	s.Tried("the Subnet Manager is killed, h4 is released and h8 assigned to the same cluster, and then it is started again")
	v.mark()
	v.Crash()
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.must("ann", "POST", "/v1/hosts/h8/assign", `{"cluster":"red"}`)
	v.attested("h8")
	s.Must(v.admission.Settle(v.ctx()))
	v.refused("host_releasing", "ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red"}`)
	v.deaf = s.Off(WholeIntent)
	var met bool
	v.OnStep = func() {
		ghost, next := v.TenantKeys(v.SwitchPort("h4", 1)), v.TenantKeys(v.SwitchPort("h8", 1))
		met = met || len(ghost) > 0 && len(next) > 0
	}
	v.Start()
	v.sync()
	v.OnStep = nil
	s.Check(!met, "h8 was let in before h4 was removed")
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "h4, which was released, is a ghost: its switch port holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))
	s.Check(!v.delivered("h4", "h1", red), "h4, which was released, reaches h1")
	if s.Check(v.delivered("h8", "h1", red), "h8, which was admitted, does not reach h1") {
		s.Stopped("a Subnet Manager that starts gets all that is wanted and compares it with the devices: removals came first")
	}
	host, err := v.admission.Host(v.ctx(), "h4")
	s.Must(err)
	v.Counted(host.Status.Phase == v1.PhaseQuarantined, "status of host h4: %s", host.Status.Phase)
}

// streamedOn is T111: a host streams to another one when it is released, and its connection is open.
func streamedOn(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	stream := v.Flow("h4", "h1", red)

	s.Tried("h4 writes to h1 without a pause while it is released, and keeps the P_Key in its own table")
	v.mark()
	s.Check(stream.Counts().Lost == 0, "the stream was interrupted before")
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.deaf = s.Off(WholeIntent)
	v.sync()
	at := stream.Counts()
	v.Run(10 * time.Second)
	v.Collect()
	s.Check(!v.delivered("h4", "h1", red), "after the release a packet of h4 reaches h1")
	end := stream.Counts()
	passed := (end.Sent - end.Lost) - (at.Sent - at.Lost)
	if s.Check(passed == 0, "%d packets of h4 reached h1 after it was released", passed) {
		s.Stopped("the switch port is written first, and drops what an open connection goes on sending")
	}
	inbound, _ := v.Fabric.ConstraintErrors(v.SwitchPort("h4", 1).Node, v.SwitchPort("h4", 1).Port)
	v.Counted(inbound > 0, "%s port %d counts PortRcvConstraintErrors", v.SwitchPort("h4", 1).Node, v.SwitchPort("h4", 1).Port)
}

// halfAdmitted is T113: one of the eight adapters of a host fails on the way into a partition.
func halfAdmitted(s *drill.Scene) {
	rails := map[string]string{}
	for _, h := range []string{"h3", "h4", "h6", "h7", "h8"} {
		rails[h] = "h2"
	}
	v := newSite(s, options{credentials: []account{{name: "ann"}}, rails: rails})
	v.must("ann", "POST", "/v1/tenants", `{"name":"red"}`)
	v.must("ann", "POST", "/v1/clusters", `{"name":"red","tenant":"red"}`)
	v.admit("ann", "red", "h1", "h5")
	red := v.pkeyOf("red")
	v.VictimOf("h1", "h5", red)
	all := []string{"h2", "h3", "h4", "h6", "h7", "h8"}

	s.Tried("one of the %d adapters of h2 has no link, and the others have all that an admission needs", len(all))
	v.mark()
	v.unplug("h8")
	v.sync()
	v.must("ann", "POST", "/v1/hosts/h2/assign", `{"cluster":"red"}`)
	v.attested("h2")
	if s.Off(WholeHosts) {
		grantSeen(v, "h2", red, all[:len(all)-1])
		v.intend()
	} else {
		v.sync()
	}
	for _, rail := range all {
		s.Check(len(v.TenantKeys(v.SwitchPort(rail, 1))) == 0, "one adapter of h2 is missing, and the switch port of rail %s holds %v", rail, v.TenantKeys(v.SwitchPort(rail, 1)))
		s.Check(!v.delivered(rail, "h1", red), "one adapter of h2 is missing, and rail %s reaches h1", rail)
	}
	v.phase("h2", v1.PhaseVerified)
	if s.Off(WholeHosts) {
		return
	}

	s.Tried("it has its link, and the switch at one port takes no P_Key")
	lost := losePKeys(v, "h8")
	v.plug("h8")
	v.rounds(3)
	s.Check(*lost > 0, "no request was lost, so nothing is proven")
	v.phase("h2", v1.PhaseGranting)
	v.OnSend = nil
	v.sync()
	v.phase("h2", v1.PhaseAdmitted)
	if s.Check(v.delivered("h8", "h1", red) && v.delivered("h2", "h1", red), "the adapters of h2, which was admitted, do not reach h1") {
		s.Stopped("a host is admitted with all of its ports: no grant before each is seen, and no admission before each was read back")
	}
}

// phase demands that a host is in a phase, which operators see.
func (v *site) phase(host string, want v1.Phase) {
	h, err := v.admission.Host(v.ctx(), host)
	v.scene.Must(err)
	var open []string
	for _, g := range h.Status.Guards {
		if !g.Met {
			open = append(open, fmt.Sprintf("%s: %s", g.Name, g.Detail))
		}
	}
	v.Counted(h.Status.Phase == want, "status of host %s: %s (want %s) %v", host, h.Status.Phase, want, open)
}
