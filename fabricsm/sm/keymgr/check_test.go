package keymgr_test

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

// endPort is a port that has keys of classes.
type endPort struct {
	node string
	num  ib.PortNum
	guid ib.GUID
	sw   bool
}

func endPorts(l *netlist.Netlist) (out []endPort) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Type == ib.NodeSwitch {
			out = append(out, endPort{n.Name, 0, n.GUID, true})
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer != "" {
				out = append(out, endPort{n.Name, ib.PortNum(num), n.PortGUID(ib.PortNum(num)), false})
			}
		}
	}
	return out
}

var classes = map[keys.Kind]mad.Class{
	keys.CCKey: mad.ClassCongestionControl, keys.VSKey: mad.ClassVendorVS, keys.N2NKey: mad.ClassVendorN2N,
}

var kinds = []keys.Kind{keys.CCKey, keys.VSKey, keys.N2NKey}

// checkKeys finds devices that are not on the one key that their record says, or
// do not protect it as configured.
func (e *env) checkKeys() {
	e.t.Helper()
	if e.unsafe != "" {
		e.t.Error(e.unsafe)
	}
	seen := make(map[ib.MKey]string)
	for _, p := range endPorts(e.List) {
		for _, kind := range kinds {
			have, ok := e.Fabric.ClassKey(p.node, p.num, classes[kind])
			rec := e.saved[name{kind, p.guid}]
			switch {
			case !ok || have.Key.IsZero():
				e.t.Errorf("%s/%d has no %v", p.node, p.num, kind)
			case seen[have.Key] != "":
				e.t.Errorf("%s/%d has the %v of %s", p.node, p.num, kind, seen[have.Key])
			case !have.Protect || have.LeasePeriod != 60:
				e.t.Errorf("%s/%d: %v protected %v, lease %d", p.node, p.num, kind, have.Protect, have.LeasePeriod)
			case rec.Current.Key.M() != have.Key || !rec.Pending.IsZero():
				e.t.Errorf("%s/%d is not on the one %v that is saved for it (pending: %v)", p.node, p.num, kind, !rec.Pending.IsZero())
			}
			seen[have.Key] = p.node
		}
	}
	e.checkNotified()
}

// checkNotified has all switches notify their neighbours, which must accept the notification.
func (e *env) checkNotified() {
	e.t.Helper()
	before, want := make(map[string]guard.State), make(map[string]uint64)
	for _, p := range endPorts(e.List) {
		if !p.sw {
			continue
		}
		before[p.node], _ = e.Fabric.ClassKey(p.node, 0, mad.ClassVendorN2N)
		for _, port := range e.List.Find(p.node).Ports {
			if port.Peer != "" && e.List.Find(port.Peer).Type == ib.NodeSwitch {
				want[port.Peer]++
			}
		}
	}
	// By default our partitions keep switches from talking to each other: they are
	// limited members of the default partition.
	if !e.SM.ClassKeys.FullSwitches {
		e.memberships(ib.DefaultPKeyFull)
		defer e.memberships(ib.DefaultPKeyLimited)
	}
	for node := range before {
		if err := e.Fabric.NotifyNeighbors(node); err != nil {
			e.t.Fatal(err)
		}
	}
	for node, was := range before {
		is, _ := e.Fabric.ClassKey(node, 0, mad.ClassVendorN2N)
		if is.Notified-was.Notified != want[node] || is.NodeViolations != was.NodeViolations {
			e.t.Errorf("%s believed %d of %d neighbours, refused %d", node, is.Notified-was.Notified, want[node], is.NodeViolations-was.NodeViolations)
		}
	}
}

// memberships sets what all switches are in the default partition, at each switch
// itself.
func (e *env) memberships(k ib.PKey) {
	e.t.Helper()
	for _, p := range endPorts(e.List) {
		if !p.sw {
			continue
		}
		st, err := e.Fabric.Station(p.node, false)
		if err != nil {
			e.t.Fatal(err)
		}
		q := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&q.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, TID: 79}, &mad.Route{}, ib.MKey{})
		q.MAD.Data()[0], q.MAD.Data()[1] = byte(k>>8), byte(k)
		if got := st.Exchange([]transport.Packet{q}, nil); len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
			e.t.Fatalf("Set P_KeyTable of %s: %v", p.node, got)
		}
		st.Close()
	}
}
