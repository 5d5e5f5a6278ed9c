// Package ftree is the routing engine for fat trees. It rejects other fabrics and names the switch that does not fit.
//
// Switches stand on levels. The lowest is that of the leaves, which have the compute nodes; each link leads from one level
// to the next. Routes go up to a level where the destination lies below, and then down. Among those ways it takes the one
// whose whole route carries least. On a full fat tree, let the hosts of all leaves each send to the host a fixed number of
// places further. Then they never share a link, for any such number: the shift permutations of collective operations run
// without contention.
//
// A tree that lost cables is still routed, and no loss causes a credit loop, which shortest paths on such a tree can do.
package ftree

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine]. The zero Engine takes every CA port for a
// compute node and finds the roots itself.
type Engine struct {
	// Roots are node GUIDs of the switches on the highest level. Empty: levels
	// are counted from the leaves.
	Roots []ib.GUID
	// ComputeNodes are port GUIDs. The switches that they are cabled to are
	// the leaves. Empty: every CA port but those in IONodes.
	ComputeNodes []ib.GUID
	// IONodes are port GUIDs of CAs that may be cabled to a switch of any level. It is ignored when ComputeNodes is set:
	// all other CAs may then be there.
	IONodes []ib.GUID
	// LimitReverse rejects tables by which a route from or to an I/O node that is not on a leaf goes down more than
	// MaxReverseHops links before it goes up again. Otherwise there is no limit.
	LimitReverse   bool
	MaxReverseHops int
	Share          nexthop.Share
}

// Name returns "ftree".
func (Engine) Name() string { return "ftree" }

// OneLane says that routes never need several lanes; see [route.OneLane].
func (Engine) OneLane() {}

// Route returns tables that have, for every switch, a shortest of the routes to every LID of its island that go up and then
// down in the order of [turnrule.Order] from one leaf, spread over equally short ones. Between leaves of a whole tree these
// are all shortest paths. A route of prev stays while it is still one of them, and so does the order, so that a lost link
// moves only the routes that used it. Errors are those of [route.NewGraph], and the first few reasons why the fabric is no
// fat tree, or a route that exceeds MaxReverseHops.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	var t *tree
	tables, err := nexthop.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (nexthop.Plan, error) {
		t = &tree{f: f, g: g}
		order, places, err := t.order(e, prev)
		if err != nil {
			return nexthop.Plan{}, err
		}
		return nexthop.Plan{Basis: places, NewRule: turnrule.Rules(g, order), Ways: &nexthop.Ways{Order: order}, Share: e.Share}, nil
	})
	if err == nil && e.LimitReverse {
		err = t.checkReverse(tables, e.MaxReverseHops)
	}
	if err != nil {
		return nil, err
	}
	return tables, nil
}
