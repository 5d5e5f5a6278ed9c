// Package updn is the routing engine that never lets a packet go up after it went down, so that there is no credit loop on
// any fabric.
//
// Switches are put in an order, from the roots downwards by distance. A link is up if it leads nearer to the front of the
// order. Every route is some links up and then some down; as the links used one after the other are ordered too, there is
// no cycle of them. The price is that some routes are longer than needed, and that links near the root carry more.
//
// Without a list of roots there is one: a switch that has hosts, if any has, and that is least far from the farthest
// switch. On a fat tree with a leaf as root every shortest path between leaves is allowed, so that there is no such price.
package updn

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Roots are node GUIDs of switches that are to be on top, all of them at
	// the same height; empty: one is found. Those that are not there do not
	// matter, but an error is given if none is. Between two switches that have
	// a common switch neither above nor below them, as two roots are, packets
	// go down and up: with CAs on both, the checker may find a credit loop.
	Roots []ib.GUID
	// IDs decide, of two switches that are equally far from the roots, which is
	// on top: the one with the lower number. They are by node GUID; those that
	// are not in it are below all that are.
	IDs   map[ib.GUID]int
	Share nexthop.Share
}

// Name returns "updn".
func (Engine) Name() string { return "updn" }

// OneLane says that routes never need several lanes; see [route.OneLane].
func (Engine) OneLane() {}

// Route returns tables that have, for every switch, the shortest route to every LID of its island that goes up and then
// down, spread over equally short ones. A route of prev stays while it is still one of them, and so does the order of the
// switches, so that a lost link moves only the routes that used it. An island without one of the listed roots gets a root
// of its own. Errors are those of [route.NewGraph], and that no listed root is in the fabric.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	return nexthop.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (nexthop.Plan, error) {
		roots, err := e.present(g)
		if err != nil {
			return nexthop.Plan{}, err
		}
		order, places, ok := turnrule.Kept(g, e.Name(), prev, roots)
		if !ok || !slices.Equal(order, e.byID(g, roots, slices.Clone(order))) {
			order = e.byID(g, roots, rank(g, roots))
			places = turnrule.Places(g, order)
		}
		return nexthop.Plan{Basis: places, NewRule: turnrule.Rules(g, order), Ways: &nexthop.Ways{Order: order}, Share: e.Share}, nil
	})
}

// present returns the listed roots that are in the fabric, by switch number.
func (e Engine) present(g *route.Graph) ([]int32, error) {
	if len(e.Roots) == 0 {
		return nil, nil
	}
	wanted := make(map[ib.GUID]bool, len(e.Roots))
	for _, guid := range e.Roots {
		wanted[guid] = true
	}
	var roots []int32
	for s := range int32(len(g.IDs)) {
		if wanted[g.GUID(s)] {
			roots = append(roots, s)
		}
	}
	if len(roots) == 0 && len(g.IDs) > 0 {
		return nil, fmt.Errorf("none of the %d listed roots is a switch of the fabric, not %v either; list node GUIDs of switches", len(wanted), e.Roots[0])
	}
	return roots, nil
}
