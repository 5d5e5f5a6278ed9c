package route_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo/topotest"
)

// ring returns shortest paths on a ring of five, whose routes form two cycles, and the arguments to assign them to layers.
func ring(t *testing.T) (*topotest.Kit, *route.Tables, *route.Graph) {
	t.Helper()
	k := topotest.Torus(5, 1, 1)
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := route.NewGraph(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, tables, g
}

// TestCheckJudgesLayers: if the pairs around switch 0 are moved to another layer, no cycle is left. If all pairs are moved,
// the cycle moves too.
func TestCheckJudgesLayers(t *testing.T) {
	tests := []struct {
		name string
		of   func(a, b int32) uint8
		loop int
		vl   ib.VL
	}{
		{"all in the first", func(_, _ int32) uint8 { return 0 }, 5, 0},
		{"all in the second", func(_, _ int32) uint8 { return 1 }, 5, 1},
		{"one pair in the second", func(a, b int32) uint8 {
			if a == 4 && b == 1 || a == 1 && b == 4 {
				return 1
			}
			return 0
		}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, tables, g := ring(t)
			tables.SetLayers(g, 2, tt.of)
			r := route.Check(k.Freeze(), tables)
			if len(r.CreditLoop) != tt.loop || r.CreditLoopVL != tt.vl || len(r.Findings) > 0 {
				t.Errorf("a loop of %d on VL %d; want %d on VL %d; findings %v", len(r.CreditLoop), r.CreditLoopVL, tt.loop, tt.vl, r.Findings)
			}
		})
	}
}

func TestCheckWantsLanesOnEveryLink(t *testing.T) {
	k, tables, g := ring(t)
	tables.SetLayers(g, 2, func(a, _ int32) uint8 { return uint8(a % 2) })
	id := k.PortOf(1, 2)
	p := k.Port(id)
	p.VLCap = 1
	k.SetPort(id, p)
	want := []route.Finding{{Fault: route.TooFewLanes, Switch: topotest.SwitchGUID(1, 2), Port: 2}}
	r := route.Check(k.Freeze(), tables)
	if d := cmp.Diff(r.Findings, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if got, want := want[0].String(), "switch 0x0010000100000002 port 2: the link has fewer virtual lanes than the routes need"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOneLayerUsesOneLane(t *testing.T) {
	_, tables, _ := ring(t)
	if tables.Layers() != 1 || tables.SL(1, 2) != 0 || tables.SLtoVL() != [16]ib.VL{} {
		t.Errorf("%d layers, SL %d, lanes %v", tables.Layers(), tables.SL(1, 2), tables.SLtoVL())
	}
	if got := (*route.Tables)(nil).SL(1, 2); got != 0 {
		t.Errorf("no tables give SL %d", got)
	}
}

func TestSetLayersRefusesNonsense(t *testing.T) {
	for name, set := range map[string]func(*route.Tables, *route.Graph){
		"no layer":        func(t *route.Tables, g *route.Graph) { t.SetLayers(g, 0, nil) },
		"too many layers": func(t *route.Tables, g *route.Graph) { t.SetLayers(g, route.MaxLayers+1, nil) },
		"layer too high":  func(t *route.Tables, g *route.Graph) { t.SetLayers(g, 2, func(_, _ int32) uint8 { return 2 }) },
	} {
		t.Run(name, func(t *testing.T) {
			_, tables, g := ring(t)
			defer func() {
				if recover() == nil {
					t.Error("it was accepted")
				}
			}()
			set(tables, g)
		})
	}
}
