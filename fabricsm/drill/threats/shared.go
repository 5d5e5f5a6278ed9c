package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// sharedPartition is T15.
func sharedPartition(s *drill.Scene) {
	clients := []string{"h1", "h5", "h2", "h6"}
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Shared: []drill.Shared{{PKey: drill.KeyStorage, Servers: []string{"h3"}, Clients: clients}}})
	t.Victim("h1", "h5")
	for _, h := range clients {
		t.Victims = append(t.Victims, t.Flow(h, "h3", drill.KeyStorage.Limited()), t.Flow("h3", h, drill.KeyStorage))
	}
	for _, h := range clients {
		for _, at := range []sim.Endpoint{drill.Port(h), t.SwitchPort(h, 1)} {
			for _, k := range t.Fabric.PKeys(at.Node, at.Port) {
				s.Check(k != drill.KeyStorage, "%s port %d is a full member of the storage partition", at.Node, at.Port)
			}
		}
	}
	s.Tried("h1 of tenant A sends to each host of tenant B over the storage partition that both use, as a limited member and as a full one, which it writes into its own table, too")
	t.Attack()
	claimFull(t, "h1")
	crossShared(t)
	s.Tried("h2 of tenant B helps: it writes the full form into its own table, so that its adapter takes everything")
	claimFull(t, "h2")
	crossShared(t)
	t.Reported(2*time.Second, "the dropped packets", t.PKeyViolation("h1", drill.KeyStorage, drill.KeyStorage.Limited()))
	if t.Isolated(25*time.Minute, "the tables of both adapters are as they were", func() bool { return !isFull(t, "h1") && !isFull(t, "h2") }) {
		s.Stopped("the audit reads each adapter again, and makes it a limited member once more")
	}
	s.Must(t.Settle(drill.SettleTime))
}

// claimFull has root of a host write the full form of the storage P_Key into the
// table of its own adapter.
func claimFull(t *drill.Site, host string) {
	a := t.Attacker(host)
	defer a.At.Close()
	var own mad.PKeyTable
	for i := range own.PKey {
		if own.PKey[i] = t.Fabric.PKeyAt(host, 1, i); own.PKey[i] == drill.KeyStorage.Limited() {
			own.PKey[i] = drill.KeyStorage
		}
	}
	a.Ask(drill.SMP{To: host, Set: true, Attr: mad.AttrPKeyTable, Data: drill.With(t.Scene, &own)})
	t.Scene.Check(isFull(t, host), "%s could not write its own table, so nothing is proven", host)
}

func isFull(t *drill.Site, host string) bool {
	for _, k := range t.Fabric.PKeys(host, 1) {
		if k == drill.KeyStorage {
			return true
		}
	}
	return false
}

// crossShared has h1 send to the hosts of the other tenant over the storage
// partition, and demands that nothing arrives.
func crossShared(t *drill.Site) {
	s := t.Scene
	for _, to := range []string{"h2", "h6"} {
		for _, k := range []ib.PKey{drill.KeyStorage.Limited(), drill.KeyStorage} {
			r := t.Send("h1", to, k)
			if s.Check(r.Fate != sim.Delivered, "a packet of h1 with the storage P_Key %v reached %s", k, to) {
				s.Stopped("with %v: %v", k, r.Fate)
			}
		}
	}
}
