package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/testbed"
)

// opensNothingBut demands that a key opens one device and no other.
func opensNothingBut(a *drill.Attacker, node string, key ib.MKey) {
	for _, to := range a.Site.Fabric.Nodes() {
		if to != node && to != a.Host {
			a.Site.Scene.Check(!a.Opens(to, key), "%s opens to the M_Key of %s", to, node)
		}
	}
}

// departedDevice is T47.
func departedDevice(s *drill.Scene) {
	device := sim.Modern()
	device.KeepsMKey = true
	t := s.Site(drill.SiteOptions{
		Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h4"}}), Fabric: sim.Options{Device: device}, ClassKeys: true,
	})
	t.Victim("h1", "h5")
	guid, live := t.GUID("h7", 1), t.Attacker("h7").OwnKey()
	s.Check(!live.IsZero(), "h7 has no M_Key, so nothing is proven")
	s.Tried("the adapter of h7 of tenant C leaves with its M_Key in its memory, and the operator says that it left permanently; an attacker tries that key from h8 on every other device")
	t.Attack()
	t.Pull("h7")
	t.Run(time.Second)
	t.Withdraw(t.GrantOf("h7", 1, drill.KeyC))
	t.Step(&sm.RetireKey{GUID: guid})
	t.Reported(5*time.Second, "that its key is destroyed", drill.Is(func(e *keyevent.KeyRetired) bool { return e.GUID == guid }))
	kinds := 0
	for _, rec := range sm.KeyRecords(t.Facts()) {
		if rec.GUID == guid {
			kinds++
			s.Check(rec.Retired && len(rec.Try()) == 0, "the %v of the device that left is still in the store", rec.Kind)
		}
	}
	if s.Check(kinds > 1, "the device that left had keys of %d kinds", kinds) {
		s.Stopped("its keys, of %d kinds, are destroyed in the store, and opened no other device while they lived", kinds)
	}
	h8 := t.Attacker("h8")
	opensNothingBut(h8, "h7", live)
	attackWith(h8, live)
	t.Reported(5*time.Second, "that a host tries it", t.WrongMKey("h8"))
	comesBack(t, live)
}

// recordOf returns the saved record of the M_Key of a port.
func recordOf(t *drill.Site, guid ib.GUID) keys.Record {
	for _, rec := range sm.KeyRecords(t.Facts()) {
		if rec.Kind == keys.MKey && rec.GUID == guid {
			return rec
		}
	}
	return keys.Record{}
}

// comesBack is the part of T47 in which the adapter is plugged in again.
func comesBack(t *drill.Site, live ib.MKey) {
	s, guid, floor := t.Scene, t.GUID("h7", 1), recordOf(t, t.GUID("h7", 1)).Floor
	s.Tried("the adapter is plugged in again with the key it had: at its old place, and at a free port")
	free := sim.Endpoint{Node: "leaf3", Port: freePort}
	for _, at := range []sim.Endpoint{t.SwitchPort("h7", 1), free} {
		s.Must(t.Fabric.Recable(drill.Port("h7"), at))
		t.Collect()
		t.Run(2 * time.Minute)
		state := t.Fabric.PortInfo(at.Node, at.Port).PortState
		if s.Check(state != ib.PortActive, "the adapter that left permanently carries data again at %s port %d", at.Node, at.Port) {
			s.Stopped("it is shown no key, so nothing answers at %s port %d, and the port stays closed", at.Node, at.Port)
		}
		s.Check(len(t.TenantKeys(at)) == 0, "%s port %d holds %v", at.Node, at.Port, t.TenantKeys(at))
	}
	s.Tried("it is reset, and plugged in at its old place")
	s.Must(t.Fabric.SetDevice("h7", sim.Modern()))
	s.Must(t.Fabric.Reboot("h7"))
	s.Must(t.Fabric.Recable(drill.Port("h7"), t.SwitchPort("h7", 1)))
	t.Collect()
	t.Until(5*time.Minute, func() bool { return t.Open("h7") })
	rec := recordOf(t, guid)
	if s.Check(t.KeyOf("h7") != live && !t.KeyOf("h7").IsZero() && rec.Current.Epoch > floor, "after a reset h7 has an M_Key of epoch %d, the one before was of %d", rec.Current.Epoch, floor) {
		s.Stopped("one that was reset gets a key that it never had")
	}
	s.Must(t.Settle(drill.SettleTime))
}

// lentKey is T51.
func lentKey(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	t.Victim("h2", "h6")
	leaf := t.SwitchPort("h1", 1).Node
	guid, key := t.GUID(leaf, 0), t.KeyOf(leaf)
	tool, h7 := t.Attacker("h8"), t.Attacker("h7")
	const minutes = 10
	s.Tried("an operator has to look at the switch of h1 with a tool on h8: its M_Key is lent for %d min, and protection stays on", minutes)
	t.Attack()
	began := t.Now()
	t.Step(&sm.LendKey{GUID: guid, Until: testbed.Epoch.Add(began + minutes*time.Minute), To: "a tool on h8"})
	t.Reported(time.Second, "that the key is lent", drill.Is(func(e *keyevent.KeyLent) bool { return e.GUID == guid }))
	s.Check(tool.Opens(leaf, key), "the tool cannot work with the key")
	s.Check(!h7.Opens(leaf, ib.MKey{}), "the switch answers h7 without a key")
	opensNothingBut(tool, leaf, key)
	s.Stopped("the key opens one device, all others stay closed to the tool")
	t.Run(minutes * time.Minute / 2)
	s.Tried("the subnet manager is started again meanwhile, and the tool goes on with the key when its time is over")
	t.Crash()
	t.Run(time.Minute)
	t.Start()
	t.Want(t.Intent())
	t.Run(began + minutes*time.Minute - t.Now())
	t.Attack()
	if t.Isolated(time.Minute, "the switch does not obey the key that was lent", func() bool { return !tool.Opens(leaf, key) }) {
		s.Stopped("at the end of the time the switch gets another key, and drops the one that was lent although it can hold two")
	}
	t.Begun = 0 // the end may have been reported at the same time
	t.Reported(time.Second, "that the time is over", drill.Is(func(e *keyevent.KeyLeaseEnded) bool { return e.GUID == guid }))
	t.Begun = t.Mark()
	attackWith(tool, key)
	t.Reported(5*time.Second, "that a host goes on with the old key", t.WrongMKey("h8"))
	s.Must(t.Settle(drill.SettleTime))
	s.Check(t.KeyOf(leaf) != key && !t.KeyOf(leaf).IsZero(), "%s has the key that was lent, or none", leaf)
}

// TryKeys has root of a host try M_Keys on every other device, with a Get and then
// with harmful Sets, and demands that none obeys.
func TryKeys(t *drill.Site, host string, list []ib.MKey) {
	a := t.Attacker(host)
	defer a.At.Close()
	for _, key := range list {
		for _, to := range t.Fabric.Nodes() {
			if to != host && a.Opens(to, key) {
				t.Scene.Check(false, "%s obeys a key that was found", to)
				attackWith(a, key)
				return // the fabric is not what it was
			}
		}
	}
}
