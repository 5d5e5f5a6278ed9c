package torus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// maxOrigins is how many switches are tried as the one to begin at.
const maxOrigins = 64

// find places all switches: where they were, as the seeds of a configuration
// say, or by the look of the cables.
func find(g *route.Graph, c *Config, before *memo) (*placement, error) {
	near := neighbours(g)
	if c != nil && mostlyEmpty(c.Radix, len(near)) {
		return nil, fmt.Errorf("the file wants %d switches, and the fabric has %d", c.Radix[0]*c.Radix[1]*c.Radix[2], len(near))
	}
	if before != nil && (c == nil || before.shape == shape{c.Radix, c.Wrap}) {
		if p := again(g, near, before); p != nil {
			return p, nil
		}
	}
	if c != nil && len(c.Seeds) > 0 {
		return fromSeeds(g, near, c)
	}
	return detect(g, near, c)
}

// mostlyEmpty reports whether only a few switches of a torus are there.
func mostlyEmpty(radix [3]int, switches int) bool { return radix[0]*radix[1]*radix[2] > 4*switches+8 }

// again places switches where they were, and new ones by them.
func again(g *route.Graph, near [][]int32, m *memo) *placement {
	p := newPlacement(g, near, m.shape)
	for s := range int32(len(g.IDs)) {
		if c, known := m.where[g.GUID(s)]; known && !p.seat(s, c) {
			return nil
		}
	}
	p.solve()
	if p.verify() != nil {
		return nil
	}
	return p
}

func fromSeeds(g *route.Graph, near [][]int32, c *Config) (*placement, error) {
	number := make(map[ib.GUID]int32, len(g.IDs))
	for s := range int32(len(g.IDs)) {
		number[g.GUID(s)] = s
	}
	var errs []error
	for i := range c.Seeds {
		p := newPlacement(g, near, shape{c.Radix, c.Wrap})
		err := p.sow(&c.Seeds[i], number)
		if err == nil {
			p.solve()
			err = p.verify()
		}
		if err == nil {
			return p, nil
		}
		if len(errs) < maxErrors {
			errs = append(errs, fmt.Errorf("seed %d: %w", i+1, err))
		}
	}
	return nil, errors.Join(errs...)
}

// sow places the switches that a seed names.
func (p *placement) sow(seed *Seed, number map[ib.GUID]int32) error {
	from, ok := number[seed.From]
	if !ok {
		return fmt.Errorf("switch %v is not in the fabric", seed.From)
	}
	var at coord
	for dim, n := range p.radix {
		at[dim] = ((-seed.Dateline[dim])%n + n) % n
		if !p.wrap[dim] && seed.To[2*dim] == 0 {
			at[dim] = n - 1 // the only neighbour lies behind
		}
	}
	p.put(from, at)
	for dir, guid := range seed.To {
		if guid == 0 {
			continue
		}
		s, ok := number[guid]
		if !ok {
			return fmt.Errorf("switch %v is not in the fabric", guid)
		}
		next, ok := p.step(at, dir)
		switch {
		case !has(p.near[from], s):
			return fmt.Errorf("switches %v and %v are not cabled to each other", seed.From, guid)
		case !ok:
			return fmt.Errorf("switch %v lies beyond the end of dimension %s; seed an open dimension at its first switch", guid, axis(dir/2))
		case !p.seat(s, next):
			return fmt.Errorf("switch %v is given two places", guid)
		}
	}
	return nil
}

// detect tries switches, those with most neighbours first, as the one to begin
// at.
func detect(g *route.Graph, near [][]int32, c *Config) (*placement, error) {
	origins := make([]int32, len(g.IDs))
	for s := range origins {
		origins[s] = int32(s)
	}
	slices.SortStableFunc(origins, func(a, b int32) int { return cmp.Compare(len(near[b]), len(near[a])) })
	if len(origins) == 0 {
		return newPlacement(g, near, shape{radix: [3]int{1, 1, 1}}), nil
	}
	if most := origins[0]; len(near[most]) > 6 {
		return nil, fmt.Errorf("this is no torus: switch %v is cabled to %d others, 6 are the most in three dimensions", g.GUID(most), len(near[most]))
	}
	best := fmt.Errorf("this is no torus that can be recognised; name its size and a seed in torus-2QoS.conf")
	least := len(g.IDs) + 1
	for _, o := range origins[:min(len(origins), maxOrigins)] {
		for _, rays := range guess(near, o) {
			p, err := grow(g, near, o, rays, c)
			if err == nil {
				return p, nil
			}
			if p != nil && p.left < least {
				least, best = p.left, fmt.Errorf("%w; name its size and a seed in torus-2QoS.conf if it is one", err)
			}
		}
	}
	return nil, best
}

// ray is a dimension as seen from a switch: the neighbours in both directions, nobody where there is none, and whether it
// is taken for a ring of four.
type ray struct {
	ahead, back int32
	four        bool
}

// guess returns the ways to see the neighbours of a switch as dimensions. Those without a common neighbour are opposite
// each other; the others are rings of four, or ends of rows.
func guess(near [][]int32, o int32) [][]ray {
	var paired []ray
	var loose []int32
	opposite := make(map[int32]bool)
	for _, a := range near[o] {
		if opposite[a] {
			continue
		}
		b := straight(near, a, o, near[o])
		if b >= 0 && straight(near, b, o, near[o]) == a {
			paired = append(paired, ray{ahead: a, back: b})
			opposite[b] = true
		} else {
			loose = append(loose, a)
		}
	}
	var ways [][]ray
	for fours := len(loose) / 2; fours >= 0; fours-- {
		rays := slices.Clone(paired)
		for i := range fours {
			rays = append(rays, ray{loose[2*i], loose[2*i+1], true})
		}
		for _, v := range loose[2*fours:] {
			rays = append(rays, ray{ahead: v, back: none})
		}
		if len(rays) <= 3 {
			ways = append(ways, rays)
		}
	}
	return ways
}

// grow measures the dimensions and places everything.
func grow(g *route.Graph, near [][]int32, o int32, rays []ray, c *Config) (*placement, error) {
	s, at := shape{radix: [3]int{1, 1, 1}}, coord{}
	for dim, r := range rays {
		switch {
		case r.four:
			s.radix[dim], s.wrap[dim] = 4, true
			continue
		case r.back == none:
			n, _ := length(near, o, r.ahead)
			s.radix[dim] = 1 + n
			continue
		}
		ahead, ring := length(near, o, r.ahead)
		if ring {
			s.radix[dim], s.wrap[dim] = ahead, true
			continue
		}
		behind, _ := length(near, o, r.back)
		s.radix[dim], at[dim] = 1+ahead+behind, behind
	}
	if mostlyEmpty(s.radix, len(near)) {
		return nil, errors.New("most places are empty")
	}
	if c != nil && !s.matches(c) {
		return nil, fmt.Errorf("the cables make %v, and the file wants another", &s)
	}
	p := newPlacement(g, near, s)
	p.put(o, at)
	for dim, r := range rays {
		for i, v := range []int32{r.ahead, r.back} {
			if next, ok := p.step(at, 2*dim+i); v != none && (!ok || !p.seat(v, next)) {
				return nil, errors.New("two switches at one place")
			}
		}
	}
	p.solve()
	return p, p.verify()
}

// matches reports whether a shape is that of a configuration, in any order of
// the dimensions.
func (s *shape) matches(c *Config) bool {
	key := func(radix [3]int, wrap [3]bool) (k [3]int) {
		for dim, n := range radix {
			k[dim] = 2 * n
			if wrap[dim] {
				k[dim]++
			}
		}
		slices.Sort(k[:])
		return k
	}
	return key(s.radix, s.wrap) == key(c.Radix, c.Wrap)
}

// length goes straight on from a switch and its neighbour. It returns how many steps there are, and whether they lead back
// to the start.
func length(near [][]int32, start, next int32) (steps int, ring bool) {
	before, s := start, next
	for steps = 1; steps <= len(near); steps++ {
		if s == start {
			return steps, true
		}
		v := straight(near, before, s, near[s])
		if v < 0 {
			return steps, false
		}
		before, s = s, v
	}
	return steps, false
}
