package replay_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/replay"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/verify"
)

// specOf declares a netlist as it is.
func specOf(t *testing.T, l *netlist.Netlist, change func(*topospec.Revision)) *topospec.Spec {
	t.Helper()
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	r, err := discovered.Parse("netlist", "rail-a", text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	change(r)
	s, err := topospec.Compile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReplayOfTopology records enforcement of a declared topology: a GUID that belongs to another host, another revision
// and mode, a release. The replay repeats the decisions.
func TestReplayOfTopology(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Leaves: 2, Spines: 2, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	first := specOf(t, l, func(r *topospec.Revision) { r.Number = 1 })
	second := specOf(t, l, func(r *topospec.Revision) {
		r.Number, r.Parent = 2, first.Digest()
		r.Policy.Two = []topospec.Touch{topospec.TouchNewDevice}
	})
	h3 := l.Find("h3")
	place := ib.Place{Switch: l.Find(h3.Ports[1].Peer).GUID, Port: h3.Ports[1].PeerPort}
	var file bytes.Buffer
	var found []verify.Verdict
	released := false
	synctest.Test(t, func(t *testing.T) {
		f := sim.NewWith(l, sim.Options{LoseSilently: true, Seed: 3})
		port, err := f.Attach("sm", true)
		if err != nil {
			t.Fatal(err)
		}
		inputs := make(chan sm.Input, 4)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		step := 0
		next := func(errs ...error) {
			step++
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		}
		err = driver.Run(ctx, driver.Options{
			Port: port, Record: replay.NewWriter(&file, 1<<30, noFailure(t)), Inputs: inputs,
			Core: sm.Config{AuditPeriod: -1, Topology: sm.TopologyConfig{Spec: first, Mode: topospec.Enforce}},
			OnEvent: func(e sm.Event) {
				if c, ok := e.(*declared.TopologyChanged); ok {
					found = append(found, c.Verdict)
					released = released || c.State == verify.StateReleased
				}
			},
			OnView: func(v *sm.View) {
				off := v.Topology != nil && len(v.Topology.Ports) > 0 && v.Topology.Ports[0].State == verify.StateDisabled
				switch {
				case !v.Settled:
				case step == 0:
					next(f.SetGUIDs("h3", 0xbad, 0xbad), f.Bounce("h3", 1))
				case step == 1 && off:
					inputs <- &sm.TopologySet{Spec: second, Mode: topospec.Enforce, By: "ada"}
					next(f.SetGUIDs("h3", h3.GUID, h3.PortGUID(1)))
				case step == 2 && v.Topology.Revision == 2:
					inputs <- &sm.TopologyRelease{Place: place, By: "ada", Why: "the GUID is right again"}
					next()
				case step == 3 && !off && v.Topology.Verified == v.Topology.Expected:
					inputs <- &sm.TopologySet{Mode: topospec.Observe, By: "ada"}
					next()
				case step == 4 && v.Topology == nil:
					cancel()
				}
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	})
	if len(found) == 0 || !released {
		t.Fatalf("found %v, released %v: nothing was decided", found, released)
	}
	r, err := replay.Replay(bytes.NewReader(file.Bytes()), engines)
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 50 {
		t.Errorf("replay: %v, %+v, first difference %+v", err, r, r.Differs)
	}
	forged := bytes.ReplaceAll(file.Bytes(), []byte(`"Fabric":"rail-a"`), []byte(`"Fabric":"rail-b"`))
	eachFrame(forged, func([]byte) {})
	if _, err := replay.Replay(bytes.NewReader(forged), engines); !errors.Is(err, replay.ErrNotRecord) {
		t.Errorf("a record whose topology was changed: %v, want %v", err, replay.ErrNotRecord)
	}
}
