package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/topo"
)

// TestFDR10IsShown checks that a speed that PortInfo shows as QDR is read once more on devices that may mean FDR10. A link
// at QDR between two devices that could do FDR10 is slow.
func TestFDR10IsShown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		link   string
		vendor uint32
		lies   bool // h1 says that its link is not at FDR10
		speed  ib.Speed
		reads  int
		slow   int
	}{
		{"FDR10", "4xFDR10", mad.VendorMellanox, false, ib.FDR10, 6, 0},
		{"FDR10, one link not", "4xFDR10", mad.VendorMellanox, true, ib.FDR10, 6, 1},
		{"QDR", "4xQDR", mad.VendorMellanox, false, ib.QDR, 6, 0},
		{"of somebody else", "4xFDR10", 0x1234, false, ib.QDR, 0, 0},
		{"FDR", "4xFDR", mad.VendorMellanox, false, ib.FDR, 0, 0},
		{"EDR", "4xEDR", mad.VendorMellanox, false, ib.EDR, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4, Link: tt.link})
			list(t, l, err)
			for i := range l.Nodes {
				l.Nodes[i].VendorID = tt.vendor
			}
			e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
			if tt.lies {
				e.meddle = func(_ bool, m *mad.MAD) {
					var x mad.MlnxExtendedPortInfo
					if m.Attr() != mad.AttrMlnxExtendedPortInfo || m.Route().Len() != 2 || m.Route().At(1) != 2 || mad.Decode(m.Data(), &x) != nil {
						return
					}
					x.LinkSpeedActive = 0
					if err := mad.Encode(m.Data(), &x); err != nil {
						t.Error(err)
					}
				}
			}
			e.start()
			e.mustSettle(time.Second)
			e.takeEvents()
			e.run(3 * time.Second)
			if n := e.smps["Get MlnxExtendedPortInfo"]; n != tt.reads {
				t.Errorf("%d reads of MlnxExtendedPortInfo, want %d", n, tt.reads)
			}
			f := e.view.Fabric
			others := 0
			for i := range f.Ports() {
				p := f.Port(i)
				if p.Peer != topo.None && p.Speed != tt.speed {
					others++
				}
			}
			if others != tt.slow {
				t.Errorf("%d ends of links are not shown at %v, want %d", others, tt.speed, tt.slow)
			}
			slow := 0
			for _, ev := range e.takeEvents() {
				switch ev := ev.(type) {
				case *linkspeed.SlowLink:
					slow++
					if ev.Expected != ib.FDR10 || ev.Speed != ib.QDR {
						t.Errorf("%v", ev)
					}
				case *sm.Settled:
					t.Errorf("the reads unsettled the fabric: %v", ev)
				}
			}
			if slow != tt.slow {
				t.Errorf("%d slow links are told, want %d", slow, tt.slow)
			}
		})
	}
}

// TestFDR10Policy: a policy of link speeds that reaches up to FDR10 enables it, one
// that ends at QDR disables it, and the link is trained to it if that is wanted.
func TestFDR10Policy(t *testing.T) {
	ports := func(most ib.Speed, retrain bool) portpolicy.Config {
		return portpolicy.Config{Link: portpolicy.Link{MaxSpeed: most}, Retrain: retrain}
	}
	for _, tt := range []struct {
		name  string
		ports portpolicy.Config
		sets  int
		speed ib.Speed // of the hosts' links
	}{
		{"as found", portpolicy.Config{}, 0, ib.FDR10},
		{"enabled already", ports(ib.FDR10, true), 0, ib.FDR10},
		{"all", ports(ib.XDR, true), 0, ib.FDR10},
		{"up to QDR", ports(ib.QDR, true), 6, ib.QDR},
		{"up to QDR, at the next training", ports(ib.QDR, false), 6, ib.FDR10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4, Link: "4xFDR10"})
			list(t, l, err)
			for i := range l.Nodes {
				l.Nodes[i].VendorID = mad.VendorMellanox
			}
			e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, Ports: tt.ports}, 1)
			e.start()
			e.mustSettle(time.Second)
			e.run(5 * time.Second)
			e.mustSettle(time.Second)
			check := func(sets int, speed ib.Speed) {
				t.Helper()
				if n := e.smps["Set MlnxExtendedPortInfo"]; n != sets {
					t.Errorf("%d Sets of MlnxExtendedPortInfo, want %d", n, sets)
				}
				f := e.view.Fabric
				for _, h := range hosts(l) {
					if p := f.Port(f.PortByGUID(h.node.PortGUID(1))); p.Speed != speed || p.State != ib.PortActive {
						t.Errorf("the link of %s is shown %v at %v, want %v", h.node.Name, p.State, p.Speed, speed)
					}
				}
			}
			check(tt.sets, tt.speed)
			e.start()
			e.mustSettle(time.Second)
			before := e.sets()
			e.run(5 * time.Second)
			if n := e.sets() - before; n != 0 {
				t.Errorf("%d writes on a settled fabric", n)
			}
			check(tt.sets, tt.speed)
		})
	}
}

// TestFDR10PolicyChanges: a policy that changes while the subnet manager runs.
func TestFDR10PolicyChanges(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4, Link: "4xFDR10"})
	list(t, l, err)
	for i := range l.Nodes {
		l.Nodes[i].VendorID = mad.VendorMellanox
	}
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Second)
	e.run(time.Second)
	policy := e.cfg.Policy()
	for sets, most := range []ib.Speed{ib.QDR, ib.FDR10} {
		policy.Ports.Link.MaxSpeed = most
		e.step(&sm.PolicySet{Policy: policy})
		e.mustSettle(time.Second)
		e.run(time.Second)
		e.mustSettle(time.Second)
		if n := e.smps["Set MlnxExtendedPortInfo"]; n != 4*(sets+1) {
			t.Errorf("up to %v: %d Sets of MlnxExtendedPortInfo, want %d", most, n, 4*(sets+1))
		}
	}
}
