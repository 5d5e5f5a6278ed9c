// Package lint finds suspicious parts of a valid revision: an operator should examine them before it comes into force.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Rule names a check.
type Rule string

// Checks.
const (
	PortNumber   Rule = "port-number"   // the model has no such port
	Inside       Rule = "inside"        // a switch without the aggregation node its model has
	Degree       Rule = "degree"        // more or fewer cables than others of its role
	RailPurity   Rule = "rail-purity"   // adapters of different rails on one leaf
	RailMissing  Rule = "rail-missing"  // a host without one of the rails that others have
	Parallel     Rule = "parallel"      // unequal numbers of links to the switches above
	Unreachable  Rule = "unreachable"   // not reached from a Subnet Manager
	NoSM         Rule = "no-sm"         // no device has the role sm
	SpareUnsaid  Rule = "spare-unsaid"  // ports of a switch that are neither cabled nor reserved
	UnknownKind  Rule = "unknown-kind"  // a linked device whose type cannot be compared
	WeakPolicy   Rule = "weak-policy"   // GUID, port or type are not enforced
	SwappedBytes Rule = "swapped-bytes" // two GUIDs that are each other's bytes backwards
	NotLinked    Rule = "not-linked"    // a device in use without a link
	NoPlace      Rule = "no-place"      // devices without rack: findings cannot say where to walk
)

// Finding is a suspicious part of a revision.
type Finding struct {
	Rule   Rule         `json:"rule"`
	At     topospec.End `json:"-"`
	Line   int          `json:"line,omitempty"`
	Object string       `json:"object"`
	Text   string       `json:"text"`
}

// Check returns the findings of a revision, in the order of rules and places.
func Check(s *topospec.Spec) []Finding {
	c := checker{s: s, r: s.Revision(), found: []Finding{}}
	c.policy()
	c.devices()
	c.links()
	c.degrees()
	c.rails()
	c.parallel()
	c.reach()
	slices.SortStableFunc(c.found, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), a.At.Compare(b.At)) })
	return c.found
}

type checker struct {
	s     *topospec.Spec
	r     *topospec.Revision
	found []Finding
}

func (c *checker) add(rule Rule, d *topospec.Device, port ib.PortNum, line int, format string, args ...any) {
	f := Finding{Rule: rule, Line: line, Text: fmt.Sprintf(format, args...)}
	if d != nil {
		f.At, f.Object = topospec.End{GUID: d.GUID, Port: port}, d.Where(port, devicemodel.Label)
	} else {
		f.Object = "revision"
	}
	c.found = append(c.found, f)
}

func (c *checker) policy() {
	f := c.r.Policy.Fields.WithDefaults()
	if f.GUID != topospec.FieldEnforce || f.Port != topospec.FieldEnforce || f.Type != topospec.FieldEnforce {
		c.add(WeakPolicy, nil, 0, 0, "GUID, port and type are not all enforced: another device can take a place")
	}
}

func (c *checker) devices() {
	unplaced, sms := 0, 0
	for i := range c.r.Devices {
		d := &c.r.Devices[i]
		if d.Stock != topospec.InUse {
			continue
		}
		if d.Role == topospec.RoleSM {
			sms++
		}
		if d.Rack == "" && d.Kind != topospec.KindAN {
			unplaced++
		}
		if o := c.s.DeviceByGUID(topospec.Swapped(d.GUID)); o != topospec.None && c.s.Device(o).GUID > d.GUID {
			c.add(SwappedBytes, d, 0, d.Line, "GUID %v read backwards is %v: one of the two may have been read in the wrong order", d.GUID, c.s.Device(o).GUID)
		}
		c.ports(topospec.DeviceID(i), d)
	}
	if sms == 0 {
		c.add(NoSM, nil, 0, 0, "no device has the role sm: the Subnet Manager's own place is not pinned")
	}
	if unplaced > 0 {
		c.add(NoPlace, nil, 0, 0, "%d devices in use have no rack: findings cannot say where to walk", unplaced)
	}
}

// ports checks the ports of one device.
func (c *checker) ports(id topospec.DeviceID, d *topospec.Device) {
	linked, free := 0, 0
	model, known := devicemodel.Find(d.Model)
	inside := false
	for port, slot := range c.s.PortsOf(id) {
		l, _ := c.s.LinkAt(slot)
		if l == nil {
			if known && uint8(port) <= model.Ports || !known {
				free++
			}
			continue
		}
		linked++
		inside = inside || port == model.Aggregation
		if known && uint8(port) > model.All() {
			c.add(PortNumber, d, port, l.Line, "%s has ports up to %d", model.Name, model.All())
		}
	}
	switch {
	case linked == 0:
		c.add(NotLinked, d, 0, d.Line, "in use, and no link leads to it: mark it as spare or retired")
	case d.Kind != topospec.KindSwitch:
	case known && model.Aggregation != 0 && !inside:
		c.add(Inside, d, model.Aggregation, d.Line, "%s may show an aggregation node on port %d, which is not listed: it would be taken for an intruder", model.Name, model.Aggregation)
	case free > 0 && d.Ports > 0:
		c.add(SpareUnsaid, d, 0, d.Line, "%d ports are neither cabled nor reserved", free)
	}
}

func (c *checker) links() {
	for i := range c.r.Links {
		l := &c.r.Links[i]
		for _, e := range [2]topospec.End{l.A, l.B} {
			if id := c.s.DeviceByGUID(e.GUID); id != topospec.None && c.s.Device(id).Kind == topospec.KindAny {
				c.add(UnknownKind, c.s.Device(id), e.Port, l.Line, "its kind is not said: a host there may claim to be a switch")
			}
		}
	}
}

// degrees compares the numbers of cables of devices of one role.
func (c *checker) degrees() {
	byRole := map[topospec.Role]map[int]int{}
	degree := make([]int, len(c.r.Devices))
	for i := range c.r.Devices {
		for _, slot := range c.s.PortsOf(topospec.DeviceID(i)) {
			if l, peer := c.s.LinkAt(slot); l != nil && !peer.IsZero() && l.Class == topospec.ClassTrunk {
				degree[i]++
			}
		}
		if d := &c.r.Devices[i]; d.Kind == topospec.KindSwitch && d.Role != topospec.RoleAny {
			if byRole[d.Role] == nil {
				byRole[d.Role] = map[int]int{}
			}
			byRole[d.Role][degree[i]]++
		}
	}
	for i := range c.r.Devices {
		d := &c.r.Devices[i]
		if d.Kind != topospec.KindSwitch || d.Role == topospec.RoleAny {
			continue
		}
		if usual := most(byRole[d.Role]); degree[i] != usual {
			c.add(Degree, d, 0, d.Line, "%d trunks, where most of role %v have %d", degree[i], d.Role, usual)
		}
	}
}

// most returns the value with the highest count, the lowest of several.
func most(counts map[int]int) int {
	best, times := 0, -1
	for v, n := range counts {
		if n > times || n == times && v < best {
			best, times = v, n
		}
	}
	return best
}

// rails checks that adapters of one rail are together, and that a host has all.
func (c *checker) rails() {
	leafRail := map[ib.GUID]uint8{}
	hosts := map[string]map[uint8]bool{}
	names := []string{}
	widest := 0
	for i := range c.r.Devices {
		d := &c.r.Devices[i]
		if d.Rail == 0 || d.Stock != topospec.InUse {
			continue
		}
		if hosts[d.Host] == nil {
			hosts[d.Host] = map[uint8]bool{}
			names = append(names, d.Host)
		}
		hosts[d.Host][d.Rail] = true
		widest = max(widest, len(hosts[d.Host]))
		leaf := c.s.Home(topospec.DeviceID(i)).GUID
		if rail, seen := leafRail[leaf]; !seen {
			leafRail[leaf] = d.Rail
		} else if rail != d.Rail {
			c.add(RailPurity, d, 1, d.Line, "rail %d on a leaf of rail %d", d.Rail, rail)
		}
	}
	slices.Sort(names)
	for _, host := range names {
		if n := len(hosts[host]); n < widest {
			c.found = append(c.found, Finding{Rule: RailMissing, Object: "host " + host, Text: fmt.Sprintf("%d rails, others have %d", n, widest)})
		}
	}
}

// parallel compares the numbers of links from a switch to each of its neighbours
// of one role.
func (c *checker) parallel() {
	for i := range c.r.Devices {
		d := &c.r.Devices[i]
		if d.Kind != topospec.KindSwitch || d.Role == topospec.RoleAny {
			continue
		}
		links := map[ib.GUID]int{}
		for _, slot := range c.s.PortsOf(topospec.DeviceID(i)) {
			if l, peer := c.s.LinkAt(slot); l != nil && l.Class == topospec.ClassTrunk {
				links[peer.GUID]++
			}
		}
		lowest, highest := map[topospec.Role]int{}, map[topospec.Role]int{}
		for g, n := range links {
			id := c.s.DeviceByGUID(g)
			if id == topospec.None {
				continue
			}
			role := c.s.Device(id).Role
			if lowest[role] == 0 || n < lowest[role] {
				lowest[role] = n
			}
			highest[role] = max(highest[role], n)
		}
		for role := topospec.RoleAny; role <= topospec.RoleService; role++ {
			if lowest[role] != highest[role] {
				c.add(Parallel, d, 0, d.Line, "%d to %d links to each switch of role %v", lowest[role], highest[role], role)
			}
		}
	}
}

// reach walks from every Subnet Manager over active links.
func (c *checker) reach() {
	seen := make([]bool, len(c.r.Devices))
	var queue []topospec.DeviceID
	for i := range c.r.Devices {
		if d := &c.r.Devices[i]; d.Role == topospec.RoleSM && d.Stock == topospec.InUse {
			seen[i] = true
			queue = append(queue, topospec.DeviceID(i))
		}
	}
	if len(queue) == 0 {
		return
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, slot := range c.s.PortsOf(queue[0]) {
			l, peer := c.s.LinkAt(slot)
			if l == nil || peer.IsZero() || l.State != topospec.Active && l.State != topospec.Maintenance {
				continue
			}
			if id := c.s.DeviceByGUID(peer.GUID); !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	for i := range c.r.Devices {
		if d := &c.r.Devices[i]; !seen[i] && d.Stock == topospec.InUse && c.s.Home(topospec.DeviceID(i)) != (topospec.End{}) {
			c.add(Unreachable, d, 0, d.Line, "no active link leads from a Subnet Manager to it")
		}
	}
}

// RackPair is how many cables lead from one rack to another.
type RackPair struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Cables int    `json:"cables"`
}

// Cables counts the cables between each pair of racks, for the installation.
func Cables(s *topospec.Spec) []RackPair {
	counts := map[[2]string]int{}
	r := s.Revision()
	for i := range r.Links {
		l := &r.Links[i]
		if l.B.IsZero() || l.Class == topospec.ClassInternal {
			continue
		}
		a, b := s.Device(s.DeviceByGUID(l.A.GUID)).Rack, s.Device(s.DeviceByGUID(l.B.GUID)).Rack
		if b < a {
			a, b = b, a
		}
		counts[[2]string{a, b}]++
	}
	pairs := make([]RackPair, 0, len(counts))
	for k, n := range counts {
		pairs = append(pairs, RackPair{k[0], k[1], n})
	}
	slices.SortFunc(pairs, func(x, y RackPair) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) })
	return pairs
}
