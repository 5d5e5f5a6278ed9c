package threats

import (
	"fmt"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/administration"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// partitionDrills are those of partitions and P_Keys, T1 to T16.
func partitionDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T1", Threat: "send data with another tenant's P_Key from a modified driver", Play: foreignPKey},
		{ID: "T2", Threat: "talk to another tenant over the default partition", Play: defaultPartition},
		{ID: "T3", Threat: "ask for full membership of the default partition", Play: reservedKeys},
		{ID: "T4", Threat: "lose or cut off the file of partitions, so that every port becomes a full member", Play: lostPartitions},
		{ID: "T5", Threat: "choose a P_Key by arithmetic that another tenant has", Needs: drill.NeedsService},
		{ID: "T6", Threat: "become the next owner of a P_Key that a switched-off host still holds", Play: staleKey},
		{ID: "T7", Threat: "overflow a P_Key table, so that a member is silently left out or not enforced", Play: fullTable},
		{ID: "T8", Threat: "be in one partition in both forms, full and limited", Play: bothForms},
		{ID: "T9", Threat: "wait until a table is compacted and a queue pair's index means another partition", Play: movedIndex},
		{ID: "T10", Threat: "use the time between the writes to a switch port and to its HCA", Play: betweenWrites},
		{ID: "T11", Threat: "leave the subnet through a router with a tenant's P_Key", Play: throughRouter},
		{ID: "T12", Threat: "drive the aggregation manager, or share its nodes between tenants", Play: administration.Aggregation},
		{ID: "T13", Threat: "mint the GUID of another port as an alias for a virtual function", Play: mintedAlias},
		{ID: "T14", Threat: "send raw packets, which carry no P_Key", Play: rawPackets},
		{ID: "T15", Threat: "use a storage partition as a bridge to other tenants", Play: sharedPartition},
		{ID: "T16", Threat: "have a partition deleted and created again while members remain", Needs: drill.NeedsService},
	}
}

// foreignPKey is T1.
func foreignPKey(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Victim("h1", "h5")
	t.Attack()
	s.Tried("h1 of tenant A sends 20 packets with tenant B's P_Key %v and its limited form to each host of B, and to a host of no tenant", drill.KeyB)
	fates := make(map[sim.Fate]int)
	for range 20 {
		for _, to := range []string{"h2", "h6", "h7"} {
			for _, k := range []ib.PKey{drill.KeyB, drill.KeyB.Limited()} {
				r := t.Send("h1", to, k)
				fates[r.Fate]++
				s.Check(r.Fate != sim.Delivered, "a packet of h1 with P_Key %v reached %s", k, to)
			}
		}
	}
	for f, n := range fates {
		if f == sim.PKeyInbound {
			s.Stopped("the switch port in front of h1 dropped %d packets: %v", n, f)
		}
	}
	told := t.PKeyViolation("h1", drill.KeyB, drill.KeyB.Limited())
	t.Reported(2*time.Second, "the dropped packets", told)
	t.Run(5 * time.Second)
	lines := 0
	for _, h := range t.Since(t.Begun) {
		if v, ok := h.Event.(*violation.Violation); ok && told(v) && !v.Quiet {
			lines++
		}
	}
	s.Check(lines <= 4, "the attack is reported %d times: that many lines bury others", lines)
	muteSwitches(s)
}

// muteSwitches is T1 on switches that send no trap of a wrong P_Key.
func muteSwitches(s *drill.Scene) {
	o := drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{Counters: sm.CountersConfig{Mute: counterPeriod}}}
	*o.Device() = sim.Modern()
	o.Device().NoPKeyTraps = true
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Victim("h1", "h5")
	t.Run(2 * counterPeriod)
	t.Attack()
	s.Tried("the same on switches that send no trap 259: h1 sends 300 packets with tenant B's P_Key, more than their counter of 8 bits holds, and 20 more later")
	place, guid := t.Place("h1", 1), t.GUID("h1", 1)
	for _, n := range []int{300, 20} {
		stopped := 0
		for range n {
			if r := t.Send("h1", "h2", drill.KeyB); r.Fate == sim.PKeyInbound {
				stopped++
			} else {
				s.Check(r.Fate != sim.Delivered, "a packet of h1 with P_Key %v reached h2", drill.KeyB)
			}
		}
		told := drill.Is(func(e *violation.Violation) bool {
			return e.Kind == violation.BadPKey && e.Trap == 0 && e.Place == place && e.GUID == guid && e.By == violation.ByPort && e.Verdict == violation.Confirmed
		})
		if !t.Reported(counterPeriod+2*time.Second, "the packets that the switch port counted", told) {
			s.Check(false, "h1 goes on: no report says which port to close")
			return
		}
		s.Stopped("the switch port in front of h1 dropped %d packets and counted them, which is read within %v", stopped, counterPeriod)
		t.Attack()
	}
	s.Must(t.Settle(drill.SettleTime))
}

// defaultPartition is T2.
func defaultPartition(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Attack()
	s.Tried("h1 and h5 send to hosts of tenant B with the limited and the full form of the default P_Key, and to the manager")
	for _, to := range []string{"h2", "h6", "h7", "h5"} {
		for _, k := range []ib.PKey{ib.DefaultPKeyLimited, ib.DefaultPKeyFull} {
			r := t.Send("h1", to, k)
			if s.Check(r.Fate != sim.Delivered, "a packet of h1 with the default P_Key %v reached %s", k, to) {
				s.Stopped("from one host to another, %v: %v", k, r.Fate)
			}
		}
	}
	r := t.Send("h1", "sm", ib.DefaultPKeyLimited)
	s.Check(r.Fate == sim.Delivered, "what h1 sends to the manager does not arrive: %v at %s", r.Fate, r.At.Node)
	for _, h := range []string{"h1", "h2", "h7"} {
		s.Check(t.Fabric.PKeyAt(h, 1, 0) == ib.DefaultPKeyLimited, "%s has the default P_Key as %v", h, t.Fabric.PKeyAt(h, 1, 0))
	}
	s.Check(t.Fabric.PKeyAt("sm", 1, 0) == ib.DefaultPKeyFull, "the manager is no full member of the default partition")
	t.Reported(2*time.Second, "the dropped packets", t.PKeyViolation("h1", ib.DefaultPKeyLimited, ib.DefaultPKeyFull))
}

// movedIndex is T9.
func movedIndex(s *drill.Scene) {
	tenants := []drill.Tenant{
		{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h1", "h6"}}, {Name: "C", PKey: drill.KeyC, Hosts: []string{"h1", "h7"}},
	}
	t := s.Site(drill.SiteOptions{Tenants: tenants})
	at := make(map[ib.PKey]int)
	for i := range 8 {
		if k := t.Fabric.PKeyAt("h1", 1, i); k != 0 {
			at[k] = i
		}
	}
	s.Check(len(at) == 4, "h1 holds %v, want three tenants' keys and the default one", at)
	for _, tn := range tenants[1:] {
		t.Victims = append(t.Victims, t.Flow("h1", tn.Hosts[1], tn.PKey))
	}
	t.Attack()
	s.Tried("h1 holds the P_Keys of three tenants, the first of which goes; queue pairs of h1 refer to the others by their index")
	t.Withdraw(t.GrantOf("h1", 1, drill.KeyA))
	s.Must(t.Settle(drill.SettleTime))
	for _, k := range []ib.PKey{drill.KeyB, drill.KeyC} {
		s.Check(t.Fabric.PKeyAt("h1", 1, at[k]) == k, "index %d of h1 meant %v and now means %v", at[k], k, t.Fabric.PKeyAt("h1", 1, at[k]))
	}
	s.Check(t.Fabric.PKeyAt("h1", 1, at[drill.KeyA]) == 0, "index %d of h1 still has %v", at[drill.KeyA], t.Fabric.PKeyAt("h1", 1, at[drill.KeyA]))
	s.Stopped("%v and %v stay at index %d and %d, index %d is empty", drill.KeyB, drill.KeyC, at[drill.KeyB], at[drill.KeyC], at[drill.KeyA])
	const next ib.PKey = 0x8004
	t.Grant(t.GrantOf("h1", 1, next))
	s.Must(t.Settle(drill.SettleTime))
	s.Check(t.Fabric.PKeyAt("h1", 1, at[drill.KeyA]) != next, "the index that is free since a moment ago means %v now", next)
	t.Reported(time.Second, "that the port left the partition", drill.Is(func(e *sm.MembershipRemoved) bool { return e.PKey == drill.KeyA }))
}

// reservedKeys is T3.
func reservedKeys(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h2", "h6")
	t.Attack()
	s.Tried("the service is made to ask for h1 in the partitions 0x7fff, 0xffff, 0x8000 and 0x0000")
	for _, k := range []ib.PKey{ib.DefaultPKeyLimited, ib.DefaultPKeyFull, 0x8000, 0} {
		t.Grant(t.GrantOf("h1", 1, k))
		t.Reported(5*time.Second, fmt.Sprintf("the refusal of P_Key %v", k), drill.Is(func(e *sm.MembershipRefused) bool {
			return e.GUID == t.GUID("h1", 1) && e.PKey.Base() == k.Base()
		}))
	}
	s.Must(t.Settle(drill.SettleTime))
	s.Check(t.Fabric.PKeyAt("h1", 1, 0) == ib.DefaultPKeyLimited, "h1 has the default P_Key as %v", t.Fabric.PKeyAt("h1", 1, 0))
	for _, at := range []sim.Endpoint{drill.Port("h1"), t.SwitchPort("h1", 1)} {
		keys := t.Fabric.PKeys(at.Node, at.Port)
		s.Check(len(keys) == 2, "%s port %d holds %v, want the default P_Key and %v", at.Node, at.Port, keys, drill.KeyA)
	}
	r := t.Send("h1", "h2", ib.DefaultPKeyFull)
	if s.Check(r.Fate != sim.Delivered, "h1 reached h2 over the default partition") {
		s.Stopped("the manager refuses reserved P_Keys to every client: h1 stays a limited member, its packet ends as %v", r.Fate)
	}
	for _, line := range []string{"Default=0x7fff : ALL=full;", "0xffff : SELF=full, 0x10=full;", "A=0x8000 : 0x10=full;", "A=0 : 0x10=full;"} {
		_, err := conf.Parse("partitions.conf", []byte(line))
		if s.Check(err != nil, "the file of partitions may say %q", line) {
			s.Stopped("the file of partitions: %v", err)
		}
	}
}

// lostPartitions is T4.
func lostPartitions(s *drill.Scene) {
	s.Tried("the file of partitions is cut off in the middle")
	const file = "A=1 : 0x0002c90300000001=full, 0x0002c903000"
	if _, err := conf.Parse("partitions.conf", []byte(file)); s.Check(err != nil, "a file that ends in %q is accepted", file) {
		s.Stopped("the file is refused as a whole, what was in force stays: %v", err)
	}
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), SM: sm.Config{IntentWait: 30 * time.Second}})
	t.Victim("h2", "h6")
	s.Tried("the manager starts again and gets no list of partitions")
	t.Attack()
	t.Crash()
	t.Start()
	t.Until(10*time.Second, func() bool { return t.View() != nil })
	t.Counted(t.View() != nil && !t.View().Intent, "the manager's state says that no intent has come")
	t.Run(25 * time.Second)
	for _, f := range t.Victims {
		f.Stop() // up to here the tables were left as they were found
	}
	s.Check(t.View() != nil && !t.View().Intent, "the manager says that it knows the partitions")
	t.Run(time.Minute)
	onlyLimited(t)
	for _, h := range []string{"h1", "h2"} {
		s.Check(len(t.TenantKeys(t.SwitchPort(h, 1))) == 0, "the port of %s holds %v although that is not wanted", h, t.TenantKeys(t.SwitchPort(h, 1)))
	}
	for _, k := range []ib.PKey{ib.DefaultPKeyLimited, ib.DefaultPKeyFull, drill.KeyB} {
		r := t.Send("h1", "h2", k)
		s.Check(r.Fate != sim.Delivered, "h1 reaches h2 with P_Key %v", k)
	}
	s.Stopped("tables are left as they are for a while, and then no port is in any tenant's partition")
}

// onlyLimited demands that hosts are limited members of the default partition.
func onlyLimited(t *drill.Site) {
	for i := range t.List.Nodes {
		n := &t.List.Nodes[i]
		if n.Type != ib.NodeCA || n.Name == "sm" {
			continue
		}
		for _, k := range t.Fabric.PKeys(n.Name, 1) {
			t.Scene.Check(k != ib.DefaultPKeyFull, "%s is a full member of the default partition", n.Name)
		}
	}
}
