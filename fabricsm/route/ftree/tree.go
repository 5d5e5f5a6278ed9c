package ftree

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/topo"
)

// maxReasons is how many reasons are reported why a fabric is no fat tree.
const maxReasons = 5

// maxTries is how many leaves are tried for the top of the order.
const maxTries = 32

// unknown is the level of switches that no leaf is connected with.
const unknown = math.MinInt32

// tree is a fabric on its way to be recognised.
type tree struct {
	f     *topo.Fabric
	g     *route.Graph
	leaf  []bool  // by switch: it has compute nodes
	level []int32 // by switch: 0 for leaves, below 0 for what only hangs under one, or unknown
}

// order returns the order of switches in which routes go up and down, and the place of each. The top is a leaf: seen from
// there, every way up and down the tree goes up and down too. With a leaf as the top, unlike with roots, no two switches
// are without such a way. The order of prev stays while it has this property.
func (t *tree) order(e Engine, prev *route.Tables) (order, places []int32, err error) {
	t.findLeaves(e)
	if err = t.setLevels(e); err == nil {
		err = t.checkLinks()
	}
	if err != nil {
		return nil, nil, err
	}
	order, places, ok := turnrule.Kept(t.g, e.Name(), prev, nil)
	if !ok {
		order = turnrule.Order(t.g, nil, t.pick)
		places = turnrule.Places(t.g, order)
	}
	return order, places, nil
}

// findLeaves marks the switches that compute nodes are cabled to.
func (t *tree) findLeaves(e Engine) {
	t.leaf = make([]bool, len(t.g.IDs))
	listed, wanted := e.ComputeNodes, true
	if len(listed) == 0 {
		listed, wanted = e.IONodes, false
	}
	in := make(map[ib.GUID]bool, len(listed))
	for _, g := range listed {
		in[g] = true
	}
	for _, id := range t.f.EndPorts() {
		sw, p := t.f.SwitchPortOf(id), t.f.Port(id)
		if sw == topo.None || p.LID == 0 || t.f.LinkUp(id) == topo.None || in[p.GUID] != wanted {
			continue
		}
		t.leaf[t.g.Num[t.f.Port(sw).Node]] = true
	}
}

// setLevels numbers the levels, from the leaves or from the roots.
func (t *tree) setLevels(e Engine) error {
	if len(e.Roots) == 0 {
		t.level = t.distances(t.leaf)
		return nil
	}
	listed := make(map[ib.GUID]bool, len(e.Roots))
	for _, g := range e.Roots {
		listed[g] = true
	}
	roots, found := make([]bool, len(t.g.IDs)), 0
	for s := range roots {
		if listed[t.g.GUID(int32(s))] {
			roots[s] = true
			found++
		}
	}
	if found == 0 && len(roots) > 0 {
		return fmt.Errorf("none of the %d listed roots is a switch of the fabric, not %v either; list node GUIDs of switches", len(listed), e.Roots[0])
	}
	t.level = t.distances(roots)
	return t.turnOver()
}

// turnOver turns distances from the roots into levels above the leaves, which
// must all be equally far.
func (t *tree) turnOver() error {
	first := int32(-1)
	for s, leaf := range t.leaf {
		if !leaf {
			continue
		}
		if first < 0 {
			first = int32(s)
		}
		if a, b := t.level[first], t.level[s]; a != b {
			return fmt.Errorf("%s has compute nodes %s, and %s has them %s; ftree wants all of them equally far: list those on one of the switches as I/O nodes, or check the list of roots",
				t.name(first), below(a), t.name(int32(s)), below(b))
		}
	}
	if first < 0 {
		return nil
	}
	depth := t.level[first]
	for s, d := range t.level {
		if d != unknown {
			t.level[s] = depth - d
		}
	}
	return nil
}

func below(distance int32) string {
	if distance == unknown {
		return "that no listed root is connected with"
	}
	return fmt.Sprintf("%d levels below the roots", distance)
}

// distances returns how far each switch is from the nearest one in a set, unknown where none is connected.
func (t *tree) distances(from []bool) []int32 {
	dist := make([]int32, len(t.g.IDs))
	var queue []int32
	for s, is := range from {
		dist[s] = unknown
		if is {
			dist[s] = 0
			queue = append(queue, int32(s))
		}
	}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		for _, v := range t.g.To[t.g.Row[u]:t.g.Row[u+1]] {
			if dist[v] == unknown {
				dist[v] = dist[u] + 1
				queue = append(queue, v)
			}
		}
	}
	return dist
}

// checkLinks rejects links that do not lead from one level to the next.
func (t *tree) checkLinks() error {
	var errs []error
	for s := range int32(len(t.g.IDs)) {
		last := int32(-1)
		for e := t.g.Row[s]; e < t.g.Row[s+1]; e++ {
			to := t.g.To[e]
			if to <= s || to == last || t.level[s] == unknown || t.level[s] != t.level[to] {
				continue
			}
			last = to
			if errs = append(errs, t.sideways(s, e)); len(errs) == maxReasons {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

// sideways says that both ends of a link are on one level.
func (t *tree) sideways(s, e int32) error {
	why := fmt.Sprintf("both are %d levels above the compute nodes", t.level[s])
	if t.leaf[s] && t.leaf[t.g.To[e]] {
		why = "both have compute nodes"
	}
	return fmt.Errorf("%s is cabled at port %d to %s, and %s; ftree wants links from one level to the next: use updn, or list what is no compute node",
		t.name(s), t.g.Port[e], t.name(t.g.To[e]), why)
}

// pick returns the leaf that the rest of an island is nearest to: where cables are missing around a leaf, others are
// better. It tries some leaves, spread over the island.
func (t *tree) pick(island []int32) int32 {
	var leaves []int32
	for _, s := range island {
		if t.leaf[s] {
			leaves = append(leaves, s)
		}
	}
	if len(leaves) == 0 {
		return island[0]
	}
	slices.Sort(leaves)
	best, least := leaves[0], int64(math.MaxInt64)
	order, hops := make([]int32, 0, len(island)), make([]int32, len(t.g.IDs))
	tries := min(len(leaves), maxTries)
	for i := range tries {
		s := leaves[i*len(leaves)/tries]
		clear(hops)
		sum := int64(0)
		for _, v := range turnrule.Walk(t.g, []int32{s}, order, hops) {
			sum += int64(hops[v])
		}
		if sum < least {
			best, least = s, sum
		}
	}
	return best
}

// name returns the name of a switch for messages.
func (t *tree) name(s int32) string {
	n := t.f.Node(t.g.IDs[s])
	return fmt.Sprintf("switch %v (%s)", n.GUID, n.Description)
}
