// Package diff compares two revisions, in physical terms: the expected one with another one, or with a discovered fabric.
package diff

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Kind is how a place differs.
type Kind string

// Kinds, in the words of cabling reports.
const (
	MissWired     Kind = "miss_wired" // another device or port is at the other end
	Missing       Kind = "missing"    // expected, not there
	Unexpected    Kind = "unexpected" // there, not expected
	StateChanged  Kind = "state"      // one cable, meant to be something else
	DeviceAdded   Kind = "device_added"
	DeviceRemoved Kind = "device_removed"
	DeviceMoved   Kind = "device_moved"   // another rack, unit, slot or host
	DeviceChanged Kind = "device_changed" // kind, model, ports or GUIDs
	PolicyChanged Kind = "policy"
)

// Item is one difference.
type Item struct {
	Kind     Kind         `json:"kind"`
	A        topospec.End `json:"-"` // the port, or the device with port 0
	Expected topospec.End `json:"-"` // at the other end, zero: nothing
	Actual   topospec.End `json:"-"`
	Port     string       `json:"port"`               // A in words
	Was      string       `json:"expected,omitempty"` // in words
	Is       string       `json:"actual,omitempty"`
	Class    string       `json:"class,omitempty"`
}

// String returns the difference as a line of text.
func (i Item) String() string {
	switch i.Kind {
	case MissWired:
		return fmt.Sprintf("%s: %s ↔ %s, expected %s", i.Kind, i.Port, i.Is, i.Was)
	case Missing:
		return fmt.Sprintf("%s: %s ↔ %s", i.Kind, i.Port, i.Was)
	case Unexpected:
		return fmt.Sprintf("%s: %s ↔ %s", i.Kind, i.Port, i.Is)
	case DeviceAdded:
		return fmt.Sprintf("%s: %s", i.Kind, i.Is)
	case DeviceRemoved:
		return fmt.Sprintf("%s: %s", i.Kind, i.Was)
	default:
		return fmt.Sprintf("%s: %s: %s, was %s", i.Kind, i.Port, i.Is, i.Was)
	}
}

// Report is all differences, by place.
type Report struct {
	Items []Item
	Same  int // links that are the same in both
	a, b  *topospec.Spec
}

// Empty reports whether there is no difference.
func (r *Report) Empty() bool { return len(r.Items) == 0 }

// Links counts the links that would change.
func (r *Report) Links() int {
	n := 0
	for _, i := range r.Items {
		switch i.Kind {
		case MissWired, Missing, Unexpected, StateChanged:
			n++
		default:
		}
	}
	return n
}

// What is the set of parts of two revisions that are compared.
type What uint8

// Parts. A fabric that was discovered knows cables and devices only.
const (
	Everything What = iota
	CablesOnly      // against a discovered fabric: links that must be up, and their devices
)

// Compare returns the differences of b from a. It costs a pass over both.
func Compare(a, b *topospec.Spec, what What) *Report {
	r := &Report{Items: []Item{}, a: a, b: b}
	r.links(what)
	r.devices(what)
	if what == Everything {
		r.policy()
	}
	slices.SortStableFunc(r.Items, func(x, y Item) int { return cmp.Or(x.A.Compare(y.A), cmp.Compare(x.Kind, y.Kind)) })
	return r
}

func where(s *topospec.Spec, other *topospec.Spec, e topospec.End) string {
	if e.IsZero() {
		return "nothing"
	}
	for _, x := range [2]*topospec.Spec{s, other} {
		if id := x.DeviceByGUID(e.GUID); id != topospec.None {
			return x.Device(id).Where(e.Port, devicemodel.Label)
		}
	}
	return e.String()
}

// isUp reports whether a link is compared with cables.
func isUp(l *topospec.Link) bool {
	return l != nil && (l.State == topospec.Active || l.State == topospec.Maintenance)
}

// links compares the ports of switches, and of others whose link leads to no switch port that was compared. A cable between
// switches is reported once.
func (r *Report) links(what What) {
	told := map[topospec.End]bool{}
	for i := range r.a.Revision().Links {
		l := &r.a.Revision().Links[i]
		if what == CablesOnly && !isUp(l) {
			continue
		}
		other, peer := r.b.LinkAt(r.b.SlotOf(l.A))
		if what == CablesOnly && !isUp(other) {
			other, peer = nil, topospec.End{}
		}
		item := Item{A: l.A, Expected: l.B, Actual: peer, Class: l.Class.String(), Port: where(r.a, r.b, l.A), Was: where(r.a, r.b, l.B), Is: where(r.a, r.b, peer)}
		told[l.A] = true
		switch {
		case other == nil:
			item.Kind = Missing
			if r.elsewhere(l, what, told) {
				continue // reported at the port that has the other end now
			}
		case peer != l.B:
			item.Kind = MissWired
			told[peer] = true
		case what == Everything && other.State != l.State:
			item.Kind, item.Was, item.Is = StateChanged, l.State.String(), other.State.String()
			told[peer] = true
		default:
			told[peer] = true
			r.Same++
			continue
		}
		r.Items = append(r.Items, item)
	}
	for i := range r.b.Revision().Links {
		l := &r.b.Revision().Links[i]
		if told[l.A] || told[l.B] && !l.B.IsZero() || what == CablesOnly && !isUp(l) {
			continue
		}
		if _, planned := r.a.LinkAt(r.a.SlotOf(l.A)); !planned.IsZero() {
			continue // miss wired, reported at the other port
		}
		r.Items = append(r.Items, Item{Kind: Unexpected, A: l.A, Actual: l.B, Class: l.Class.String(), Port: where(r.a, r.b, l.A), Is: where(r.a, r.b, l.B)})
	}
}

// elsewhere reports whether the other end of a link is cabled to another port, at which the difference is reported.
func (r *Report) elsewhere(l *topospec.Link, what What, told map[topospec.End]bool) bool {
	if l.B.IsZero() {
		return false
	}
	id := r.a.DeviceByGUID(l.B.GUID)
	if id == topospec.None || r.a.Device(id).Kind != topospec.KindSwitch {
		return false
	}
	other, peer := r.b.LinkAt(r.b.SlotOf(l.B))
	if other == nil || peer.IsZero() || what == CablesOnly && !isUp(other) {
		return false
	}
	told[peer] = true
	r.Items = append(r.Items, Item{
		Kind: MissWired, A: l.B, Expected: l.A, Actual: peer, Class: l.Class.String(),
		Port: where(r.a, r.b, l.B), Was: where(r.a, r.b, l.A), Is: where(r.a, r.b, peer),
	})
	return true
}

func (r *Report) devices(what What) {
	for i := range r.a.Revision().Devices {
		d := &r.a.Revision().Devices[i]
		id := r.b.DeviceByGUID(d.GUID)
		at := topospec.End{GUID: d.GUID}
		if id == topospec.None {
			if what == Everything || d.Stock == topospec.InUse && r.a.Home(topospec.DeviceID(i)) != (topospec.End{}) {
				r.Items = append(r.Items, Item{Kind: DeviceRemoved, A: at, Port: where(r.a, r.b, at), Was: where(r.a, r.b, at)})
			}
			continue
		}
		o := r.b.Device(id)
		if was, is := facts(d, what), facts(o, what); was != is {
			r.Items = append(r.Items, Item{Kind: DeviceChanged, A: at, Port: where(r.a, r.b, at), Was: was, Is: is})
		}
		if was, is := place(d), place(o); what == Everything && was != is {
			r.Items = append(r.Items, Item{Kind: DeviceMoved, A: at, Port: d.GUID.String(), Was: was, Is: is})
		}
	}
	for i := range r.b.Revision().Devices {
		d := &r.b.Revision().Devices[i]
		if at := (topospec.End{GUID: d.GUID}); r.a.DeviceByGUID(d.GUID) == topospec.None {
			r.Items = append(r.Items, Item{Kind: DeviceAdded, A: at, Port: where(r.b, r.a, at), Is: where(r.b, r.a, at)})
		}
	}
}

// facts returns the properties of a device that the fabric can see.
func facts(d *topospec.Device, what What) string {
	if what == CablesOnly {
		k := d.Kind
		if k == topospec.KindAN { // recognised by description alone
			k = topospec.KindHCA
		}
		return k.String()
	}
	return fmt.Sprintf("%v, model %q, %d ports, system image %v, port GUIDs %v, role %v, rail %d, %v", d.Kind, d.Model, d.Ports, d.SystemImage, d.PortGUIDs, d.Role, d.Rail, d.Stock)
}

func place(d *topospec.Device) string { return d.Where(0, nil) }

func (r *Report) policy() {
	was, is := fmt.Sprintf("%+v", r.a.Revision().Policy), fmt.Sprintf("%+v", r.b.Revision().Policy)
	if was != is {
		r.Items = append(r.Items, Item{Kind: PolicyChanged, Port: "policy", Was: was, Is: is})
	}
}

// Topology is the shape of UFM's Topology_Compare report.
type Topology struct {
	Added   Side `json:"added"`
	Removed Side `json:"removed"`
}

// Side is what one of the two fabrics has and the other has not.
type Side struct {
	Nodes []ib.GUID `json:"nodes"`
	Links []Cable   `json:"links"`
}

// Cable is a link in the shape of UFM.
type Cable struct {
	Source      ib.GUID `json:"source_guid"`
	Destination ib.GUID `json:"destination_guid"`
	Name        string  `json:"name"`
}

// Topology returns the report in UFM's shape: names of links are "GUID_PORT:GUID_PORT".
func (r *Report) Topology() Topology {
	t := Topology{Added: Side{Nodes: []ib.GUID{}, Links: []Cable{}}, Removed: Side{Nodes: []ib.GUID{}, Links: []Cable{}}}
	for _, i := range r.Items {
		switch i.Kind {
		case DeviceAdded:
			t.Added.Nodes = append(t.Added.Nodes, i.A.GUID)
		case DeviceRemoved:
			t.Removed.Nodes = append(t.Removed.Nodes, i.A.GUID)
		case MissWired, Missing, Unexpected:
			t.Removed.add(i.A, i.Expected)
			t.Added.add(i.A, i.Actual)
		default:
		}
	}
	return t
}

func (s *Side) add(a, b topospec.End) {
	if b.IsZero() {
		return
	}
	s.Links = append(s.Links, Cable{a.GUID, b.GUID, fmt.Sprintf("%v_%d:%v_%d", a.GUID, a.Port, b.GUID, b.Port)})
}
