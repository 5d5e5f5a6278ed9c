package replay_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/route/lftfile"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/replay"
)

// chained makes any engine of a record.
func chained(name string, options []byte) (route.Engine, error) {
	engines, err := (&enginelist.Settings{}).Engines(name)
	if err != nil {
		return nil, err
	}
	return replay.Engine(engines[0], options)
}

// settingsFor returns the settings of the engines, as files would set them for a fabric.
func settingsFor(t *testing.T, l *netlist.Netlist) *enginelist.Settings {
	t.Helper()
	s := &enginelist.Settings{
		Lanes: 4, MaxReverseHops: 3, IDs: make(map[ib.GUID]int), Groups: make(map[ib.GUID]int),
		PortOrder: make(map[ib.GUID][]ib.PortNum),
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		switch {
		case n.Type == ib.NodeCA:
			s.ComputeNodes = append(s.ComputeNodes, n.PortGUID(1))
		case n.Name[0] == 's' && len(s.Roots) == 0:
			s.Roots = []ib.GUID{n.GUID}
		}
		if n.Type == ib.NodeSwitch {
			s.IDs[n.GUID] = i
			s.PortOrder[n.GUID] = []ib.PortNum{4, 3, 2, 1}
		}
	}
	return s
}

// play brings a fabric up, changes the policy once it is settled, and returns the record and the last view.
func play(t *testing.T, l *netlist.Netlist, before sm.Config, after *sm.Policy) (file []byte, last *sm.View) {
	t.Helper()
	var b bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		f := sim.NewWith(l, sim.Options{Seed: 3})
		port, err := f.Attach("sm", true)
		if err != nil {
			t.Fatal(err)
		}
		inputs := make(chan sm.Input, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := after == nil
		err = driver.Run(ctx, driver.Options{
			Port: port, Record: replay.NewWriter(&b, 1<<30, noFailure(t)), Core: before, Inputs: inputs,
			OnView: func(v *sm.View) {
				switch {
				case !v.Settled:
				case !told:
					told = true
					inputs <- &sm.PolicySet{Policy: *after}
				case after == nil || v.Tables != nil && v.Tables.Engine == after.Engines[0].Name():
					last = v
					cancel()
				}
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	})
	return b.Bytes(), last
}

func mustReplay(t *testing.T, file []byte) {
	t.Helper()
	r, err := replay.Replay(bytes.NewReader(file), chained)
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 50 {
		t.Errorf("replay: %v, %+v, first difference %+v", err, r, r.Differs)
	}
}

// TestReplayOfEveryEngine records a bring-up with each routing engine and all content of its files, and with quality of
// service. It then records the change to another engine, as a reload makes it.
func TestReplayOfEveryEngine(t *testing.T) {
	tree := netlist.Shape{Hosts: 8, Leaves: 4, Spines: 2, Radix: 8}
	grid := netlist.Shape{Hosts: 8, Size: "4x4", Radix: 8}
	fabrics := map[string]struct {
		make  func(netlist.Shape) (*netlist.Netlist, error)
		shape netlist.Shape
	}{
		"minhop": {netlist.FatTree2, tree}, "updn": {netlist.FatTree2, tree}, "ftree": {netlist.FatTree2, tree},
		"dnup": {netlist.FatTree2, tree}, "file": {netlist.FatTree2, tree},
		"dor": {netlist.Torus, grid}, "torus-2QoS": {netlist.Torus, grid}, "dfsssp": {netlist.Torus, grid},
		"dfp": {netlist.DragonflyPlus, netlist.Shape{Hosts: 8, Radix: 8}},
	}
	options, err := qos.ParseOptions("test", []byte("qos TRUE\nqos_max_vls 4\nqos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3\nqos_vlarb_low 0:1,1:2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range enginelist.Names() {
		t.Run(name, func(t *testing.T) {
			fabric, ok := fabrics[name]
			if !ok {
				t.Fatalf("no fabric is chosen for engine %s", name)
			}
			l, err := fabric.make(fabric.shape)
			if err != nil {
				t.Fatal(err)
			}
			s := settingsFor(t, l)
			cfg := sm.Config{AuditPeriod: -1}
			if slices.Contains([]string{"minhop", "updn", "ftree", "dnup", "file"}, name) {
				cfg.QoS = options // those of several lanes deal service levels themselves
			}
			switch name {
			case "ftree":
				s.Roots = nil
			case "torus-2QoS":
				s.Torus = seeded(t, l)
			case "dfp":
				for i := range l.Nodes {
					if n := &l.Nodes[i]; n.Type == ib.NodeSwitch { // leaf2_1 is of group 2
						s.Groups[n.GUID] = int(n.Name[len(n.Name)-3] - '0')
					}
				}
			case "file":
				_, v := play(t, l, sm.Config{AuditPeriod: -1}, nil)
				s.LFTs = tablesOf(v)
			}
			first, err := s.Engines(name)
			if err != nil {
				t.Fatal(err)
			}
			other := "updn"
			if name == other {
				other = "dfsssp"
			}
			next, err := s.Engines(other)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Engines = first
			after := cfg.Policy()
			after.Engines, after.QoS = next, qos.Options{}
			after.Ports.MaxMTU = ib.MTU2048
			file, last := play(t, l, cfg, &after)
			if last == nil {
				t.Fatal("the other engine never gave tables")
			}
			mustReplay(t, file)
		})
	}
}

// seeded describes the torus of a netlist.
func seeded(t *testing.T, l *netlist.Netlist) *torus.Config {
	t.Helper()
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeSwitch {
			seed := torus.Seed{From: n.GUID, Dateline: [3]int{1, 2, 0}}
			seed.To[0], seed.To[2] = l.Find(n.Ports[1].Peer).GUID, l.Find(n.Ports[3].Peer).GUID
			return &torus.Config{Radix: [3]int{4, 4, 1}, Wrap: [3]bool{true, true, false}, Seeds: []torus.Seed{seed}}
		}
	}
	t.Fatal("no switch")
	return nil
}

// tablesOf returns the tables of a fabric as a file would have them.
func tablesOf(v *sm.View) *lftfile.Tables {
	out := &lftfile.Tables{Switches: make(map[ib.GUID][]lftfile.Entry), Owner: make(map[ib.LID]ib.GUID)}
	for _, id := range v.Fabric.Switches() {
		guid := v.Fabric.Node(id).GUID
		for lid, port := range v.Tables.LFT(id) {
			if port != ib.NoPort {
				out.Switches[guid] = append(out.Switches[guid], lftfile.Entry{LID: ib.LID(lid), Port: port})
			}
		}
	}
	for _, p := range v.Fabric.EndPorts() {
		out.Owner[v.Fabric.Port(p).LID] = v.Fabric.Port(p).GUID
	}
	return out
}
