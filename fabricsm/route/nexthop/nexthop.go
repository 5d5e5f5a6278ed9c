// Package nexthop picks one of several allowed next hops for every LID, so that links are loaded evenly and routes stay
// where they are.
//
// A routing engine defines, for a destination switch, which links may be used next ([Rule]); all else is the same for all
// engines that route along such choices. Among the allowed next hops, it takes the one whose route to the destination
// carries least so far, counting one route from every CA port. So two LIDs behind one leaf come down over different spines.
package nexthop

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Choices are the allowed next hops towards one destination switch.
type Choices struct {
	// Order has the destination and every switch that reaches it, each after
	// all switches it may send to.
	Order []int32
	// Next hops of switch Order[i] are Edge[Row[i]] up to Edge[Row[i+1]],
	// edges of the graph. The destination has none.
	Row  []int32
	Edge []int32

	class   []int32 // by position in Order, see classes
	steps   []step  // the same, with what else a decision needs
	classes int     // how many there are
}

// step is what one switch of the order chooses from: n edges, the first of which leads
// to a switch. Those of a class are neighbours.
type step struct{ sw, first, n, to, class int32 }

// noClass is the class of a switch that shares its choices with no other.
const noClass = -1

// Reset empties the choices but keeps their memory.
func (c *Choices) Reset() {
	c.Order, c.Row, c.Edge = c.Order[:0], append(c.Row[:0], 0), c.Edge[:0]
}

// Rule fills in the choices towards a destination switch. It may keep scratch
// memory between calls; several rules of one graph run at the same time.
type Rule func(dest int32, c *Choices)

// Prepare readies an engine for a graph, or returns why the engine cannot route it. newRule creates one rule for every
// core.
type Prepare func(*route.Graph) (newRule func() Rule, err error)

// Plan is an engine's readiness for one graph.
type Plan struct {
	// NewRule makes one rule for every core.
	NewRule func() Rule
	// Basis is the input of the choices besides the links, by topo.NodeID, -1 for a node that is no switch; empty but not
	// nil if there is none. If it is equal, removing a link must change no choices towards a destination except the link
	// itself, unless it was the only choice of a switch. Then only changes are examined. nil: the engine does not know its
	// basis, and all is examined every time.
	Basis []int32
	// Ways describe the rule, where they do; else nil. With them, what changed costs
	// less.
	Ways *Ways
	// All makes the engine examine all of prev, although the basis is the same.
	All bool
	// Share is how destinations share links, when all is routed.
	Share Share
}

// Route fills tables by an engine's rule. Entries of prev (which may be nil) that are among the choices stay, unless a link
// that prev did not know carries less. So a lost link moves the paths that used it, and one that came back gets its share
// again. Missing entries are spread around those that stay. The cores share the work and not the decisions: the result does
// not depend on their number. Errors are those of [route.NewGraph] and of prepare.
func Route(engine string, f *topo.Fabric, prev *route.Tables, prepare Prepare) (*route.Tables, error) {
	return RouteLocal(engine, f, prev, func(g *route.Graph) (Plan, error) {
		newRule, err := prepare(g)
		return Plan{NewRule: newRule}, err
	})
}

// RouteLocal fills tables as [Route] does. Where the plan has a basis and prev was
// given by [route.First], it looks only at what changed since: a lost link moves the
// entries that used it, and they go back when it is there again. Only links that
// the last whole routing did not know make another one.
func RouteLocal(engine string, f *topo.Fabric, prev *route.Tables, prepare func(*route.Graph) (Plan, error)) (*route.Tables, error) {
	g, err := route.NewGraph(f, prev)
	if err != nil {
		return nil, err
	}
	plan, err := prepare(g)
	if err != nil {
		return nil, err
	}
	t := route.NewTables(engine, g, prev)
	if repair(g, t, prev, plan) {
		return t, nil
	}
	s := newSpreader(g, t, prev)
	s.turns, s.ignored = plan.Share.turns(f, g), plan.Share.ignored(f, g)
	if prev != nil {
		clearGone(g, t, prev)
		s.keepAll(plan.NewRule)
	}
	s.fillAll(plan.NewRule)
	if plan.Basis != nil {
		t.SetNotes(&route.Notes{Basis: plan.Basis, First: plan.Basis, Usual: t.Peers()})
	}
	return t, nil
}

// clearGone drops the routes to LIDs that are no targets any more.
func clearGone(g *route.Graph, t, prev *route.Tables) {
	for l := range int(prev.MaxLID) + 1 {
		lid := ib.LID(l)
		if prev.Home(lid) == topo.None || t.Home(lid) != topo.None {
			continue
		}
		for _, id := range g.IDs {
			if row := t.LFT(id); l < len(row) && row[l] != ib.NoPort {
				t.Writable(prev, id)[l] = ib.NoPort
			}
		}
	}
}
