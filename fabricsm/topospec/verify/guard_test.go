package verify_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

// TestGuard compares the guard with walking the fabric once for each port that is
// left out.
func TestGuard(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	for name, keep := range map[string]func(l *topospec.Link, i int) bool{
		"whole": func(*topospec.Link, int) bool { return true },
		"thin":  func(l *topospec.Link, i int) bool { return l.Class != topospec.ClassTrunk || i%9 == 4 },
		"tree":  func(l *topospec.Link, i int) bool { return l.Class != topospec.ClassTrunk || i%17 == 4 },
	} {
		t.Run(name, func(t *testing.T) {
			c := r.Clone()
			i := 0
			c.Links = slices.DeleteFunc(c.Links, func(l topospec.Link) bool { i++; return !keep(&l, i) })
			f, sm := topospectest.Fabric(t, c)
			always := func(topo.PortID) bool { return true }
			g := verify.NewGuard(f, sm, always)
			all := reach(f, sm, topo.None)
			got, want := []topo.PortID{}, []topo.PortID{}
			for p := range topo.PortID(f.NumPorts()) {
				if f.LinkUp(p) == topo.None {
					continue
				}
				ofHost := f.NodeOf(p).Type != ib.NodeSwitch || f.NodeOf(f.LinkUp(p)).Type != ib.NodeSwitch
				if p == sm || f.LinkUp(p) == sm || !ofHost && reach(f, sm, p) < all {
					want = append(want, p)
				}
				if g.Protected(p) {
					got = append(got, p)
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("protected ports (-got +want):\n%s", diff)
			}
		})
	}
}

// reach counts the switches that are reached without the cable of a port.
func reach(f *topo.Fabric, sm, without topo.PortID) int {
	start := f.Port(f.LinkUp(sm)).Node
	seen := map[topo.NodeID]bool{start: true}
	for queue := []topo.NodeID{start}; len(queue) > 0; queue = queue[1:] {
		n := f.Node(queue[0])
		for i := 1; i <= int(n.NumPorts); i++ {
			p := n.FirstPort + topo.PortID(i)
			q := f.LinkUp(p)
			if q == topo.None || p == without || q == without || f.NodeOf(q).Type != ib.NodeSwitch || seen[f.Port(q).Node] {
				continue
			}
			seen[f.Port(q).Node] = true
			queue = append(queue, f.Port(q).Node)
		}
	}
	return len(seen)
}

// TestProtectedIsKept: the last way to a switch is kept, and an operator is called.
func TestProtectedIsKept(t *testing.T) {
	b := newBench(t, nil)
	at := b.fact("leaf-1", 19).At
	j := verify.New(b.spec, topospec.Enforce, func(p ib.Place) bool { return p == at })
	b.fact("leaf-1", 19).Port = 36
	b.tell(j)
	if r := j.Link(*b.fact("leaf-1", 19)); r.Action != verify.Keep || !r.Page || r.Verdict != verify.WrongPort || j.IsVerified(at) {
		t.Errorf("%+v", r)
	}
}
