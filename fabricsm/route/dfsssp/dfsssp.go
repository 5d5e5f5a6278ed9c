// Package dfsssp is the deadlock-free single source shortest path engine. For fabrics of any shape, it finds shortest paths
// that are balanced over the whole fabric, and assigns them to virtual lanes so that there is no credit loop.
//
// Destinations are routed one after the other. Each switch takes, among its shortest ways, the one whose links carry least
// so far, and the weight of the links of the route grows by the load of the route. Package layered then assigns pairs of
// switches to lanes. A fabric whose shortest paths need one lane, such as a whole fat tree, gets one, and its senders may
// use any service level. On other fabrics senders must use the service level that the tables have for a pair: where hosts
// are hostile, an engine that needs one lane is the safe one.
package dfsssp

import (
	"fmt"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/layered"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Lanes is how many virtual lanes the caller will program and assign to senders, as [route.Tables.SLtoVL] and
	// [route.Tables.SL] say; more than [route.MaxLayers], or than the links have, are not used. 0 is 1.
	Lanes int
	Share nexthop.Share
}

// Name returns "dfsssp".
func (Engine) Name() string { return "dfsssp" }

// Route returns tables with a shortest path from every switch to every LID of its island, spread over equally short ones,
// and a layer for every pair of switches. If one lane does not hold these paths, all LIDs behind a switch are reached over
// the same switches. If that needs too many lanes, the way back is the reverse of the way there. Both need fewer lanes. A
// route of prev stays while it is still a shortest one, a layer while it is free of cycles. Errors are those of
// [route.NewGraph], and that the lanes are too few.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	first := minhop.Engine{Share: e.Share}
	for _, shortest := range []func(*topo.Fabric, *route.Tables) (*route.Tables, error){first.Route, first.Again} {
		t, err := shortest(f, prev)
		if err != nil {
			return nil, err
		}
		if t.Engine = e.Name(); route.Check(f, t).CreditLoop == nil {
			return t, nil
		}
	}
	ways := []way{{prev, grow}, {nil, grow}, {nil, balance}}
	if prev == nil {
		ways = ways[1:]
	}
	var err error
	for _, w := range ways {
		var t *route.Tables
		if t, err = e.along(w, f, prev); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("shortest paths: %w", err)
}

// way is how paths are chosen where one lane does not hold the first ones, and
// which tables are kept to.
type way struct {
	prev *route.Tables
	of   func(g *route.Graph, prev *route.Tables) func() nexthop.Rule
}

func (e Engine) along(w way, f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	t, err := nexthop.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (nexthop.Plan, error) {
		return nexthop.Plan{NewRule: w.of(g, w.prev), Share: e.Share}, nil
	})
	if err != nil {
		return nil, err
	}
	return t, layered.Deal(f, t, w.prev, e.Lanes)
}
