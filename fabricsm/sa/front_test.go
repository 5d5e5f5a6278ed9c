package sa_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

func packetOf(class mad.Class, method mad.Method, lid ib.LID) *transport.Packet {
	p := &transport.Packet{LID: lid, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: class, ClassVersion: 1, Method: method, Attr: mad.AttrNotice})
	return p
}

// A port that floods with SMPs and in unserved classes takes nothing from other ports, and is reported with its place.
func TestFrontLimitsEveryClass(t *testing.T) {
	r := newRig(t, nil)
	f := r.Administration().Front()
	now := testbed.Epoch.Add(r.Now())
	h1, h2 := r.Fabric.PortInfo("h1", 1).LID, r.Fabric.PortInfo("h2", 1).LID
	kinds := []*transport.Packet{
		packetOf(mad.ClassComMgt, mad.MethodSend, h1), packetOf(mad.ClassPerf, mad.MethodGetResp, h1),
		packetOf(mad.ClassSubn, mad.MethodTrap, h1), packetOf(mad.ClassSubn, mad.MethodGet, h1),
	}
	passed := 0
	for i := range 100_000 {
		if f.Admit(now.Add(time.Duration(i)*time.Microsecond), kinds[i%len(kinds)]) {
			passed++
		}
	}
	now = now.Add(100 * time.Millisecond)
	cfg := limiter.DefaultConfig()
	most := cfg.Other.Node.Burst + cfg.Other.Node.Rate/10 + cfg.Management.Node.Burst + cfg.Management.Node.Rate/10
	if passed > most {
		t.Errorf("%d packets of one port passed in 0.1 s, want at most %d", passed, most)
	}
	for _, p := range kinds {
		other := *p
		other.LID = h2
		if !f.Admit(now, &other) {
			t.Errorf("class %v of another port is dropped", p.MAD.Class())
		}
	}
	if got := testing.AllocsPerRun(100, func() { f.Admit(now, kinds[0]) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
	events := f.Report(f.Next())
	if len(events) != 1 {
		t.Fatalf("told %v, want one port", events)
	}
	v := events[0].(*sa.Violation)
	if v.Verdict != trust.Flood || v.GUID != r.GUID("h1", 1) || v.Place != r.Place("h1", 1) || v.Count < uint64(100_000-most) {
		t.Errorf("told %v", v)
	}
	s := f.Status()
	if len(s.Violations) != 1 || s.Violations[0].GUID != v.GUID || s.Violations[0].Count != v.Count {
		t.Errorf("listed %v", s.Violations)
	}
	if n := s.Limiter[limiter.Management][limiter.NodeRate] + s.Limiter[limiter.Other][limiter.NodeRate]; n < v.Count || s.Limiter[limiter.Management][limiter.Pass] == 0 {
		t.Errorf("%d are counted as dropped, of %d", n, v.Count)
	}
}

// directed sends a request over a directed route from a host to the manager, as it arrives. The switches wrote the entry
// ports; the bytes after them are chosen by the sender.
func directed(t *testing.T, r *rig, from string, tail byte, over ...string) *transport.Packet {
	t.Helper()
	p := packetOf(mad.ClassSubnDR, mad.MethodGet, ib.PermissiveLID)
	p.MAD.SetAttr(mad.AttrSMInfo)
	path := []string{from}
	path = append(append(path, over...), "sm")
	var route mad.Route
	for range len(path) - 1 {
		route, _ = route.Append(1)
	}
	p.MAD.SetRoute(&route)
	back := p.MAD.ReturnPath()
	for i := range len(path) - 1 {
		back[i+1] = byte(portTo(t, r, path[i+1], path[i]))
	}
	back[len(back)-1] = tail
	return p
}

// portTo is the port of a node that is cabled to another.
func portTo(t *testing.T, r *rig, node, to string) ib.PortNum {
	t.Helper()
	for num, p := range r.List.Find(node).Ports {
		if num > 0 && p.Peer == to {
			return ib.PortNum(num)
		}
	}
	t.Fatalf("%s has no cable to %s", node, to)
	return 0
}

// leafOf is the switch of a host.
func leafOf(r *rig, host string) string { return r.List.Find(host).Ports[1].Peer }

// A directed route has no LID. Its sender is the adapter at the end of its way back, independent of its path and
// the bytes after the hops. One host has one allowance, takes nothing from another, and is reported by its name and place.
func TestFrontFindsWhoSentADirectedRoute(t *testing.T) {
	r := newRig(t, nil)
	f := r.Administration().Front()
	now := testbed.Epoch.Add(r.Now())
	h1, h2, leaf := leafOf(r, "h1"), leafOf(r, "h2"), leafOf(r, "sm")
	detour := []string{h1}
	if h1 == leaf {
		for num, p := range r.List.Find(leaf).Ports {
			if num > 0 && p.Peer != "" && r.List.Find(p.Peer).Type == ib.NodeSwitch {
				detour = append(detour, p.Peer, leaf)
				break
			}
		}
	}
	passed := 0
	for i := range 50_000 {
		way := []string{h1}
		if i%2 == 1 && len(detour) > 1 {
			way = detour
		}
		if f.Admit(now, directed(t, r, "h1", byte(i), way...)) {
			passed++
		}
	}
	if cfg := limiter.DefaultConfig(); passed > cfg.Management.Node.Burst {
		t.Errorf("%d questions of one host passed at once, want at most %d", passed, cfg.Management.Node.Burst)
	}
	if !f.Admit(now, directed(t, r, "h2", 0, h2)) {
		t.Error("another host is dropped")
	}
	events := f.Report(f.Next())
	if len(events) != 1 {
		t.Fatalf("told %v, want one port", events)
	}
	if v := events[0].(*sa.Violation); v.GUID != r.GUID("h1", 1) || v.Place != r.Place("h1", 1) {
		t.Errorf("told %v, want h1 at %v", v, r.Place("h1", 1))
	}
}

// Where the way back leaves the known fabric, all devices behind that switch port are one sender, and the report names the
// port.
func TestFrontNamesTheLastKnownPort(t *testing.T) {
	r := newRig(t, nil)
	f := r.Administration().Front()
	leaf := r.List.Find(leafOf(r, "sm"))
	free := portTo(t, r, leaf.Name, "h2")
	if err := r.Fabric.Unlink("h2", 1); err != nil { // the next neighbor there is not discovered yet
		t.Fatal(err)
	}
	r.settle()
	now := testbed.Epoch.Add(r.Now())
	p := directed(t, r, "sm", 0, leaf.Name)
	passed := 0
	for i := range 10_000 {
		p.MAD.ReturnPath()[1] = byte(free)
		p.MAD.ReturnPath()[63] = byte(i)
		if f.Admit(now, p) {
			passed++
		}
	}
	if most := limiter.DefaultConfig().Management.Node.Burst; passed > most {
		t.Errorf("%d passed at once, want at most %d", passed, most)
	}
	events := f.Report(f.Next())
	if want := (ib.Place{Switch: leaf.GUID, Port: free}); len(events) != 1 || events[0].(*sa.Violation).Place != want {
		t.Errorf("told %v, want one at %v", events, want)
	}
}
