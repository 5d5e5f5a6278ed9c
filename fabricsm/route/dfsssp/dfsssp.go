// Package dfsssp is the deadlock-free single source shortest path engine: for
// fabrics of any shape, shortest paths that are balanced over the whole fabric,
// dealt to virtual lanes so that no buffers wait in a circle.
//
// Destinations are routed one after the other. Each switch takes, among its
// shortest ways, the one whose links carry least so far, and the links of the
// route are made heavier by what it carries. Package layered then deals pairs
// of switches to lanes. A fabric whose shortest paths need one lane, such as a
// whole fat tree, gets one, and its senders may use any service level. On others
// senders must use the level that the tables give for a pair: where hosts are
// hostile, an engine that needs one lane is the safe one.
package dfsssp

import (
	"fmt"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/layered"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/spread"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Lanes is how many virtual lanes the caller will program and give to
	// senders, as [route.Tables.SLtoVL] and [route.Tables.SL] say; more than
	// [route.MaxLayers], or than the links have, are not used. 0 is 1.
	Lanes int
	Share spread.Share
}

// Name gives "dfsssp".
func (Engine) Name() string { return "dfsssp" }

// Route gives every switch a shortest path to every LID of its island, spread
// over equally short ones, and every pair of switches a layer. Where one lane
// does not hold these paths, all LIDs behind a switch are reached over the same
// switches, and where that needs too many lanes, the way back is the way there,
// turned round: both need fewer. A route of prev stays while it is still a
// shortest one, a layer while it is free of circles. Errors are those of
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
	of   func(g *route.Graph, prev *route.Tables) func() spread.Rule
}

func (e Engine) along(w way, f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	t, err := spread.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (spread.Plan, error) {
		return spread.Plan{NewRule: w.of(g, w.prev), Share: e.Share}, nil
	})
	if err != nil {
		return nil, err
	}
	return t, layered.Deal(f, t, w.prev, e.Lanes)
}
