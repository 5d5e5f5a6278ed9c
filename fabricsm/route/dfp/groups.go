package dfp

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/route"
)

// maxReasons is how many reasons are reported why a fabric is no dragonfly+.
const maxReasons = 5

// groups are the switches of a fabric by group.
type groups struct {
	g       *route.Graph
	of      []int32   // by switch
	members [][]int32 // by group: its switches, the top of the order first
	pos     []int32   // by switch: its place in the order of its group
	near    [][]int32 // by group: those that cables lead to
}

// groups finds the groups and puts the switches of each into an order, the top
// of which is a leaf: from there, all that is up and down the tree is so in the
// order too, and a leaf that lacks a cable to one spine gets there by another.
func (e Engine) groups(g *route.Graph) (*groups, error) {
	n := len(g.IDs)
	gr := &groups{g: g, of: make([]int32, n), pos: make([]int32, n)}
	var err error
	if len(e.Groups) > 0 {
		err = gr.listed(e)
	} else {
		err = gr.detect()
	}
	if err != nil {
		return nil, err
	}
	if len(gr.members) < 2 {
		return nil, errors.New("it is one group: a dragonfly+ has several, with cables between their spines; use ftree or updn")
	}
	for i := range gr.members {
		if err := gr.arrange(int32(i)); err != nil {
			return nil, err
		}
	}
	gr.connect()
	return gr, nil
}

// detect takes switches with CAs for leaves.
func (gr *groups) detect() error {
	g := gr.g
	var errs []error
	leaf := func(s int32) bool { return g.Hosts[s] > 0 }
	for s := range int32(len(g.IDs)) {
		for e := g.Row[s]; e < g.Row[s+1] && len(errs) < maxReasons; e++ {
			if to := g.To[e]; to > s && leaf(s) && leaf(to) {
				errs = append(errs, fmt.Errorf("switch %v is cabled at port %d to switch %v, and both have CAs; leaves are cabled to spines only: list the groups, or use dfsssp",
					g.GUID(s), g.Port[e], g.GUID(to)))
			}
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for s := range gr.of {
		gr.of[s] = -1
	}
	for s := range int32(len(g.IDs)) {
		if gr.of[s] >= 0 || !leaf(s) {
			continue
		}
		group := []int32{s}
		gr.of[s] = int32(len(gr.members))
		for i := 0; i < len(group); i++ {
			u := group[i]
			for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
				if leaf(u) != leaf(v) && gr.of[v] < 0 {
					gr.of[v] = gr.of[s]
					group = append(group, v)
				}
			}
		}
		gr.members = append(gr.members, group)
	}
	for s := range int32(len(g.IDs)) {
		if gr.of[s] < 0 {
			return fmt.Errorf("switch %v has no CAs and is cabled to no switch that has; it is in no group: list the groups", g.GUID(s))
		}
	}
	return nil
}

// listed takes the groups of the list.
func (gr *groups) listed(e Engine) error {
	var missing []error
	for s := range int32(len(gr.g.IDs)) {
		if _, ok := e.Groups[gr.g.GUID(s)]; !ok && len(missing) < maxReasons {
			missing = append(missing, fmt.Errorf("switch %v is in no group of the list", gr.g.GUID(s)))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	number := make(map[int]int32)
	for s := range gr.of {
		name := e.Groups[gr.g.GUID(int32(s))]
		if _, ok := number[name]; !ok {
			number[name] = int32(len(gr.members))
			gr.members = append(gr.members, nil)
		}
		gr.of[s] = number[name]
		gr.members[gr.of[s]] = append(gr.members[gr.of[s]], int32(s))
	}
	return nil
}

// arrange puts the switches of a group into an order.
func (gr *groups) arrange(group int32) error {
	g, all := gr.g, gr.members[group]
	slices.Sort(all)
	top := all[0]
	for _, s := range all {
		if g.Hosts[s] > 0 {
			top = s
			break
		}
	}
	order, seen := []int32{top}, map[int32]bool{top: true}
	for i := 0; i < len(order); i++ {
		u := order[i]
		gr.pos[u] = int32(i)
		for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
			if gr.of[v] == group && !seen[v] {
				seen[v] = true
				order = append(order, v)
			}
		}
	}
	if len(order) < len(all) {
		return fmt.Errorf("the group of switch %v is in parts: %d of its %d switches are not cabled to it within the group", g.GUID(top), len(all)-len(order), len(all))
	}
	gr.members[group] = order
	return nil
}

// connect finds which groups are cabled to which.
func (gr *groups) connect() {
	gr.near = make([][]int32, len(gr.members))
	for s, group := range gr.of {
		for _, v := range gr.g.To[gr.g.Row[s]:gr.g.Row[s+1]] {
			if gr.of[v] != group {
				gr.near[group] = append(gr.near[group], gr.of[v])
			}
		}
	}
	for i := range gr.near {
		slices.Sort(gr.near[i])
		gr.near[i] = slices.Compact(gr.near[i])
	}
}
