package sim_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/sham"
	"portcullis/fabricsm/transport"
)

// TestPretend: a host shows a switch at the end of every path behind its port, with the configured delay, and behaves
// normally afterwards.
func TestPretend(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(l)
	st, err := f.Station("", true)
	if err != nil {
		t.Fatal(err)
	}
	var host *netlist.Node
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeCA && n.Name != st.Node() {
			host = n
		}
	}
	to := []ib.PortNum{1, host.Ports[1].PeerPort}
	ask := func(method mad.Method, attr mad.AttrID, mod uint32, path ...ib.PortNum) []transport.Packet {
		route := mad.MakeRoute(append(to[:2:2], path...)...)
		p := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&p.MAD, mad.Header{Method: method, TID: 1, Attr: attr, Mod: mod}, &route, ib.MKey{})
		return st.Exchange([]transport.Packet{p}, nil)
	}
	nodeInfo := func(arrived []transport.Packet) (ni mad.NodeInfo) {
		t.Helper()
		if len(arrived) != 1 || arrived[0].Undelivered || !arrived[0].MAD.Returning() {
			t.Fatalf("%d packets arrived, want one answer", len(arrived))
		}
		if err := mad.Decode(arrived[0].MAD.Data(), &ni); err != nil {
			t.Fatal(err)
		}
		return ni
	}
	if err := f.Pretend(host.Name, &sham.Sham{Ports: 64}); err != nil {
		t.Fatal(err)
	}
	seen := map[ib.GUID]bool{}
	for _, path := range [][]ib.PortNum{{}, {2}, {64}, {2, 2}, {64, 64, 64, 64}} {
		ni := nodeInfo(ask(mad.MethodGet, mad.AttrNodeInfo, 0, path...))
		if ni.NodeType != ib.NodeSwitch || ni.NumPorts != 64 || ni.NodeGUID != sham.GUID(path) || seen[ni.NodeGUID] {
			t.Errorf("at %v is %+v", path, ni)
		}
		seen[ni.NodeGUID] = true
	}
	var pi mad.PortInfo
	if a := ask(mad.MethodGet, mad.AttrPortInfo, 17, 2, 2); len(a) != 1 || mad.Decode(a[0].MAD.Data(), &pi) != nil || pi.PortState != ib.PortInit {
		t.Errorf("port 17 is %v, want Init", pi.PortState)
	}
	if n := f.Pretended(host.Name); n != 6 {
		t.Errorf("%d requests are counted, want 6", n)
	}

	if err := f.Pretend(host.Name, &sham.Sham{Ports: 2, Delay: time.Second}); err != nil {
		t.Fatal(err)
	}
	if a := ask(mad.MethodGet, mad.AttrNodeInfo, 0, 2); len(a) != 0 {
		t.Errorf("%d packets arrived at once", len(a))
	}
	f.Advance(time.Second)
	if ni := nodeInfo(st.Take(nil)); ni.NumPorts != 2 {
		t.Errorf("late came %+v", ni)
	}

	if err := f.Pretend(host.Name, nil); err != nil {
		t.Fatal(err)
	}
	if ni := nodeInfo(ask(mad.MethodGet, mad.AttrNodeInfo, 0)); ni.NodeGUID != host.GUID {
		t.Errorf("it is %+v, want itself", ni)
	}
	for _, bad := range []sham.Sham{{}, {Ports: 1}, {Ports: 255}} {
		if f.Pretend(host.Name, &bad) == nil {
			t.Errorf("switches of %d ports are shown", bad.Ports)
		}
	}
	if f.Pretend(l.Nodes[0].Name, &sham.Sham{Ports: 2}) == nil && l.Nodes[0].Type == ib.NodeSwitch || f.Pretend("nobody", nil) == nil {
		t.Error("a switch, or nobody, pretends")
	}
}
