package sm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
)

// linked is a fat tree whose cables are all of one kind.
func linked(t testing.TB, hosts, radix int, link string) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: radix, Link: link})
	return list(t, l, err)
}

// cabled returns all ports of a netlist with a cable.
func cabled(l *netlist.Netlist) (out []endPort) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer != "" {
				out = append(out, endPort{node: n, num: ib.PortNum(num), peer: n.Ports[num].Peer, pnum: n.Ports[num].PeerPort})
			}
		}
	}
	return out
}

type enabled struct {
	width ib.LinkWidth
	speed ib.Speed
}

func (e *env) enabledOn(node string, num ib.PortNum) enabled {
	pi := e.fab.PortInfo(node, num)
	return enabled{pi.LinkWidthEnabled, ib.Fastest(pi.LinkSpeedEnabled, ib.LinkSpeedExt(pi.LinkSpeedExtEnabled), ib.LinkSpeedExt2(pi.LinkSpeedExtEnabled2))}
}

func (e *env) runsAt(node string, num ib.PortNum) enabled {
	pi := e.fab.PortInfo(node, num)
	return enabled{pi.LinkWidthActive, ib.Fastest(pi.LinkSpeedActive, pi.LinkSpeedExtActive, ib.LinkSpeedExt2(pi.LinkSpeedExtActive2))}
}

// TestLinkPolicy: speeds and widths are written where they differ and nowhere
// else, and a restart writes nothing.
func TestLinkPolicy(t *testing.T) {
	for _, tt := range []struct {
		name, link string
		policy     portpolicy.Link
		want       enabled
		writes     bool
	}{
		{"as found", "4xEDR", portpolicy.Link{}, enabled{3, ib.EDR}, false},
		{"supported", "4xEDR", portpolicy.Link{MaxSpeed: ib.XDR, MaxWidth: ib.Width12x}, enabled{31, ib.NDR}, true},
		{"slower", "4xHDR", portpolicy.Link{MaxSpeed: ib.EDR}, enabled{3, ib.EDR}, true},
		{"what runs", "4xHDR", portpolicy.Link{MaxSpeed: ib.HDR}, enabled{3, ib.HDR}, false},
		{"no extended speed", "4xHDR", portpolicy.Link{MaxSpeed: ib.QDR}, enabled{3, ib.QDR}, true},
		{"slowest", "4xSDR", portpolicy.Link{MaxSpeed: ib.SDR}, enabled{3, ib.SDR}, false},
		{"narrower", "4xEDR", portpolicy.Link{MaxWidth: ib.Width1x}, enabled{1, ib.EDR}, true},
		{"XDR", "4xXDR", portpolicy.Link{MaxSpeed: ib.XDR, MaxWidth: ib.Width4x}, enabled{19, ib.XDR}, true},
		{"fastest and widest", "4xXDR", portpolicy.Link{MaxSpeed: ib.XDR, MaxWidth: ib.Width12x}, enabled{31, ib.XDR}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := linked(t, 8, 8, tt.link)
			e := newEnv(t, l, sim.Options{}, sm.Config{Ports: portpolicy.Config{Link: tt.policy}}, 1)
			wrote := 0
			e.logSend = func(r *sm.Request) {
				var pi mad.PortInfo
				if r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Method() == mad.MethodSet && mad.Decode(r.MAD.Data(), &pi) == nil &&
					pi.LinkWidthEnabled|ib.LinkWidth(pi.LinkSpeedEnabled)|ib.LinkWidth(pi.LinkSpeedExtEnabled|pi.LinkSpeedExtEnabled2) != 0 {
					wrote++
				}
			}
			e.start()
			e.mustSettle(10 * time.Second)
			ports := cabled(l)
			for _, p := range ports {
				if got := e.enabledOn(p.node.Name, p.num); got != tt.want {
					t.Errorf("%s port %d is enabled for %v %v, want %v %v", p.node.Name, p.num, got.width, got.speed, tt.want.width, tt.want.speed)
				}
			}
			if want := map[bool]int{true: len(ports)}[tt.writes]; wrote != want {
				t.Errorf("%d Sets wrote speeds or widths, want %d", wrote, want)
			}
			if len(e.problems()) > 0 {
				t.Errorf("problems %q", e.problems())
			}
			e.start()
			clear(e.smps)
			e.mustSettle(10 * time.Second)
			if n := e.sets(); n != 0 {
				t.Errorf("%d Sets after a restart: %v", n, e.smps)
			}
		})
	}
}

// TestRetrain: where it is requested, links run at the enabled values, our own one after the next training, and each was
// taken down once.
func TestRetrain(t *testing.T) {
	l := linked(t, 8, 8, "4xHDR")
	e := newEnv(t, l, sim.Options{}, sm.Config{Ports: portpolicy.Config{Link: portpolicy.Link{MaxSpeed: ib.EDR}, Retrain: true}}, 1)
	down := map[string]int{}
	e.logSend = func(r *sm.Request) {
		var pi mad.PortInfo
		if r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Method() == mad.MethodSet && mad.Decode(r.MAD.Data(), &pi) == nil && pi.PortState == ib.PortDown {
			path := r.MAD.InitialPath()
			down[fmt.Sprintf("%x, port %d", path, r.MAD.Mod())]++
		}
	}
	e.start()
	e.mustSettle(20 * time.Second)
	own := l.Find("sm").Ports[1]
	for _, p := range cabled(l) {
		want := enabled{2, ib.EDR}
		if p.node.Name == "sm" || p.node.Name == own.Peer && p.num == own.PeerPort {
			want.speed = ib.HDR
		}
		if got := e.runsAt(p.node.Name, p.num); got != want {
			t.Errorf("%s port %d runs at %v %v, want %v %v", p.node.Name, p.num, got.width, got.speed, want.width, want.speed)
		}
	}
	if links := len(cabled(l))/2 - 1; len(down) != links {
		t.Errorf("%d ports were taken down, want one for each of %d links: %v", len(down), links, down)
	}
	for p, n := range down {
		if n != 1 {
			t.Errorf("%s was taken down %d times", p, n)
		}
	}
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not active: %q", bad)
	}
}

// TestSlowLink: a link on one lane of four is reported, and no longer when it is repaired.
func TestSlowLink(t *testing.T) {
	l := linked(t, 8, 8, "4xHDR")
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: 2 * time.Second}, 1)
	h := hosts(l)[2]
	bad := true
	e.meddle = func(_ bool, m *mad.MAD) {
		var pi mad.PortInfo
		if !bad || m.Attr() != mad.AttrPortInfo || mad.Decode(m.Data(), &pi) != nil || pi.LID == 0 && pi.CapabilityMask == 0 || pi.GUIDCap == 0 {
			return
		}
		if pi.LID == e.fab.PortInfo(h.node.Name, 1).LID && pi.CapabilityMask == e.fab.PortInfo(h.node.Name, 1).CapabilityMask {
			pi.LinkWidthActive, pi.LinkSpeedExtActive = ib.Width1x, ib.SpeedFDR
			if err := mad.Encode(m.Data(), &pi); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.start()
	e.mustSettle(10 * time.Second)
	e.run(5 * time.Second)
	const want = "runs at 1x FDR, but both ends are enabled for 4x HDR: check the cable"
	slow := 0
	for _, p := range e.problems() {
		if strings.Contains(p, want) && strings.Contains(p, h.place.String()) {
			slow++
		}
	}
	if slow != 1 {
		t.Errorf("%d times told that the link of %s is slow, want once: %q", slow, h.node.Name, e.problems())
	}
	bad = false
	e.run(5 * time.Second)
	for _, p := range e.problems() {
		if strings.Contains(p, h.place.String()) {
			t.Errorf("still told after the repair: %s", p)
		}
	}
}

// TestPortRules: rules for single ports come before those for all.
func TestPortRules(t *testing.T) {
	l := linked(t, 16, 8, "4xHDR")
	hs := hosts(l)
	byPort, byNode, byPlace, off, spine := hs[0], hs[1], hs[2], hs[3], l.Find("spine1")
	own := l.Find("sm").Ports[1]
	e := newEnv(t, l, sim.Options{}, sm.Config{Ports: portpolicy.Config{
		MaxMTU: ib.MTU2048,
		Rules: []portpolicy.Rule{
			{GUID: byPort.node.PortGUID(1), MaxMTU: ib.MTU1024},
			{GUID: byNode.node.GUID, MaxVLs: 1},
			{GUID: byPlace.place.Switch, Port: byPlace.place.Port, MaxMTU: ib.MTU512, Link: portpolicy.Link{MaxSpeed: ib.FDR}},
			{GUID: off.place.Switch, Port: off.place.Port, Disabled: true},
			{GUID: spine.GUID, MaxMTU: ib.MTU4096, MaxVLs: 2},
			{GUID: l.Find(own.Peer).GUID, Port: own.PeerPort, Disabled: true}, // would cut us off
		},
	}}, 1)
	e.start()
	e.mustSettle(20 * time.Second)
	for _, tt := range []struct {
		name string
		p    endPort
		mtu  ib.MTU
		vls  ib.VLCap
	}{
		{"the port", byPort, ib.MTU1024, 4},
		{"its node", byNode, ib.MTU2048, 1},
		{"its switch port", byPlace, ib.MTU512, 4},
		{"no rule", hs[4], ib.MTU2048, 4},
		{"one end says less", endPort{node: spine, num: 1, peer: spine.Ports[1].Peer, pnum: spine.Ports[1].PeerPort}, ib.MTU2048, 2},
	} {
		for _, pi := range []mad.PortInfo{e.fab.PortInfo(tt.p.node.Name, tt.p.num), e.fab.PortInfo(tt.p.peer, tt.p.pnum)} {
			if pi.NeighborMTU != tt.mtu || pi.OperationalVLs != tt.vls {
				t.Errorf("%s: MTU %v and %v, want %v and %v", tt.name, pi.NeighborMTU, pi.OperationalVLs, tt.mtu, tt.vls)
			}
		}
	}
	if got := e.enabledOn(byPlace.peer, byPlace.pnum); got.speed != ib.FDR {
		t.Errorf("the switch port is enabled for %v, want FDR", got.speed)
	}
	if got := e.enabledOn(byPlace.node.Name, 1); got.speed != ib.HDR {
		t.Errorf("the host behind it is enabled for %v, want HDR", got.speed)
	}
	if pi := e.fab.PortInfo(off.peer, off.pnum); pi.PortState != ib.PortDown || pi.PortPhysicalState != ib.PhysDisabled {
		t.Errorf("the disabled port is %v, %v", pi.PortState, pi.PortPhysicalState)
	}
	if pi := e.fab.PortInfo(own.Peer, own.PeerPort); pi.PortState != ib.PortActive {
		t.Errorf("our own link is %v", pi.PortState)
	}
	e.start()
	e.mustSettle(10 * time.Second) // forgets the routes of the host that was cut off
	e.start()
	clear(e.smps)
	e.mustSettle(10 * time.Second)
	if n := e.sets(); n != 0 {
		t.Errorf("%d Sets after a restart: %v", n, e.smps)
	}
}

// mixed is a fabric of rare devices: a router, an HCA with two ports, a switch with an enhanced port 0, and one with 254
// ports.
func mixed(t testing.TB) *netlist.Netlist {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "caguid=0x20000000000000\nCa 1 \"sm\"\n[1]\t\"big\"[254]\n\n")
	fmt.Fprintf(&b, "caguid=0x20000000000100\nCa 2 \"two\"\n[1]\t\"big\"[65]\n[2]\t\"small\"[1]\n\n")
	fmt.Fprintf(&b, "rtguid=0x30000000000000\nRt 2 \"router\"\n[1]\t\"big\"[200]\n\n")
	fmt.Fprintf(&b, "switchguid=0x10000000000001\nSwitch 254 \"big\"\n[65]\t\"two\"[1]\n[130]\t\"small\"[2]\n[200]\t\"router\"[1]\n[254]\t\"sm\"[1]\n\n")
	fmt.Fprintf(&b, "switchguid=0x10000000000002\nSwitch 4 \"small\"\t# \"small\" enhanced port 0 lid 0 lmc 0\n[1]\t\"two\"[2]\n[2]\t\"big\"[130]\n")
	l, err := netlist.Parse("mixed.net", []byte(b.String()))
	return list(t, l, err)
}

func TestRareDevices(t *testing.T) {
	l := mixed(t)
	e := newEnv(t, l, sim.Options{}, sm.Config{Ports: portpolicy.Config{MaxMTU: ib.MTU2048, MaxOperationalVLs: 2, HOQLife: 17, LeafHOQLife: 15, VLStallCount: 5, LeafVLStallCount: 3}}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not active: %q", bad)
	}
	if r := e.fab.PortInfo("router", 1); r.LID == 0 || r.HOQLife != 17 || r.MasterSMLID == 0 {
		t.Errorf("router: LID %v, HOQLife %v, MasterSMLID %v; want an end port with the time towards switches", r.LID, r.HOQLife, r.MasterSMLID)
	}
	one, two := e.fab.PortInfo("two", 1), e.fab.PortInfo("two", 2)
	if one.LID == 0 || two.LID == 0 || one.LID == two.LID {
		t.Errorf("the two ports of an HCA have LIDs %v and %v", one.LID, two.LID)
	}
	if p0 := e.fab.PortInfo("small", 0); p0.LID == 0 || p0.NeighborMTU != ib.MTU2048 || p0.OperationalVLs != 2 {
		t.Errorf("enhanced port 0: LID %v, MTU %v, %v; want the limits of an end port", p0.LID, p0.NeighborMTU, p0.OperationalVLs)
	}
	if p0 := e.fab.PortInfo("big", 0); p0.LID == 0 || p0.NeighborMTU == ib.MTU2048 {
		t.Errorf("base port 0: LID %v, MTU %v; want a LID and no parameters of links", p0.LID, p0.NeighborMTU)
	}
	for _, tt := range []struct {
		num   ib.PortNum
		hoq   ib.ExpTime
		stall uint8
	}{{254, 15, 3}, {200, 15, 3}, {130, 17, 5}} {
		if pi := e.fab.PortInfo("big", tt.num); pi.HOQLife != tt.hoq || pi.VLStallCount != tt.stall || pi.PortState != ib.PortActive {
			t.Errorf("port %d: HOQLife %v, VLStallCount %d, %v; want %v, %d and Active", tt.num, pi.HOQLife, pi.VLStallCount, pi.PortState, tt.hoq, tt.stall)
		}
	}
	e.start()
	clear(e.smps)
	e.mustSettle(10 * time.Second)
	if n := e.sets(); n != 0 {
		t.Errorf("%d Sets after a restart: %v", n, e.smps)
	}
}

// TestLMCOfPort0: only an enhanced port 0 gets several LIDs, and only where that
// is asked for.
func TestLMCOfPort0(t *testing.T) {
	for _, asked := range []bool{false, true} {
		l := mixed(t)
		e := newEnv(t, l, sim.Options{}, sm.Config{LMC: 2, Ports: portpolicy.Config{LMCPort0: asked}}, 1)
		e.start()
		e.mustSettle(10 * time.Second)
		want := ib.LMC(0)
		if asked {
			want = 2
		}
		if got := e.fab.PortInfo("small", 0); got.LMC != want || got.LID&(1<<want-1) != 0 {
			t.Errorf("asked %v: enhanced port 0 has LID %v and LMC %d, want %d", asked, got.LID, got.LMC, want)
		}
		if got := e.fab.PortInfo("big", 0); got.LMC != 0 {
			t.Errorf("asked %v: base port 0 has LMC %d", asked, got.LMC)
		}
		if got := e.fab.PortInfo("two", 1); got.LMC != 2 {
			t.Errorf("asked %v: a host has LMC %d, want 2", asked, got.LMC)
		}
		small := e.fab.PortInfo("small", 0)
		for i := range ib.LID(1) << small.LMC {
			if egress := e.fab.Egress("big", small.LID+i); egress != 130 {
				t.Errorf("asked %v: the switch beside it sends LID %v to port %d, want 130", asked, small.LID+i, egress)
			}
			if egress := e.fab.Egress("small", small.LID+i); egress != 0 {
				t.Errorf("asked %v: it sends its own LID %v to port %d", asked, small.LID+i, egress)
			}
		}
		if len(e.problems()) > 0 {
			t.Errorf("problems %q", e.problems())
		}
		e.start()
		clear(e.smps)
		e.mustSettle(10 * time.Second)
		if n := e.sets(); n != 0 {
			t.Errorf("asked %v: %d Sets after a restart: %v", asked, n, e.smps)
		}
	}
}
