// Package generate makes a revision from the design of a fabric and a manifest of
// the GUIDs that were delivered: rail-optimised pods, fat trees of two or three
// levels, racks of compute trays.
//
// The rules are those of public reference architectures: host h of a unit reaches,
// with its adapter r, a leaf of rail r of that unit; half the ports of a leaf lead
// up; as few spines as carry all of them, with equal parallel links to each. Above
// as many leaves as a spine has ports there are three levels: each rail of a pod
// has spines of its own, and spines of one number meet at one group of cores.
package generate

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/fattree"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Template is the kind of a design.
type Template string

// Templates.
const (
	RailPod Template = "rail_pod" // scalable units of hosts with an adapter per rail
	FatTree Template = "fat_tree" // one adapter per host
	Racks   Template = "racks"    // racks of compute trays, several racks to a unit
)

// Design is the design of a fabric. Zeros mean the usual values of the template.
type Design struct {
	Fabric      string   `yaml:"fabric"`
	Template    Template `yaml:"template"`
	SwitchModel string   `yaml:"switch_model"`
	HostModel   string   `yaml:"host_model"`
	Units       int      `yaml:"units"`
	Hosts       int      `yaml:"hosts_per_unit"` // of a fat tree: per leaf
	FirstUnit   int      `yaml:"first_unit_hosts"`
	Rails       int      `yaml:"rails"`
	Racks       int      `yaml:"racks_per_unit"`
	Trays       int      `yaml:"trays_per_rack"`
	Tiers       int      `yaml:"tiers"`
	PodUnits    int      `yaml:"pod_units"` // units that share spines, with three tiers
	Spines      int      `yaml:"spines"`
	Aggregation bool     `yaml:"aggregation_nodes"`
	SM          []SMHost `yaml:"sm_hosts"`
	Names       Naming   `yaml:"names"`
	Mode        string   `yaml:"mode"`
}

// SMHost is a host of a Subnet Manager, with the leaf it is cabled to: the last
// free port down.
type SMHost struct {
	Name string `yaml:"name"`
	Unit int    `yaml:"unit"`
	Rail int    `yaml:"rail"`
}

// Naming has the patterns of device names. {unit}, {rail}, {index}, {pod}, {host}, {rack} and {tray} stand for numbers from
// 1, {host:3} for one of three digits, {of} for the name of the device it belongs to. {pod} of a core is its group.
type Naming struct {
	Leaf  string `yaml:"leaf"`
	Spine string `yaml:"spine"`
	Core  string `yaml:"core"`
	Host  string `yaml:"host"`
	HCA   string `yaml:"hca"` // {of} is the name of the host
	AN    string `yaml:"aggregation_node"`
}

// Shape is how large a design comes out.
type Shape struct {
	Hosts, Adapters             int
	Leaves, Spines, Cores       int
	HostCables, SpineCables     int // by tier
	CoreCables                  int
	perRail, pods, railsAbove   int // leaves of a unit's rail; pods; groups of spines in a pod
	down, up                    int
	podLeaves, podSpines, cores int // of one group
	leafLinks, spineLinks       int // parallel ones
	hostsPerUnit, rails         int
	units, podUnits             int
	sw, hca                     devicemodel.Model
}

// errDesign means that a design cannot be built.
var errDesign = errors.New("design")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errDesign, fmt.Errorf(format, args...))
}

// withDefaults fills in the values of the template.
func (d Design) withDefaults() (Design, error) {
	set := func(to *int, v int) {
		if *to == 0 {
			*to = v
		}
	}
	text := func(to *string, v string) {
		if *to == "" {
			*to = v
		}
	}
	switch d.Template {
	case RailPod:
		set(&d.Hosts, 32)
		set(&d.Rails, 8)
		text(&d.Names.Leaf, "leaf-{unit}-{rail}")
	case FatTree:
		set(&d.Rails, 1)
		text(&d.Names.Leaf, "leaf-{unit}")
	case Racks:
		set(&d.Rails, 4)
		set(&d.Racks, 8)
		set(&d.Trays, 18)
		set(&d.Hosts, d.Racks*d.Trays)
		text(&d.Names.Host, "rack{rack:2}-tray{tray:2}")
		text(&d.Names.Leaf, "leaf-{unit}-{rail}-{index}")
	default:
		return d, wrong("template %.20q: want %s, %s or %s", string(d.Template), RailPod, FatTree, Racks)
	}
	set(&d.Units, 1)
	set(&d.PodUnits, 16)
	text(&d.SwitchModel, "MQM9700")
	text(&d.HostModel, "ConnectX-7")
	text(&d.Names.Spine, "spine-{pod}-{rail}-{index}")
	text(&d.Names.Core, "core-{pod}-{index}")
	text(&d.Names.Host, "host-{host:4}")
	text(&d.Names.HCA, "{of} mlx5_{rail}")
	text(&d.Names.AN, "{of} aggregation node")
	return d, nil
}

// Shape computes how large the design comes out.
func (d Design) Shape() (Shape, error) {
	d, err := d.withDefaults()
	if err != nil {
		return Shape{}, err
	}
	return d.shape()
}

func (d *Design) shape() (s Shape, err error) {
	var known bool
	if s.sw, known = devicemodel.Find(d.SwitchModel); !known || s.sw.Kind != topospec.KindSwitch {
		return s, wrong("switch model %.40q is not known: want one of %q", d.SwitchModel, devicemodel.Names())
	}
	if s.hca, known = devicemodel.Find(d.HostModel); !known || s.hca.Kind != topospec.KindHCA {
		return s, wrong("host model %.40q is not known: want one of %q", d.HostModel, devicemodel.Names())
	}
	s.down = int(s.sw.Ports) / 2
	s.up = int(s.sw.Ports) - s.down
	if d.Hosts == 0 {
		d.Hosts = s.down
	}
	for _, n := range []struct {
		what  string
		v, to int
	}{
		{"units", d.Units, 4096},
		{"hosts_per_unit", d.Hosts, 4096},
		{"rails", d.Rails, 64},
		{"pod_units", d.PodUnits, 4096},
	} {
		if n.v < 1 || n.v > n.to {
			return s, wrong("%s %d: want 1 to %d", n.what, n.v, n.to)
		}
	}
	if d.FirstUnit < 0 || d.FirstUnit > d.Hosts {
		return s, wrong("first_unit_hosts %d: want at most the %d hosts of a unit", d.FirstUnit, d.Hosts)
	}
	s.units, s.rails, s.hostsPerUnit = d.Units, d.Rails, d.Hosts
	s.perRail = fattree.CeilDiv(d.Hosts, s.down)
	s.Leaves = d.Units * d.Rails * s.perRail
	s.Hosts = d.Units * d.Hosts
	if d.FirstUnit > 0 {
		s.Hosts -= d.Hosts - d.FirstUnit
	}
	s.Adapters, s.HostCables = s.Hosts*d.Rails, s.Hosts*d.Rails
	if n := s.Adapters + s.Leaves; n > topospec.MaxDevices {
		return s, wrong("%d devices, the most is %d", n, topospec.MaxDevices)
	}
	return s, d.above(&s)
}

// above sizes the tiers above the leaves.
func (d *Design) above(s *Shape) error {
	radix := int(s.sw.Ports)
	tiers := d.Tiers
	if tiers == 0 {
		tiers = 2
		if s.Leaves > radix {
			tiers = 3
		}
	}
	switch tiers {
	case 2:
		s.pods, s.podUnits, s.railsAbove, s.podLeaves = 1, d.Units, 1, s.Leaves
	case 3:
		s.podUnits = min(d.PodUnits, d.Units)
		if d.Units%s.podUnits != 0 {
			return wrong("%d units in pods of %d: want a whole number of pods", d.Units, s.podUnits)
		}
		s.pods, s.railsAbove, s.podLeaves = d.Units/s.podUnits, d.Rails, s.podUnits*s.perRail
	default:
		return wrong("tiers %d: want 2 or 3", tiers)
	}
	s.podSpines = d.Spines
	if s.podSpines == 0 {
		s.podSpines = fattree.Fewest(s.up, s.podLeaves, min(radix, s.capacity(tiers)))
	}
	if s.podSpines < 1 || s.up%s.podSpines != 0 || s.podLeaves*(s.up/s.podSpines) > s.capacity(tiers) {
		return wrong("%d leaves with %d ports up do not fit below %d spines with %d ports down: want pods of another size, more tiers or another model",
			s.podLeaves, s.up, s.podSpines, s.capacity(tiers))
	}
	s.leafLinks = s.up / s.podSpines
	s.Spines = s.podSpines * s.railsAbove * s.pods
	s.SpineCables = s.Leaves * s.up
	if tiers == 2 {
		return nil
	}
	meet := s.railsAbove * s.pods
	if s.cores = fattree.Fewest(radix/2, meet, radix); s.cores == 0 {
		return wrong("%d spines of one number do not fit below cores with %d ports", meet, radix)
	}
	s.spineLinks = radix / 2 / s.cores
	s.Cores = s.cores * s.podSpines
	s.CoreCables = s.Spines * (radix / 2)
	return nil
}

// capacity returns how many ports a spine has for leaves.
func (s *Shape) capacity(tiers int) int {
	if tiers == 2 {
		return int(s.sw.Ports)
	}
	return int(s.sw.Ports) / 2
}
