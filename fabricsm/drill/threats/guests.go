package threats

import (
	"errors"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/hcaconf"
)

// guestSMPs is T43.
func guestSMPs(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Guests: []string{"h8"}})
	t.Victim("h1", "h5")
	h8, leaf := t.Guest("h8"), t.SwitchPort("h8", 1).Node
	s.Tried("root in a guest of h8, which has a virtual function of its adapter, sends Sets of every attribute, asks for the fabric, and says that it is a subnet manager")
	t.Attack()
	barred, seen := t.Fabric.Stats().Barred, t.Violations(leaf)+t.Violations(t.SwitchPort("h1", 1).Node)
	attackWith(h8, ib.MKey{})
	for _, to := range []string{leaf, "sm", "h1", "h8"} {
		s.Check(h8.Ask(drill.SMP{To: to, Attr: mad.AttrNodeInfo}) == nil, "the guest of h8 was answered by %s", to)
	}
	h8.At.SetIsSM(true)
	s.Check(!t.Fabric.PortInfo("h8", 1).CapabilityMask.Has(mad.IsSM), "the port of h8 says that there is a subnet manager")
	s.Check(t.Violations(leaf)+t.Violations(t.SwitchPort("h1", 1).Node) == seen, "SMPs of the guest of h8 reached switches")
	if sent := len(harmful(t)) + 4; t.Fabric.Stats().Barred-barred == uint64(sent) {
		s.Stopped("virtual functions have no queue pair 0: the adapter kept all %d SMPs", sent)
	} else {
		s.Check(false, "the adapter of h8 kept %d of %d SMPs of its guest", t.Fabric.Stats().Barred-barred, sent)
	}
	err := t.Fabric.ConfigureHCA("h8", hcaconf.Config{VFs: drill.GuestsOfHost, VFSMPs: true})
	if s.Check(errors.Is(err, hcaconf.ErrLocked), "root of h8 can let its guests have queue pair 0: %v", err) {
		s.Stopped("root of h8 cannot change that: %v", err)
	}
	guestWithQP0(s)
}

// guestWithQP0 is the part of T43 in which an adapter is configured wrong.
func guestWithQP0(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Guests: []string{"h7"}, GuestSMPs: true})
	t.Victim("h1", "h5")
	h7 := t.Guest("h7")
	s.Tried("the same from a guest of h7, whose adapter was configured to let guests do so, unnoticed")
	t.Attack()
	attackWith(h7, ib.MKey{})
	t.Reported(5*time.Second, "SMPs with a wrong M_Key, from the port of h7", t.WrongMKey("h7"))
	if len(s.Result.Failures) == 0 {
		s.Stopped("no device obeys without its M_Key, and the report names the host whose adapter lets guests send SMPs")
	}
	s.Must(t.Settle(drill.SettleTime))
}
