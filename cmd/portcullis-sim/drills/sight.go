package drills

import (
	"slices"
	"time"

	"portcullis/api/admission"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// outOfSight is T117: a port that the Subnet Manager does not see keeps its P_Keys, and no other port gets them.
func outOfSight(s *drill.Scene) {
	v := newSite(s, options{
		credentials: []account{{name: "ann"}},
		admission: func(o *admission.Options) {
			if s.Off(SightRule) {
				o.Judge = withdrawing{}
			}
		},
	})
	leaf := v.SwitchPort("h8", 1).Node
	behind := slices.DeleteFunc(slices.Clone(hosts[:]), func(h string) bool { return v.SwitchPort(h, 1).Node != leaf })
	if !s.Check(len(behind) > 1 && v.SwitchPort("h1", 1).Node != leaf, "the leaf switch of h8 has %v", behind) {
		return
	}
	first, second := behind[0], behind[1]
	red := v.cluster("ann", "red", "h1", first, second)
	blue := v.cluster("ann", "blue", "h2", "h3")
	v.VictimOf("h2", "h3", blue)

	s.Tried("the cable of h1 is pulled, and h4's adapter is plugged in at its place")
	v.Attack()
	v.unplug("h1")
	v.sync()
	v.Reported(time.Minute, "that the port of h1 is not seen", portGone(v.GUID("h1", 1)))
	v.keeps(red, "h1")
	v.unplug("h4")
	place := v.SwitchPort("h1", 1)
	s.Must(v.Fabric.Relink("h4", 1, place.Node, place.Port))
	v.notice()
	v.sync()
	s.Check(!v.delivered("h4", first, red), "h4 reaches %s of cluster red from the place of h1", first)
	state := v.Fabric.PortInfo(place.Node, place.Port).PortState
	s.Check(state != ib.PortActive || len(v.TenantKeys(place)) == 0, "the switch port is %v and holds %v for h4", state, v.TenantKeys(place))
	v.unplug("h4")
	for _, h := range []string{"h1", "h4"} {
		v.plug(h)
	}
	v.sync()
	if s.Check(v.delivered("h1", first, red), "h1 is back at its place, and does not reach %s", first) {
		s.Stopped("a grant is for a GUID at a place: the link of another port at that place stays in Init, and the port itself is back without being admitted again")
	}

	s.Tried("leaf switch %s loses power, and has it again", leaf)
	s.Must(v.Fabric.PowerOff(leaf))
	v.notice()
	v.sync()
	v.keeps(red, first, second)
	s.Must(v.Fabric.PowerOn(leaf))
	v.notice()
	s.Must(v.Settle(time.Minute)) // nothing is asked of the service
	s.Check(v.delivered("h1", first, red) && v.delivered(first, second, red), "hosts behind %s do not reach their cluster after it has power again", leaf)
	v.sync()

	s.Tried("the Subnet Manager's own cable is out for a while")
	v.VictimOf("h1", first, red)
	v.unplug("sm")
	v.blind()
	v.keeps(red, "h1", first, second)
	v.keeps(blue, "h2", "h3")
	v.plug("sm")
	v.sync()
	v.keeps(red, "h1", first, second)
	s.Stopped("nothing is withdrawn without a finding: what is not seen is not gone")
}

// keeps fails the drill unless hosts are admitted and their switch ports hold the P_Key.
func (v *site) keeps(key ib.PKey, list ...string) {
	for _, h := range list {
		host, err := v.admission.Host(v.ctx(), h)
		v.scene.Must(err)
		v.scene.Check(host.Status.Phase == v1.PhaseAdmitted, "host %s is %s: %+v", h, host.Status.Phase, host.Status.Guards)
		held := v.TenantKeys(v.SwitchPort(h, 1))
		v.scene.Check(slices.Equal(held, []ib.PKey{key}), "the switch port of %s holds %v, want %v", h, held, key)
	}
}

// unplug pulls the cable of a node, and plug puts it back where the netlist has it.
func (v *site) unplug(node string) {
	v.scene.Must(v.Fabric.Unlink(node, 1))
	v.notice()
}

func (v *site) plug(node string) {
	to := v.SwitchPort(node, 1)
	v.scene.Must(v.Fabric.Relink(node, 1, to.Node, to.Port))
	v.notice()
}

// blind runs service and Subnet Manager for three minutes. It does not wait until they settle: a Subnet Manager without a
// link does not.
func (v *site) blind() {
	for range 3 {
		v.show()
		v.scene.Must(v.admission.Settle(v.ctx()))
		in, err := v.turn.Intent(v.ctx())
		v.scene.Must(err)
		v.Want(in)
		v.Run(time.Minute)
	}
}

// notice runs the fabric until traps have arrived and the Subnet Manager has swept.
func (v *site) notice() {
	v.Collect()
	v.Run(15 * time.Second)
}

// portGone matches the event that a port is no longer seen.
func portGone(guid ib.GUID) func(sm.Event) bool {
	return func(e sm.Event) bool {
		gone, ok := e.(*sm.PortGone)
		return ok && gone.GUID == guid
	}
}
