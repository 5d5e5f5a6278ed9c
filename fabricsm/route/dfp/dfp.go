// Package dfp is the routing engine for dragonfly+ fabrics: groups of leaves and spines, each a small tree, whose spines
// are cabled to those of other groups.
//
// A packet leaves its group by a spine that is cabled to the group it is for, and stays on that path: up, over, down. Only
// where no cable leads there does it pass through other groups, as few as possible. Within a group it goes up and then down
// in an order of the switches.
//
// Between the leaves of a whole fabric such routes need one virtual lane. Routes to the spines themselves, and detours
// around lost links and switches, may close credit loops with them: package layered moves those pairs to further lanes, and
// no more pairs than needed. Senders must use the service level that the tables have for a pair.
package dfp

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/layered"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Groups has the group of each switch by its node GUID. Empty: switches with CAs are leaves, the others spines, and the
	// cables between leaves and spines connect a group.
	Groups map[ib.GUID]int
	// Lanes is how many virtual lanes the caller will program and assign to senders; 0 is 1.
	Lanes int
}

// Name returns "dfp".
func (Engine) Name() string { return "dfp" }

// Route returns tables that have, for every switch, the shortest of the routes to every LID that change groups least, and
// spreads over equally short ones. A route of prev stays while it is still one of them. Errors are those of
// [route.NewGraph], the first few reasons why the fabric is no dragonfly+, and that the lanes are too few.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	t, err := nexthop.Route(e.Name(), f, prev, func(g *route.Graph) (func() nexthop.Rule, error) {
		gr, err := e.groups(g)
		if err != nil {
			return nil, err
		}
		return gr.rule, nil
	})
	if err != nil {
		return nil, err
	}
	if err := layered.Fit(f, t, prev, e.Lanes); err != nil {
		return nil, fmt.Errorf("routes between groups: %w", err)
	}
	return t, nil
}
