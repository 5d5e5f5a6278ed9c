package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// draft is the revision that has a netlist as it is.
func draft(l *netlist.Netlist) *topospec.Revision {
	r := &topospec.Revision{Number: 1, Fabric: "test"}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		d := topospec.Device{GUID: n.GUID, Kind: topospec.KindHCA, Name: n.Name, Host: n.Name, Model: "ConnectX-7", Ports: uint8(len(n.Ports) - 1)}
		if n.Type == ib.NodeSwitch {
			d.Kind, d.Host, d.Model, d.Rack = topospec.KindSwitch, "", "MQM9700", "7"
		}
		if n.Name == "sm" {
			d.Role = topospec.RoleSM
		}
		r.Devices = append(r.Devices, d)
		for num := 1; num < len(n.Ports); num++ {
			p := n.Ports[num]
			if p.Peer == "" {
				continue
			}
			a, b := topospec.End{GUID: n.GUID, Port: ib.PortNum(num)}, topospec.End{GUID: l.Find(p.Peer).GUID, Port: p.PeerPort}
			if a.Compare(b) < 0 {
				r.Links = append(r.Links, topospec.Link{A: a, B: b})
			}
		}
	}
	return r
}

// law compiles the revision of a netlist.
func law(t testing.TB, l *netlist.Netlist, change ...func(*topospec.Revision)) *topospec.Spec {
	t.Helper()
	r := draft(l)
	for _, f := range change {
		f(r)
	}
	s, err := topospec.Compile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// end is where a host is cabled to.
func (h *endPort) end() topospec.End { return topospec.EndAt(h.place) }

// under is a configuration under a declared topology.
func under(s *topospec.Spec, m topospec.Mode) sm.Config {
	return sm.Config{AuditPeriod: -1, Topology: sm.TopologyConfig{Spec: s, Mode: m}}
}

// linkOf returns the link that ends at a device.
func linkOf(r *topospec.Revision, g ib.GUID) *topospec.Link {
	i := slices.IndexFunc(r.Links, func(l topospec.Link) bool { return l.A.GUID == g || l.B.GUID == g })
	return &r.Links[i]
}

// disabled lists the switch ports of a fabric that are switched off.
func (e *env) disabled() (out []string) {
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		for num := 1; n.Type == ib.NodeSwitch && num < len(n.Ports); num++ {
			if e.fab.PortInfo(n.Name, ib.PortNum(num)).PortPhysicalState == ib.PhysDisabled {
				out = append(out, fmt.Sprintf("%s/%d", n.Name, num))
			}
		}
	}
	return out
}

// verdicts lists where a view has the fabric not as declared.
func (e *env) verdicts() (out []string) {
	for _, p := range e.view.Topology.Ports {
		n := p.Place.String()
		for i := range e.list.Nodes {
			if e.list.Nodes[i].GUID == p.Place.Switch {
				n = fmt.Sprintf("%s/%d", e.list.Nodes[i].Name, p.Place.Port)
			}
		}
		out = append(out, fmt.Sprintf("%s %v %v", n, p.Verdict, p.State))
	}
	return out
}

func topologyFabrics(t *testing.T, f func(t *testing.T, l *netlist.Netlist)) { keyFabrics(t, f) }

// TestTopologyAsDeclared: a fabric that is as declared comes up under each mode as
// without, keys included, and a restart writes nothing.
func TestTopologyAsDeclared(t *testing.T) {
	for mode := topospec.Observe; mode <= topospec.Enforce; mode++ {
		topologyFabrics(t, func(t *testing.T, l *netlist.Netlist) {
			cfg := keyed(t)
			cfg.MKey.Places = keyplace.Declared
			cfg.Topology = sm.TopologyConfig{Spec: law(t, l), Mode: mode}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.mustSettle(time.Minute)
			e.checkKeys()
			tv := e.view.Topology
			if tv.Mode != mode || tv.Verified != tv.Expected || tv.Missing != 0 || len(e.verdicts())+len(e.problems())+len(e.disabled()) > 0 {
				t.Errorf("mode %v: in force %v, %d of %d verified, %d missing, %q, problems %q, off %q",
					mode, tv.Mode, tv.Verified, tv.Expected, tv.Missing, e.verdicts(), e.problems(), e.disabled())
			}
			before := e.sets()
			e.start()
			e.mustSettle(time.Minute)
			e.checkKeys()
			if n := e.sets() - before; n != 0 {
				t.Errorf("mode %v: %d Sets after a restart on a settled fabric, want none", mode, n)
			}
		})
	}
}

// TestNoKeyWithoutDeclaration: by default a device that no topology declares gets no
// key.
func TestNoKeyWithoutDeclaration(t *testing.T) {
	l := tree(t, 4, 8)
	cfg := keyed(t)
	cfg.MKey.Places = keyplace.Declared
	cfg.Topology = sm.TopologyConfig{Mode: topospec.Warn, Spec: law(t, l, func(r *topospec.Revision) {
		x := linkOf(r, l.Find("h2").GUID)
		x.A, x.B, x.State = hosts(l)[1].end(), topospec.End{}, topospec.Reserved
	})}
	e := newEnv(t, l, sim.Options{}, cfg, 1)
	e.start()
	e.mustSettle(time.Minute)
	for _, h := range hosts(l) {
		if has := !e.fab.PortInfo(h.node.Name, h.num).MKey.IsZero(); has != (h.node.Name != "h2") {
			t.Errorf("%s has a key: %v", h.node.Name, has)
		}
	}
}

// spoofed is a fabric under enforcement with a victim's traffic, and an attacker at h5.
func spoofed(t *testing.T, change ...func(*topospec.Revision)) (*env, []*sim.Flow) {
	l := tree(t, 8, 8)
	cfg := under(law(t, l, change...), topospec.Enforce)
	cfg.AuditPeriod = 10 * time.Second
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	e.start()
	in := sm.Intent{Revision: 1}
	for _, h := range hosts(l) {
		if h.node.Name == "h1" || h.node.Name == "h7" {
			in.Grants = append(in.Grants, h.grant(0x8001))
		}
	}
	e.want(in)
	e.mustSettle(10 * time.Second)
	return e, victims(e, sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h7", Port: 1}, 0x8001)
}

// TestSpoofsHitNobodyElse: whose GUID h5 takes, its own port goes dark, no other
// does, and traffic of the tenant loses no packet (T17 to T22).
func TestSpoofsHitNobodyElse(t *testing.T) {
	other := func(g ib.GUID, s topospec.Stock) func(r *topospec.Revision) {
		return func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: g, Kind: topospec.KindHCA, Name: fmt.Sprint(g), Model: "ConnectX-7", Ports: 1, Stock: s})
		}
	}
	for _, tt := range []struct {
		name    string
		guid    func(e *env) ib.GUID
		before  func(e *env)
		verdict verify.Verdict
		change  []func(*topospec.Revision)
	}{
		{"T17 a live host", func(e *env) ib.GUID { return e.list.Find("h1").GUID }, nil, verify.Spoof, nil},
		{"T18 a dark host", func(e *env) ib.GUID { return e.list.Find("h3").GUID }, func(e *env) { e.try(e.fab.PowerOff("h3")) }, verify.Spoof, nil},
		{"T19 an unknown GUID", func(*env) ib.GUID { return 0x00aa000000000001 }, nil, verify.Unknown, nil},
		{"T20 the subnet manager", func(e *env) ib.GUID { return e.list.Find("sm").GUID }, nil, verify.Spoof, nil},
		{"a leaf", func(e *env) ib.GUID { return e.list.Find("leaf1").GUID }, nil, verify.Spoof, nil},
		{"a spine", func(e *env) ib.GUID { return e.list.Find("spine1").GUID }, nil, verify.Spoof, nil},
		{"an aggregation node", func(*env) ib.GUID { return 0x77 }, nil, verify.Spoof, []func(*topospec.Revision){func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x77, Kind: topospec.KindAN, Name: "an", Ports: 1})
		}}},
		{"T25 a retired adapter", func(*env) ib.GUID { return 0x78 }, nil, verify.RetiredGUID, []func(*topospec.Revision){other(0x78, topospec.Retired)}},
		{"a spare, without maintenance", func(*env) ib.GUID { return 0x79 }, nil, verify.Unknown, []func(*topospec.Revision){other(0x79, topospec.Spare)}},
		{"T26 a GUID that no device has", func(*env) ib.GUID { return 0x0100000000000001 }, nil, verify.Malformed, nil},
	} {
		for _, how := range []string{"with a bounce", "in silence"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				e, flows := spoofed(t, tt.change...)
				if tt.before != nil {
					tt.before(e)
					e.run(time.Second)
				}
				h := hosts(e.list)[4]
				dark := fmt.Sprintf("%s/%d", h.peer, h.pnum)
				began := e.now
				if how == "in silence" {
					g := tt.guid(e)
					e.try(e.fab.Lie("h5", 1, mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: g, PortGUID: g + 1, SystemImageGUID: g, PartitionCap: 128}))
				} else {
					bounce(e, "h5", tt.guid(e))
				}
				var took time.Duration
				for until := e.now.Add(30 * time.Second); e.next(until); {
					if took == 0 && len(e.disabled()) > 0 {
						took = e.now.Sub(began)
					}
				}
				if got := e.disabled(); !slices.Equal(got, []string{dark}) {
					t.Errorf("off are %q, want %q; view %q, problems %q", got, dark, e.verdicts(), e.problems())
				}
				i := slices.IndexFunc(e.view.Topology.Ports, func(p declared.TopologyPort) bool { return p.Place == h.place })
				if i < 0 || e.view.Topology.Ports[i].Verdict != tt.verdict {
					t.Errorf("the view says %q, want %v at %s", e.verdicts(), tt.verdict, dark)
				}
				for _, f := range flows {
					if n := f.Counts(); n.Lost+n.Strayed > 0 || n.Sent == 0 {
						t.Errorf("the victim's packets: %+v", n)
					}
				}
				t.Logf("isolated after %v", took)
			})
		}
	}
}

func (e *env) try(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}
