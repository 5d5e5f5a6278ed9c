package dfp

import (
	"slices"

	"portcullis/fabricsm/route/nexthop"
)

// kind is how the route of a switch begins.
type kind uint8

const (
	none kind = iota
	exit      // at the destination, or over a cable to another group
	down      // down within the group, and nothing but down
	up        // up within the group, then down
)

// field is the working memory of the rule, towards one destination.
type field struct {
	*groups
	kind []kind  // by switch
	hops []int32 // by switch: length of the route
	far  []int32 // by group: changes of group, -1 if not known
	list []int32 // groups, nearest first
}

// rule is for one core.
func (gr *groups) rule() nexthop.Rule {
	n := len(gr.of)
	f := &field{groups: gr, kind: make([]kind, n), hops: make([]int32, n), far: make([]int32, len(gr.members))}
	return f.choices
}

// choices fills in the next hops towards a destination, group by group.
func (f *field) choices(dest int32, c *nexthop.Choices) {
	clear(f.kind)
	f.kind[dest], f.hops[dest] = exit, 0
	f.walk(f.of[dest])
	for _, group := range f.list {
		exits := []int32{dest}
		if group != f.of[dest] {
			exits = f.exits(group)
		}
		c.Order = append(c.Order, f.descend(exits)...)
		c.Order = append(c.Order, f.ascend(group)...)
	}
	c.Row = append(c.Row, 0)
	for _, s := range c.Order[1:] {
		for e := f.g.Row[s]; e < f.g.Row[s+1]; e++ {
			if f.allowed(s, f.g.To[e]) {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
}

// walk orders the groups by the changes of group to the destination's.
func (f *field) walk(group int32) {
	for i := range f.far {
		f.far[i] = -1
	}
	f.far[group] = 0
	f.list = append(f.list[:0], group)
	for i := 0; i < len(f.list); i++ {
		for _, next := range f.near[f.list[i]] {
			if f.far[next] < 0 {
				f.far[next] = f.far[f.list[i]] + 1
				f.list = append(f.list, next)
			}
		}
	}
}

// exits returns the switches of a group with a cable to one that is nearer, by length of the route from there.
func (f *field) exits(group int32) []int32 {
	var exits []int32
	for _, s := range f.members[group] {
		for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
			if f.far[f.of[v]] == f.far[group]-1 && (f.kind[s] == none || f.hops[v]+1 < f.hops[s]) {
				f.kind[s], f.hops[s] = exit, f.hops[v]+1
			}
		}
		if f.kind[s] == exit {
			exits = append(exits, s)
		}
	}
	slices.SortStableFunc(exits, func(a, b int32) int { return int(f.hops[a] - f.hops[b]) })
	return exits
}

// descend finds the switches of a group that an exit lies below, and returns them and the exits, nearest first.
func (f *field) descend(exits []int32) []int32 {
	var order, now []int32
	for h := f.hops[exits[0]]; len(exits) > 0 || len(now) > 0; h++ {
		for len(exits) > 0 && f.hops[exits[0]] == h {
			now = append(now, exits[0])
			exits = exits[1:]
		}
		var next []int32
		for _, u := range now {
			for _, v := range f.g.To[f.g.Row[u]:f.g.Row[u+1]] {
				if f.of[v] == f.of[u] && f.kind[v] == none && f.pos[v] < f.pos[u] {
					f.kind[v], f.hops[v] = down, h+1
					next = append(next, v)
				}
			}
		}
		order = append(order, now...)
		now = next
	}
	return order
}

// ascend finds how the other switches of a group go up first. In the order from
// the top all switches above one are settled before it.
func (f *field) ascend(group int32) []int32 {
	var order []int32
	for _, s := range f.members[group] {
		if f.kind[s] != none {
			continue
		}
		for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
			if f.of[v] == group && f.pos[v] < f.pos[s] && f.kind[v] != none && (f.kind[s] == none || f.hops[v]+1 < f.hops[s]) {
				f.kind[s], f.hops[s] = up, f.hops[v]+1
			}
		}
		order = append(order, s)
	}
	return order
}

// allowed reports whether a switch may send to a neighbour.
func (f *field) allowed(s, to int32) bool {
	if f.kind[to] == none || f.hops[to] != f.hops[s]-1 {
		return false
	}
	same := f.of[s] == f.of[to]
	switch f.kind[s] {
	case exit:
		return !same && f.far[f.of[to]] == f.far[f.of[s]]-1
	case down:
		return same && f.pos[to] > f.pos[s] && f.kind[to] != up
	case up:
		return same && f.pos[to] < f.pos[s]
	case none:
	}
	return false
}
