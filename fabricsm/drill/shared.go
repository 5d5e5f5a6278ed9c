package drill

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// keyStorage is the P_Key of a partition that tenants share.
const keyStorage ib.PKey = 0x8009

// sharedPartition is T15.
func sharedPartition(s *Scene) {
	clients := []string{"h1", "h5", "h2", "h6"}
	t := s.Site(SiteOptions{Tenants: twoTenants(), Shared: []Shared{{keyStorage, []string{"h3"}, clients}}})
	t.Victim("h1", "h5")
	for _, h := range clients {
		t.victims = append(t.victims, t.flow(h, "h3", keyStorage.Limited()), t.flow("h3", h, keyStorage))
	}
	for _, h := range clients {
		for _, at := range []sim.Endpoint{Port(h), t.SwitchPort(h, 1)} {
			for _, k := range t.Fabric.PKeys(at.Node, at.Port) {
				s.Check(k != keyStorage, "%s port %d is a full member of the storage partition", at.Node, at.Port)
			}
		}
	}
	s.Tried("h1 of tenant A sends to each host of tenant B over the storage partition that both use, as a limited member and as a full one, which it writes into its own table, too")
	t.Attack()
	t.claimFull("h1")
	t.crossShared()
	s.Tried("h2 of tenant B helps: it writes the full form into its own table, so that its adapter takes everything")
	t.claimFull("h2")
	t.crossShared()
	t.Reported(2*time.Second, "the dropped packets", t.PKeyViolation("h1", keyStorage, keyStorage.Limited()))
	if t.Isolated(25*time.Minute, "the tables of both adapters are as they were", func() bool { return !t.isFull("h1") && !t.isFull("h2") }) {
		s.Stopped("the audit reads each adapter again, and makes it a limited member once more")
	}
	s.Must(t.Settle(settleTime))
}

// claimFull has root of a host write the full form of the storage P_Key into the
// table of its own adapter.
func (t *Site) claimFull(host string) {
	a := t.attacker(host)
	defer a.at.Close()
	var own mad.PKeyTable
	for i := range own.PKey {
		if own.PKey[i] = t.Fabric.PKeyAt(host, 1, i); own.PKey[i] == keyStorage.Limited() {
			own.PKey[i] = keyStorage
		}
	}
	a.ask(smp{to: host, set: true, attr: mad.AttrPKeyTable, data: with(t.scene, &own)})
	t.scene.Check(t.isFull(host), "%s could not write its own table, so nothing is proven", host)
}

func (t *Site) isFull(host string) bool {
	for _, k := range t.Fabric.PKeys(host, 1) {
		if k == keyStorage {
			return true
		}
	}
	return false
}

// crossShared has h1 send to the hosts of the other tenant over the storage
// partition, and demands that nothing arrives.
func (t *Site) crossShared() {
	s := t.scene
	for _, to := range []string{"h2", "h6"} {
		for _, k := range []ib.PKey{keyStorage.Limited(), keyStorage} {
			r := t.Send("h1", to, k)
			if s.Check(r.Fate != sim.Delivered, "a packet of h1 with the storage P_Key %v reached %s", k, to) {
				s.Stopped("with %v: %v", k, r.Fate)
			}
		}
	}
}
