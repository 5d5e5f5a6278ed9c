// Package dnup is the routing engine for fabrics whose hosts do not hang at the
// bottom: some switches are farther from all hosts than the roots would be.
//
// It restricts turns as updn does, but ranks switches by how far they are from
// the nearest host, those farthest away on top, and needs no roots. Between
// switches that are equally far, the lower GUID is on top. Where a host can be
// reached only by going down and up again, the checker may find a credit loop:
// updn has an answer there.
package dnup

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct{ Share nexthop.Share }

// Name returns "dnup".
func (Engine) Name() string { return "dnup" }

// OneLane says that routes never need several lanes; see [route.OneLane].
func (Engine) OneLane() {}

// Route returns tables that have, for every switch, the shortest route to every LID of its island that goes away from hosts
// and then back, spread over equally short ones. A route of prev stays while it is still one of them. Errors are those of
// [route.NewGraph].
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	return nexthop.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (nexthop.Plan, error) {
		return nexthop.Plan{NewRule: turnrule.Rules(g, order(g)), Share: e.Share}, nil
	})
}

// order returns the switches, those farthest from hosts first.
func order(g *route.Graph) []int32 {
	var leaves []int32
	for s := range int32(len(g.IDs)) {
		if g.Hosts[s] > 0 {
			leaves = append(leaves, s)
		}
	}
	hops := make([]int32, len(g.IDs)) // 0: no host is connected
	turnrule.Walk(g, leaves, nil, hops)
	all := make([]int32, len(g.IDs))
	for s := range all {
		all[s] = int32(s)
	}
	slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(hops[b], hops[a]) })
	return all
}
