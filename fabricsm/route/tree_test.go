package route_test

import (
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/dnup"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestTreeAgainstSlowJudge: on random fabrics, also cut ones, tables of a tree are taken by the checker and by the slow judge, have
// one lane, and reach what those of an engine reach.
func TestTreeAgainstSlowJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := topotest.Random(9, draw(t))
		for range 3 {
			f := k.Fabric()
			tree, err := route.Tree(f)
			if err != nil {
				t.Fatal(err)
			}
			if s := judgeSlowly(f, tree); len(s.faults) > 0 {
				t.Fatalf("%d faults, the first: %s", len(s.faults), s.faults[0])
			}
			if r := route.Check(f, tree); r.Err() != nil {
				t.Fatalf("the checker: %v", r.Err())
			}
			if !tree.Checked() || tree.Layers() != 1 {
				t.Fatalf("checked %v, %d layers", tree.Checked(), tree.Layers())
			}
			engine := mustRoute(t, minhop.Engine{}, f, nil)
			for _, id := range f.Switches() {
				a, b := tree.LFT(id), engine.LFT(id)
				for lid := range min(len(a), len(b)) {
					if (a[lid] == ib.NoPort) != (b[lid] == ib.NoPort) || tree.Home(ib.LID(lid)) != engine.Home(ib.LID(lid)) {
						t.Fatalf("switch %d sends LID %d to port %d by the tree, %d by %s", id, lid, a[lid], b[lid], engine.Engine)
					}
				}
			}
			k.Disconnect(topo.PortID(draw(t)(k.NumPorts() - 1)))
		}
	})
}

// TestTreeRefuses: LIDs that two ports claim are refused as engines refuse them.
func TestTreeRefuses(t *testing.T) {
	k := topotest.Chain(3, 1)
	ends := k.Fabric().EndPorts()
	p := k.Port(ends[0])
	p.LID = k.Port(ends[1]).LID
	k.SetPort(ends[0], p)
	if tables, err := route.Tree(k.Fabric()); err == nil {
		t.Errorf("tables of %s although two ports have LID %v", tables.Engine, p.LID)
	}
}

// TestOneLane: engines that may need several lanes do not say that they need one.
func TestOneLane(t *testing.T) {
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}, dnup.Engine{}} {
		if _, one := e.(route.OneLane); !one {
			t.Errorf("%s does not say that it needs one lane", e.Name())
		}
	}
	for _, e := range []route.Engine{dor.Engine{}, dfsssp.Engine{}, torus.Engine{}} {
		if _, one := e.(route.OneLane); one {
			t.Errorf("%s says that it needs one lane", e.Name())
		}
	}
}

// BenchmarkTree makes a tree of whole fabrics, beside the tables that the default engine makes of them.
func BenchmarkTree(b *testing.B) {
	f := deepTables(topotest.FatTree3(10368, 36)).Fabric()
	b.Run("tree", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := route.Tree(f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("minhop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			firstOf(b, minhop.Engine{}, f, nil)
		}
	})
}
