package generate

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Revision makes a draft of a design. Every device of it is in the manifest under
// its name, and every line of the manifest is used or a spare; all that is missing
// is reported together.
func (d Design) Revision(m Manifest) (*topospec.Revision, error) {
	d, err := d.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := d.shape()
	if err != nil {
		return nil, err
	}
	g := &generator{d: d, s: s, m: m, r: &topospec.Revision{Fabric: d.Fabric}, used: map[string]bool{}, Problems: topospec.Problems{Source: "manifest"}}
	if d.Mode != "" {
		if err := g.r.Policy.Mode.UnmarshalText([]byte(d.Mode)); err != nil {
			return nil, err
		}
	}
	g.build()
	g.leftover()
	if err := g.Err(); err != nil {
		return nil, err
	}
	g.r.Normalize()
	return g.r, g.r.Validate(d.Fabric)
}

// generator is a revision that is being made.
type generator struct {
	topospec.Problems
	d     Design
	s     Shape
	m     Manifest
	r     *topospec.Revision
	used  map[string]bool
	boxes []*box // the switches, for their spare ports

	dry   bool // only the names are wanted
	names []Slot
}

// Slot is a device that a design needs. Its GUID is in the manifest.
type Slot struct {
	Name  string
	Kind  topospec.Kind
	Model string
}

// Slots returns the devices that a design needs, in the order of the design. The manifest must name them.
func (d Design) Slots() ([]Slot, error) {
	d, err := d.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := d.shape()
	if err != nil {
		return nil, err
	}
	g := &generator{d: d, s: s, r: &topospec.Revision{}, used: map[string]bool{}, dry: true}
	g.build()
	return g.names, nil
}

// box is a switch of the design and which of its ports are taken.
type box struct {
	guid  ib.GUID
	taken []bool
}

func (g *generator) build() {
	d, s := &g.d, &g.s
	leaves := make([][]*box, d.Rails) // by rail: unit after unit
	for u := range d.Units {
		for r := range d.Rails {
			for i := range s.perRail {
				leaves[r] = append(leaves[r], g.addSwitch(d.Names.Leaf, topospec.RoleLeaf, numbers{unit: u + 1, rail: r + 1, index: i + 1}))
			}
		}
	}
	host := 0
	for u := range d.Units {
		n := d.Hosts
		if u == 0 && d.FirstUnit > 0 {
			n = d.FirstUnit
		}
		for h := range n {
			g.addHost(leaves, u, h, host)
			host++
		}
	}
	for _, sm := range d.SM {
		g.addSM(leaves, sm)
	}
	g.above(leaves)
	g.reserve()
}

// above adds spines and cores. With three tiers the leaves of a rail and pod have
// spines of their own, and spine i of every rail and pod meets the others at core
// group i, or rails would be fabrics apart.
func (g *generator) above(leaves [][]*box) {
	d, s := &g.d, &g.s
	meet := make([][]*box, s.podSpines)
	for group := range s.railsAbove {
		for pod := range s.pods {
			var below, own []*box
			if s.railsAbove < len(leaves) { // two tiers: all rails meet at the spines
				for _, l := range leaves {
					below = append(below, l...)
				}
			} else {
				below = leaves[group][pod*s.podLeaves : (pod+1)*s.podLeaves]
			}
			for i := range s.podSpines {
				spine := g.addSwitch(d.Names.Spine, topospec.RoleSpine, numbers{pod: pod + 1, rail: group + 1, index: i + 1})
				own, meet[i] = append(own, spine), append(meet[i], spine)
			}
			g.mesh(below, own, s.down, s.leafLinks)
		}
	}
	for i, spines := range meet {
		var cores []*box
		for c := range s.cores {
			cores = append(cores, g.addSwitch(d.Names.Core, topospec.RoleCore, numbers{pod: i + 1, index: c + 1}))
		}
		g.mesh(spines, cores, int(s.sw.Ports)/2, s.spineLinks)
	}
}

// mesh cables every switch below to every one above with parallel links. Ports up
// come after the first ports down.
func (g *generator) mesh(below, above []*box, down, parallel int) {
	for i, lo := range below {
		for j, hi := range above {
			for k := range parallel {
				g.link(lo, down+j*parallel+k+1, hi, i*parallel+k+1)
			}
		}
	}
}

func (g *generator) link(a *box, ap int, b *box, bp int) {
	a.taken[ap], b.taken[bp] = true, true
	g.r.Links = append(g.r.Links, topospec.Link{
		A: topospec.End{GUID: a.guid, Port: ib.PortNum(ap)}, B: topospec.End{GUID: b.guid, Port: ib.PortNum(bp)}, Class: topospec.ClassTrunk,
	})
}

func (g *generator) addSwitch(rule string, role topospec.Role, n numbers) *box {
	name := n.name(rule)
	b := &box{guid: g.add(topospec.Device{Name: name, Kind: topospec.KindSwitch, Model: g.d.SwitchModel, Role: role, Ports: g.ports()}), taken: make([]bool, int(g.s.sw.All())+1)}
	if g.d.Aggregation && g.s.sw.Aggregation != 0 {
		n.of = name
		an := g.add(topospec.Device{Name: n.name(g.d.Names.AN), Kind: topospec.KindAN, Ports: 1})
		b.taken[g.s.sw.Aggregation] = true
		g.r.Links = append(g.r.Links, topospec.Link{
			A: topospec.End{GUID: b.guid, Port: g.s.sw.Aggregation}, B: topospec.End{GUID: an, Port: 1}, Class: topospec.ClassInternal,
		})
	}
	g.boxes = append(g.boxes, b)
	return b
}

// ports returns how many ports the switches report.
func (g *generator) ports() uint8 {
	if g.d.Aggregation {
		return g.s.sw.All()
	}
	return g.s.sw.Ports
}

func (g *generator) addHost(leaves [][]*box, unit, h, host int) {
	n := numbers{unit: unit + 1, host: host + 1}
	if g.d.Trays > 0 {
		n.rack, n.tray = unit*g.d.Racks+h/g.d.Trays+1, h%g.d.Trays+1
	}
	name := n.name(g.d.Names.Host)
	for r := range g.d.Rails {
		n.rail, n.of = r+1, name
		dev := topospec.Device{Name: n.name(g.d.Names.HCA), Kind: topospec.KindHCA, Model: g.d.HostModel, Role: topospec.RoleCompute, Ports: g.s.hca.Ports, Host: name}
		if g.d.Rails > 1 {
			dev.Rail = uint8(r + 1)
		}
		if g.d.Trays > 0 {
			dev.Rack, dev.Slot = fmt.Sprint(n.rack), fmt.Sprintf("tray %d", n.tray)
		}
		guid := g.add(dev)
		leaf := leaves[r][unit*g.s.perRail+h/g.s.down]
		g.cable(leaf, h%g.s.down+1, guid, topospec.ClassHost)
	}
}

func (g *generator) cable(leaf *box, port int, guid ib.GUID, class topospec.Class) {
	leaf.taken[port] = true
	g.r.Links = append(g.r.Links, topospec.Link{
		A: topospec.End{GUID: leaf.guid, Port: ib.PortNum(port)}, B: topospec.End{GUID: guid, Port: 1}, Class: class,
	})
}

// addSM cables a host of a Subnet Manager to the last free port down of its leaf.
func (g *generator) addSM(leaves [][]*box, sm SMHost) {
	object := fmt.Sprintf("sm_hosts %q", sm.Name)
	if sm.Unit < 1 || sm.Unit > g.d.Units || sm.Rail < 1 || sm.Rail > g.d.Rails || sm.Name == "" {
		g.Add(0, object, fmt.Sprintf("unit %d, rail %d", sm.Unit, sm.Rail), fmt.Sprintf("want a name, a unit up to %d and a rail up to %d", g.d.Units, g.d.Rails))
		return
	}
	leaf := leaves[sm.Rail-1][sm.Unit*g.s.perRail-1]
	for port := g.s.down; port > 0; port-- {
		if !leaf.taken[port] {
			guid := g.add(topospec.Device{Name: sm.Name, Kind: topospec.KindHCA, Model: g.d.HostModel, Role: topospec.RoleSM, Host: sm.Name, Ports: g.s.hca.Ports})
			g.cable(leaf, port, guid, topospec.ClassService)
			return
		}
	}
	g.Add(0, object, "its leaf has no free port", "assign fewer hosts to the first unit (first_unit_hosts)")
}

// reserve lists the ports without cable: they must be dark.
func (g *generator) reserve() {
	for _, b := range g.boxes {
		for p := 1; p <= int(g.s.sw.Ports); p++ {
			if !b.taken[p] {
				g.r.Links = append(g.r.Links, topospec.Link{A: topospec.End{GUID: b.guid, Port: ib.PortNum(p)}, State: topospec.Reserved})
			}
		}
	}
}

// add adds a device with its GUID from the manifest.
func (g *generator) add(d topospec.Device) ib.GUID {
	if g.dry {
		g.names = append(g.names, Slot{d.Name, d.Kind, d.Model})
		return 0
	}
	item, ok := g.m.items[d.Name]
	if !ok {
		g.Add(0, fmt.Sprintf("%v %q", d.Kind, d.Name), "it is not in the manifest", "add its line, or correct the naming rule")
		return 0
	}
	if g.used[d.Name] {
		g.Add(item.Line, fmt.Sprintf("%v %q", d.Kind, d.Name), "two devices of the design have this name", "make the naming rule distinguish them")
		return 0
	}
	g.used[d.Name] = true
	item.Merge(&d)
	g.r.Devices = append(g.r.Devices, d)
	return d.GUID
}

// leftover reports lines of the manifest that the design has no place for, and
// takes spares.
func (g *generator) leftover() {
	for _, name := range g.m.order {
		item := g.m.items[name]
		switch {
		case g.used[name]:
		case item.Stock == topospec.InUse:
			g.Add(item.Line, fmt.Sprintf("%q", name), "the design has no place for it", "correct the name, or mark it as a spare")
		default:
			g.r.Devices = append(g.r.Devices, item.Device())
		}
	}
}

// numbers are the numbers that a naming rule may use.
type numbers struct {
	unit, rail, index, pod, host, rack, tray int
	of                                       string
}

// name fills a rule in.
func (n numbers) name(rule string) string {
	var b strings.Builder
	for {
		text, rest, open := strings.Cut(rule, "{")
		b.WriteString(text)
		if !open {
			return b.String()
		}
		word, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("{" + rest)
			return b.String()
		}
		rule = after
		key, width, _ := strings.Cut(word, ":")
		digits, _ := strconv.Atoi(width)
		values := map[string]int{"unit": n.unit, "rail": n.rail, "index": n.index, "pod": n.pod, "host": n.host, "rack": n.rack, "tray": n.tray}
		v, known := values[key]
		switch {
		case key == "of":
			b.WriteString(n.of)
		case known:
			fmt.Fprintf(&b, "%0*d", min(digits, 9), v)
		default:
			b.WriteString("{" + word + "}")
		}
	}
}
