package trace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/trace"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

func routed(t *testing.T, k *topotest.Kit) (*topo.Fabric, *route.Tables) {
	t.Helper()
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, tables
}

func host(f *topo.Fabric, i int) topo.PortID { return f.PortByGUID(topotest.HostGUID(i) + 1) }

func TestFollow(t *testing.T) {
	f, tables := routed(t, topotest.Chain(3, 1))
	sw := func(i int) topo.NodeID { return f.NodeByGUID(topotest.SwitchGUID(1, i)) }
	h := func(i int) topo.NodeID { return f.NodeByGUID(topotest.HostGUID(i)) }
	for _, tt := range []struct {
		name     string
		from, to topo.PortID
		want     []trace.Hop
	}{
		{"host to host", host(f, 0), host(f, 2), []trace.Hop{
			{Node: h(0), Out: 1}, {Node: sw(1), In: 1, Out: 3}, {Node: sw(2), In: 2, Out: 3}, {Node: sw(3), In: 2, Out: 1}, {Node: h(2), In: 1},
		}},
		{"host to switch", host(f, 0), f.PortOf(sw(2), 0), []trace.Hop{{Node: h(0), Out: 1}, {Node: sw(1), In: 1, Out: 3}, {Node: sw(2), In: 2}}},
		{"switch to host", f.PortOf(sw(2), 0), host(f, 1), []trace.Hop{{Node: sw(2), Out: 1}, {Node: h(1), In: 1}}},
		{"to itself", host(f, 1), host(f, 1), []trace.Hop{{Node: h(1)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := trace.Follow(f, tables, tt.from, tt.to)
			if p.Err != nil {
				t.Fatal(p.Err)
			}
			if d := cmp.Diff(p.Hops, tt.want); d != "" {
				t.Errorf("hops (-got +want):\n%s", d)
			}
		})
	}
}

func TestFollowSaysWherePacketsAreLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(f *topo.Fabric, tables *route.Tables, lid ib.LID)
		want  string
	}{
		{"dropped", func(f *topo.Fabric, tables *route.Tables, lid ib.LID) {
			tables.Writable(nil, f.NodeByGUID(topotest.SwitchGUID(1, 2)))[lid] = ib.NoPort
		}, "switch 0x0010000100000002 drops packets to LID 6"},
		{"circle", func(f *topo.Fabric, tables *route.Tables, lid ib.LID) {
			tables.Writable(nil, f.NodeByGUID(topotest.SwitchGUID(1, 2)))[lid] = 2
		}, "packets to LID 6 go round in circles"},
		{"wrong host", func(f *topo.Fabric, tables *route.Tables, lid ib.LID) {
			tables.Writable(nil, f.NodeByGUID(topotest.SwitchGUID(1, 1)))[lid] = 1
		}, "which does not forward"},
		{"dark port", func(f *topo.Fabric, tables *route.Tables, lid ib.LID) {
			tables.Writable(nil, f.NodeByGUID(topotest.SwitchGUID(1, 1)))[lid] = 2
		}, "to its port 2, which has no link"},
		{"no such port", func(f *topo.Fabric, tables *route.Tables, lid ib.LID) {
			tables.Writable(nil, f.NodeByGUID(topotest.SwitchGUID(1, 1)))[lid] = 99
		}, "to port 99, which it does not have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, tables := routed(t, topotest.Chain(3, 1))
			to := host(f, 2)
			tt.spoil(f, tables, f.Port(to).LID)
			p := trace.Follow(f, tables, host(f, 0), to)
			if p.Err == nil || !strings.Contains(p.Err.Error(), tt.want) {
				t.Errorf("got %v, want %q", p.Err, tt.want)
			}
		})
	}
	f, _ := routed(t, topotest.Chain(3, 1))
	if p := trace.Follow(f, nil, host(f, 0), host(f, 1)); !errors.Is(p.Err, trace.ErrNoTables) {
		t.Errorf("without tables: %v", p.Err)
	}
}

// TestLoadsAgreeWithTheChecker: the most loaded link of the checker's report
// has the load that it says, and no link has more.
func TestLoadsAgreeWithTheChecker(t *testing.T) {
	for name, kit := range map[string]*topotest.Kit{
		"two levels": topotest.FatTree2(72, 12), "three levels": topotest.FatTree3(54, 6), "ring": topotest.Torus(5, 1, 2),
		"chain": topotest.Chain(4, 3), "two ports": topotest.DualPort(),
	} {
		t.Run(name, func(t *testing.T) {
			f, tables := routed(t, kit)
			r := route.Check(f, tables)
			loads := trace.NewLoads(f, tables)
			var worst, sum, links int64
			for _, s := range f.Switches() {
				for out := ib.PortNum(1); uint8(out) <= f.Node(s).NumPorts; out++ {
					n := loads.Of(s, out)
					worst, sum = max(worst, n), sum+n
					if peer := f.LinkUp(f.PortOf(s, out)); peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch {
						links++
					}
				}
			}
			mean := float64(sum) / float64(links)
			if worst != r.WorstLoad || mean != r.MeanLoad {
				t.Errorf("worst %d, mean %v; the checker says %d and %v", worst, mean, r.WorstLoad, r.MeanLoad)
			}
			if got := loads.Of(f.NodeByGUID(r.Worst.Switch), r.Worst.Port); got != r.WorstLoad {
				t.Errorf("link %v carries %d, the checker says %d", r.Worst, got, r.WorstLoad)
			}
		})
	}
}
