package route_test

import (
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo/topotest"
)

// TestCheckJudgesLanesByPort compares the checker with the slow judge on routes
// that change lanes by classes of ports, drawn at random.
func TestCheckJudgesLanesByPort(t *testing.T) {
	loops, none := 0, 0
	judge := func(t *rapid.T) {
		k := topotest.Random(7, draw(t))
		if draw(t)(1) == 0 {
			k = topotest.Torus(4+draw(t)(2), 1, 1)
		}
		f := k.Fabric()
		tables := mustRoute(t, minhop.Engine{}, f, nil)
		g, err := route.NewGraph(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		const classes = 4
		var vl [classes][classes][16]ib.VL
		for in := range vl {
			for out := range vl[in] {
				for sl := range 4 {
					vl[in][out][sl] = ib.VL(draw(t)(5) / 4) // mostly the first
				}
			}
		}
		class, level := make([]uint8, len(g.To)), make(map[[2]int32]uint8)
		for e := range class {
			class[e] = uint8(1 + draw(t)(classes-2))
		}
		for a := range int32(len(g.IDs)) {
			for b := range a {
				level[[2]int32{a, b}] = uint8(draw(t)(3))
			}
		}
		tables.SetLanes(g, route.Lanes{
			Count: 3, Levels: 4, Classes: classes,
			Class: func(e int32) uint8 { return class[e] },
			VL:    func(in, out uint8, sl ib.SL) ib.VL { return vl[in][out][sl] },
			SL:    func(a, b int32) uint8 { return level[[2]int32{a, b}] },
		})
		s := judgeSlowly(f, tables)
		r := route.Check(f, tables)
		if want := s.creditLoop(); (r.CreditLoop != nil) != want || len(r.Findings) > 0 {
			t.Fatalf("credit loop: the checker says %v, the slow judge %v", r.Err(), want)
		}
		for i, c := range r.CreditLoop {
			if next := r.CreditLoop[(i+1)%len(r.CreditLoop)]; next.Switch != c.Peer {
				t.Fatalf("channel %v leads to %v, the next of the loop is %v", c, c.Peer, next)
			}
		}
		if r.CreditLoop != nil {
			loops++
		} else {
			none++
		}
	}
	// Few draws may all be of one kind: with -short there are 20.
	for range 5 {
		if rapid.Check(t, judge); loops > 0 && none > 0 {
			return
		}
	}
	t.Errorf("%d fabrics with a credit loop, %d without: the test shows nothing", loops, none)
}

// TestLanesOfCAs: what CAs send and what goes to them is on VL 0, levels that
// are not in use are dropped.
func TestLanesOfCAs(t *testing.T) {
	f := topotest.Chain(3, 1).Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := route.NewGraph(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables.SetLanes(g, route.Lanes{
		Count: 2, Levels: 2, Classes: 2,
		Class: func(int32) uint8 { return 1 },
		VL:    func(in, _ uint8, sl ib.SL) ib.VL { return ib.VL(in) },
		SL:    func(_, _ int32) uint8 { return 1 },
	})
	var dropped [16]ib.VL
	for sl := 2; sl < 16; sl++ {
		dropped[sl] = ib.VL15
	}
	raised := dropped
	raised[0], raised[1] = 1, 1
	middle := f.Switches()[1]
	for _, tt := range []struct {
		name     string
		got, not [16]ib.VL
	}{
		{"CA", tables.SLtoVL(), dropped},
		{"from a CA to a switch", tables.SwitchLanes(middle, 1, 3), dropped},
		{"from a switch to a switch", tables.SwitchLanes(middle, 2, 3), raised},
		{"from a switch to a CA", tables.SwitchLanes(middle, 2, 1), dropped},
		{"a switch that is not there", tables.SwitchLanes(99, 2, 3), dropped},
	} {
		if tt.got != tt.not {
			t.Errorf("%s: lanes %v, want %v", tt.name, tt.got, tt.not)
		}
	}
	if tables.Layers() != 2 || !tables.LanesByPort() || tables.PairSL(f.Switches()[0], middle) != 1 {
		t.Errorf("%d lanes, by port %v", tables.Layers(), tables.LanesByPort())
	}
}
