package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
)

// posedNeighbour is the part of T36 in which the manager starts on another adapter, whose
// cable leads to a host instead of a switch.
func posedNeighbour(s *drill.Scene) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2})
	s.Must(err)
	rejoin(l, "h7", "h8")
	t := s.Site(drill.SiteOptions{Netlist: l, Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	leaf, other := t.List.Find(t.SwitchPort("h1", 1).Node), t.List.Find(t.SwitchPort("h5", 1).Node)
	heard, asked := map[ib.MKey]bool{}, 0
	t.OnSend = func(r *sm.Request) bool {
		if r.MAD.IsDR() && r.MAD.Route().Len() > 0 && !r.MAD.MKey().IsZero() {
			heard[r.MAD.MKey()] = true
		}
		if r.MAD.IsDR() && r.MAD.Route().Len() == 1 {
			asked++
		}
		return false
	}
	t.Attack()
	s.Tried("the manager's state is started on the adapter of h8, which was never seen and is cabled to h7; that host answers as %s, and passes nothing on", leaf.Name)
	poseAs(t, "h7", leaf)
	s.Must(t.Move("h8"))
	t.Want(t.Intent())
	t.Run(time.Minute)
	s.Check(asked > 0, "h7 was asked nothing, so nothing is proven")
	sent := 0
	for _, name := range t.Fabric.Nodes() {
		if heard[t.KeyOf(name)] {
			sent++
			s.Check(false, "h7 was sent the M_Key of %s", name)
		}
	}
	if sent == 0 {
		s.Stopped("where nothing says which switch the manager is cabled to, it shows no key there, whatever is answered")
	}

	s.Tried("an operator says by mistake that h8 is cabled to %s; h7 answers as %s", leaf.Name, other.Name)
	was := t.KeyOf(leaf.Name)
	poseAs(t, "h7", other)
	t.SM.MKey.AttachedTo = leaf.GUID
	s.Must(t.Move("h8"))
	t.Want(t.Intent())
	t.Run(time.Minute)
	t.Reported(time.Second, "that the M_Key of "+leaf.Name+" was shown to another device", drill.Is(func(e *keyevent.KeyExposed) bool { return e.GUID == leaf.GUID }))
	s.Check(heard[was], "h7 was not sent the key of %s, so nothing is proven", leaf.Name)
	for _, name := range t.Fabric.Nodes() {
		s.Check(name == leaf.Name || !heard[t.KeyOf(name)], "h7 was sent the M_Key of %s", name)
	}
	t.OnSend, t.SM.MKey.AttachedTo = nil, 0
	s.Must(t.Move("sm"))
	t.Want(t.Intent())
	s.Check(t.Until(time.Minute, func() bool { return t.KeyOf(leaf.Name) != was && t.Settled() }), "%s keeps the key that h7 was sent", leaf.Name)
	a := t.Attacker("h6")
	for key := range heard {
		for _, name := range t.Fabric.Nodes() {
			s.Check(name == "h6" || name == "h7" || name == "h8" || !a.Opens(name, key), "%s obeys a key that h7 was sent", name)
		}
	}
	s.Stopped("one key is shown there, that of the switch which was named; when another device answers, that switch gets another key, and drops the one that was seen")
}

// rejoin joins two hosts by one cable, and takes them off their switches.
func rejoin(l *netlist.Netlist, a, b string) {
	join := func(name, peer string) {
		p := &l.Find(name).Ports[1]
		if old := l.Find(p.Peer); old.Type == ib.NodeSwitch {
			old.Ports[p.PeerPort].Peer, old.Ports[p.PeerPort].PeerPort = "", 0
		}
		p.Peer, p.PeerPort = peer, 1
	}
	join(a, b)
	join(b, a)
}

// poseAs has a host answer as a switch of this GUID.
func poseAs(t *drill.Site, host string, sw *netlist.Node) {
	t.Scene.Must(t.Fabric.Lie(host, 1, mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: uint8(sw.NumPorts()),
		NodeGUID: sw.GUID, PortGUID: sw.GUID, SystemImageGUID: sw.SystemImageGUID, PartitionCap: 32, LocalPortNum: 1,
	}))
}
