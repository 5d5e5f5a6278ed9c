package netlist

import (
	"fmt"
	"strconv"
	"strings"
)

// parseGrid reads "5x4" or "5x4x3".
func parseGrid(s string) (radix [3]int, err error) {
	parts := strings.Split(s, "x")
	if len(parts) > 3 {
		return radix, fmt.Errorf("%w: size %q, want up to three numbers as in 5x4x3", errShape, s)
	}
	radix = [3]int{1, 1, 1}
	size := 1
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > maxSwitches || size*n > maxSwitches {
			return radix, fmt.Errorf("%w: size %q, want up to three numbers as in 5x4x3, and %d switches at most", errShape, s, maxSwitches)
		}
		radix[i] = n
		size *= n
	}
	return radix, nil
}

// Torus generates switches "sw1", "sw2", ... in a grid of up to three
// dimensions, x first, whose rows are closed to rings where they have three
// switches or more. Ports 1 to 6 lead +x -x +y -y +z -z; the hosts are dealt over
// the switches in turn, from port 7 on.
func Torus(s Shape) (*Netlist, error) { return grid(s, true) }

// Mesh generates a grid like [Torus], with open rows.
func Mesh(s Shape) (*Netlist, error) { return grid(s, false) }

func grid(s Shape, rings bool) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	if s.Size == "" {
		s.Size = "4x4"
	}
	radix, err := parseGrid(s.Size)
	if err != nil {
		return nil, err
	}
	for i := range radix[0] * radix[1] * radix[2] {
		b.addSwitch(fmt.Sprintf("sw%d", i+1), tierLeaf, i+1, s.Radix)
	}
	for i, sw := range b.switches {
		at := [3]int{i % radix[0], i / radix[0] % radix[1], i / (radix[0] * radix[1])}
		for dim, n := range radix {
			next := at
			if next[dim]++; next[dim] == n {
				if next[dim] = 0; !rings || n < 3 {
					continue
				}
			}
			b.cable(sw, 2*dim+1, b.switches[next[0]+radix[0]*(next[1]+radix[1]*next[2])], 2*dim+2)
		}
	}
	b.deal(&s, 7)
	return b.netlist()
}

// Hypercube generates switches "sw1", "sw2", ..., a power of two of them. Port d
// leads along dimension d, from 1; the hosts are dealt over the switches in
// turn, on the ports behind.
func Hypercube(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	dims := 0
	for 1<<dims < s.Switches {
		dims++
	}
	if 1<<dims != s.Switches {
		return nil, fmt.Errorf("%w: a hypercube of %d switches, want a power of two", errShape, s.Switches)
	}
	for i := range s.Switches {
		b.addSwitch(fmt.Sprintf("sw%d", i+1), tierLeaf, i+1, s.Radix)
	}
	for i, sw := range b.switches {
		for d := range dims {
			if peer := i ^ 1<<d; peer > i {
				b.cable(sw, d+1, b.switches[peer], d+1)
			}
		}
	}
	b.deal(&s, dims+1)
	return b.netlist()
}

// DragonflyPlus generates groups of leaves "leaf1_1", ... and spines "spine1_1", ...: each leaf is cabled to each spine of
// its group. Each two groups have a number of links, which are dealt to their spines in turn. The hosts are dealt over the
// leaves in turn.
func DragonflyPlus(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	groups, leaves, spines, links := orDefault(s.Groups, 3), orDefault(s.Leaves, 2), orDefault(s.Spines, 2), orDefault(s.Links, 1)
	if groups > maxSwitches/(leaves+spines) || links > maxPorts {
		return nil, fmt.Errorf("%w: %d groups of %d switches and %d links between groups, want %d switches and %d links at most", errShape, groups, leaves+spines, links, maxSwitches, maxPorts)
	}
	spine := make([][]*Node, groups)
	for g := range groups {
		for i := range leaves {
			b.addSwitch(fmt.Sprintf("leaf%d_%d", g+1, i+1), tierLeaf, g*leaves+i+1, s.Radix)
		}
	}
	all := b.switches
	b.deal(&s, spines+1)
	for g := range groups {
		for i := range spines {
			sp := b.addSwitch(fmt.Sprintf("spine%d_%d", g+1, i+1), tierSpine, g*spines+i+1, s.Radix)
			spine[g] = append(spine[g], sp)
			for l := range leaves {
				b.cable(all[g*leaves+l], i+1, sp, l+1)
			}
		}
	}
	next := make([]int, groups)
	for x := range groups {
		for y := range x {
			for range links {
				b.cable(spine[x][next[x]%spines], 0, spine[y][next[y]%spines], 0)
				next[x]++
				next[y]++
			}
		}
	}
	return b.netlist()
}
