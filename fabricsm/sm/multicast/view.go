package multicast

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/topo"
)

// View is what readers see of multicast. It is immutable.
type View struct {
	// SL is the service level that packets of groups must have.
	SL ib.SL
	// Ceiling is the lowest multicast LID that cannot be used, as some switch
	// has no room for it.
	Ceiling ib.LID
	// Trees are what is wanted of switches, by multicast LID, and when the fabric is settled what they have.
	Trees []mcast.Tree
}

// View returns what there is now, the one before if nothing changed.
func (g *Groups) View() *View {
	trees := g.forest.Trees()
	v := View{Trees: trees, Ceiling: mcast.Ceiling(g.topo.Freeze())}
	if gr := g.forest.Ground(); gr != nil {
		v.SL = gr.SL
	}
	if s := g.shown; s != nil && s.SL == v.SL && s.Ceiling == v.Ceiling && len(s.Trees) == len(trees) && (len(trees) == 0 || &s.Trees[0] == &trees[0]) {
		return s
	}
	g.shown = &v
	return g.shown
}

// PortsOf returns the ports by which a switch sends packets to a multicast LID; nil: none. It must not be written to.
func (v *View) PortsOf(id topo.NodeID, mlid ib.LID) *mcast.Ports {
	if v == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(v.Trees, mlid, func(t mcast.Tree, mlid ib.LID) int { return cmp.Compare(t.MLID, mlid) })
	if !found {
		return nil
	}
	branches := v.Trees[i].Branches
	i, found = slices.BinarySearchFunc(branches, id, func(b mcast.Branch, id topo.NodeID) int { return cmp.Compare(b.Switch, id) })
	if !found {
		return nil
	}
	return &branches[i].Ports
}
