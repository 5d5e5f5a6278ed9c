package netlist

import (
	"errors"
	"fmt"
)

// Shape is the size of a generated fabric. Zero fields take the default in their comment.
type Shape struct {
	Hosts    int    // hosts, the first of which is "sm"; default 8, of rail pods 32
	HCAs     int    // HCAs of each host but "sm", which has one; default 1, of rail pods 8
	Radix    int    // ports of a switch; default 36, of rail pods 64
	Leaves   int    // leaf switches of a two-level tree, default: as few as fit; of a group, default 2
	Spines   int    // spine switches of a two-level tree, default: as few as fit; of a group, default 2
	Switches int    // switches of a chain or hypercube, islands of an archipelago; default 2
	Size     string // switches of a torus or mesh along x, y and z; default "4x4"
	Groups   int    // groups of a dragonfly+; default 3
	Links    int    // cables between each two groups; default 1
	Routers  int    // routers of two ports, one of them cabled to a switch; default none
	Link     string // width and speed of every cable; default "4xEDR"
}

// Bounds of a Shape: they keep a mistyped number from filling the memory.
const (
	maxHosts    = 40_000
	maxHCAs     = 16
	maxSwitches = 1000
)

var errShape = errors.New("shape of generated fabric")

// prepare fills defaults in, checks ranges and starts a builder.
func (s *Shape) prepare() (*builder, error) {
	s.Hosts, s.HCAs, s.Radix = orDefault(s.Hosts, 8), orDefault(s.HCAs, 1), orDefault(s.Radix, 36)
	s.Switches = orDefault(s.Switches, 2)
	if s.Link == "" {
		s.Link = "4xEDR"
	}
	for _, f := range []struct {
		name              string
		value, least, top int
	}{
		{"hosts", s.Hosts, 1, maxHosts},
		{"HCAs", s.HCAs, 1, maxHCAs},
		{"radix", s.Radix, 2, maxPorts},
		{"leaves", s.Leaves, 0, maxSwitches},
		{"spines", s.Spines, 0, maxSwitches},
		{"switches", s.Switches, 1, maxSwitches},
		{"groups", s.Groups, 0, maxSwitches},
		{"links", s.Links, 0, maxSwitches},
		{"routers", s.Routers, 0, maxSwitches},
	} {
		if f.value < f.least || f.value > f.top {
			return nil, fmt.Errorf("%w: %d %s, want %d to %d", errShape, f.value, f.name, f.least, f.top)
		}
	}
	link, err := ParseLink(s.Link)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errShape, err)
	}
	return &builder{link: link, wanted: s.Routers}, nil
}

func orDefault(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}

// hcas is the number of HCAs of a host.
func (s *Shape) hcas(host int) int {
	if host == 0 {
		return 1
	}
	return s.HCAs
}

// cas is the number of HCAs of all hosts.
func (s *Shape) cas() int { return 1 + (s.Hosts-1)*s.HCAs }

// Single generates hosts on one switch, which is called "leaf1".
func Single(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	leaf := b.addSwitch("leaf1", tierLeaf, 1, max(s.Radix, s.cas()))
	for h := range s.Hosts {
		for c := range s.hcas(h) {
			b.cable(b.addHCA(h, c, 1), 1, leaf, 0)
		}
	}
	return b.netlist()
}

// Chain generates a row of switches "sw1", "sw2", ..., each cabled to the next,
// over which the hosts are dealt in turn.
func Chain(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	for i := range s.Switches {
		sw := b.addSwitch(fmt.Sprintf("sw%d", i+1), tierLeaf, i+1, s.Radix)
		if i > 0 {
			b.cable(b.switches[i-1], 2, sw, 1)
		}
	}
	b.deal(&s, 3)
	return b.netlist()
}

// Islands generates switches "sw1", "sw2", ... that have no cable between
// them, over which the hosts are dealt in turn.
func Islands(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	for i := range s.Switches {
		b.addSwitch(fmt.Sprintf("sw%d", i+1), tierLeaf, i+1, s.Radix)
	}
	b.deal(&s, 1)
	return b.netlist()
}

// deal connects one host, with all its HCAs, to each switch in turn, from port first on.
func (b *builder) deal(s *Shape, first int) {
	next := make([]int, len(b.switches))
	for h := range s.Hosts {
		i := h % len(b.switches)
		for c := range s.hcas(h) {
			b.cable(b.addHCA(h, c, 1), 1, b.switches[i], first+next[i])
			next[i]++
		}
	}
}

// DualPort generates two switches "sw1" and "sw2" with a cable between them,
// and hosts whose HCAs have two ports, one cabled to each switch.
func DualPort(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	one := b.addSwitch("sw1", tierLeaf, 1, s.Radix)
	two := b.addSwitch("sw2", tierLeaf, 2, s.Radix)
	b.cable(one, 1, two, 1)
	for h := range s.Hosts {
		for c := range s.hcas(h) {
			ca := b.addHCA(h, c, 2)
			b.cable(ca, 1, one, 0)
			b.cable(ca, 2, two, 0)
		}
	}
	return b.netlist()
}
