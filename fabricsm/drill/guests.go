package drill

import (
	"errors"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/hcaconf"
)

// guestsOfHost is how many virtual functions a host with guests has.
const guestsOfHost = 4

// guest is root in a guest of a host, which has a virtual function of its adapter.
func (t *Site) guest(host string) *attacker {
	st, err := t.Fabric.VirtualFunction(host, guestsOfHost)
	t.scene.Must(err)
	return &attacker{site: t, host: host, at: st}
}

// guestSMPs is T43.
func guestSMPs(s *Scene) {
	t := s.Site(SiteOptions{Tenants: twoTenants(), Guests: []string{"h8"}})
	t.Victim("h1", "h5")
	h8, leaf := t.guest("h8"), t.SwitchPort("h8", 1).Node
	s.Tried("root in a guest of h8, which has a virtual function of its adapter, sends Sets of every attribute, asks for the fabric, and says that it is a subnet manager")
	t.Attack()
	barred, seen := t.Fabric.Stats().Barred, t.violations(leaf)+t.violations(t.SwitchPort("h1", 1).Node)
	h8.attackWith(ib.MKey{})
	for _, to := range []string{leaf, "sm", "h1", "h8"} {
		s.Check(h8.ask(smp{to: to, attr: mad.AttrNodeInfo}) == nil, "the guest of h8 was answered by %s", to)
	}
	h8.at.SetIsSM(true)
	s.Check(!t.Fabric.PortInfo("h8", 1).CapabilityMask.Has(mad.IsSM), "the port of h8 says that there is a subnet manager")
	s.Check(t.violations(leaf)+t.violations(t.SwitchPort("h1", 1).Node) == seen, "SMPs of the guest of h8 reached switches")
	if sent := len(t.harmful()) + 4; t.Fabric.Stats().Barred-barred == uint64(sent) {
		s.Stopped("virtual functions have no queue pair 0: the adapter kept all %d SMPs", sent)
	} else {
		s.Check(false, "the adapter of h8 kept %d of %d SMPs of its guest", t.Fabric.Stats().Barred-barred, sent)
	}
	err := t.Fabric.ConfigureHCA("h8", hcaconf.Config{VFs: guestsOfHost, VFSMPs: true})
	if s.Check(errors.Is(err, hcaconf.ErrLocked), "root of h8 can let its guests have queue pair 0: %v", err) {
		s.Stopped("root of h8 cannot change that: %v", err)
	}
	s.guestWithQP0()
}

// guestWithQP0 is the part of T43 in which an adapter is configured wrong.
func (s *Scene) guestWithQP0() {
	t := s.Site(SiteOptions{Tenants: twoTenants(), Guests: []string{"h7"}, GuestSMPs: true})
	t.Victim("h1", "h5")
	h7 := t.guest("h7")
	s.Tried("the same from a guest of h7, whose adapter was configured to let guests do so, unnoticed")
	t.Attack()
	h7.attackWith(ib.MKey{})
	t.Reported(5*time.Second, "SMPs with a wrong M_Key, from the port of h7", t.wrongMKey("h7"))
	if len(s.result.Failures) == 0 {
		s.Stopped("no device obeys without its M_Key, and the report names the host whose adapter lets guests send SMPs")
	}
	s.Must(t.Settle(settleTime))
}
