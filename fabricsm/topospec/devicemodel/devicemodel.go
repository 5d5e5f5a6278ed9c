// Package devicemodel holds the known models of switches and adapters: how many ports they have, their labels, and which
// devices sit inside them. A specification without the devices inside a switch disables them (threat T152).
package devicemodel

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Model is one product. The zero Model is one of which nothing is known.
type Model struct {
	Name  string
	Kind  topospec.Kind
	Ports uint8 // cabled ones
	// Aggregation is the port behind which the aggregation node of a switch sits, 0:
	// it has none. NodeInfo counts this port, too.
	Aggregation ib.PortNum
	lanes       uint8 // ports of one cage; 0: labels are port numbers
}

// models by name. Labels of a cage with two ports are "cage/port".
var models = []Model{
	{Name: "MSX6036", Kind: topospec.KindSwitch, Ports: 36},
	{Name: "MSB7700", Kind: topospec.KindSwitch, Ports: 36},
	{Name: "MSB7800", Kind: topospec.KindSwitch, Ports: 36, Aggregation: 37},
	{Name: "MQM8700", Kind: topospec.KindSwitch, Ports: 40, Aggregation: 41},
	{Name: "MQM8790", Kind: topospec.KindSwitch, Ports: 40, Aggregation: 41},
	{Name: "MQM9700", Kind: topospec.KindSwitch, Ports: 64, Aggregation: 65, lanes: 2},
	{Name: "MQM9701", Kind: topospec.KindSwitch, Ports: 64, Aggregation: 65, lanes: 2},
	{Name: "MQM9790", Kind: topospec.KindSwitch, Ports: 64, Aggregation: 65, lanes: 2},
	{Name: "Q3400", Kind: topospec.KindSwitch, Ports: 144, Aggregation: 145, lanes: 2},
	{Name: "ConnectX-5", Kind: topospec.KindHCA, Ports: 1},
	{Name: "ConnectX-6", Kind: topospec.KindHCA, Ports: 1},
	{Name: "ConnectX-7", Kind: topospec.KindHCA, Ports: 1},
	{Name: "ConnectX-8", Kind: topospec.KindHCA, Ports: 1},
	{Name: "BlueField-3", Kind: topospec.KindHCA, Ports: 1},
}

// Names returns the names of all known models.
func Names() []string {
	names := make([]string, len(models))
	for i := range models {
		names[i] = models[i].Name
	}
	return names
}

// Find returns a model by its name, or by a longer product name that begins with it, with or without the leading M that
// order numbers have.
func Find(name string) (Model, bool) {
	i := slices.IndexFunc(models, func(m Model) bool {
		return strings.HasPrefix(name, m.Name) || m.Kind == topospec.KindSwitch && strings.HasPrefix("M"+name, m.Name)
	})
	if i < 0 {
		return Model{}, false
	}
	return models[i], true
}

// All returns the highest port number that the model reports: its cabled ports and the one of its aggregation node.
func (m Model) All() uint8 { return max(m.Ports, uint8(m.Aggregation)) }

// Label returns the label printed beside a port.
func (m Model) Label(p ib.PortNum) string {
	switch {
	case p == 0 || m.lanes == 0 || uint8(p) > m.Ports:
		return fmt.Sprint(p)
	default:
		return fmt.Sprintf("%d/%d", (uint8(p)-1)/m.lanes+1, (uint8(p)-1)%m.lanes+1)
	}
}

// PortOf returns the port with a label.
func (m Model) PortOf(label string) (ib.PortNum, error) {
	for p := ib.PortNum(1); uint8(p) <= m.Ports; p++ {
		if m.Label(p) == label {
			return p, nil
		}
	}
	return 0, fmt.Errorf("port label %.20q: %s has none such; the first is %q, the last %q", label, m.Name, m.Label(1), m.Label(ib.PortNum(m.Ports)))
}

// Label returns the label printed beside a port of a model, "" if the model is not known. It can be the argument of
// topospec.Device.Where.
func Label(model string, p ib.PortNum) string {
	m, ok := Find(model)
	if !ok {
		return ""
	}
	return m.Label(p)
}

// Chassis is a director switch: leaf chips, each with one link to every spine
// chip or several, side by side.
type Chassis struct {
	Leaves, Spines int
	External       uint8 // ports of a leaf chip that lead out; the others follow
	Parallel       int   // links between a leaf chip and a spine chip
}

// Internal returns the links inside a director whose chips have these GUIDs, leaf chips first.
func (c Chassis) Internal(chips []ib.GUID) ([]topospec.Link, error) {
	if c.Leaves < 1 || c.Spines < 1 || c.Parallel < 1 || len(chips) != c.Leaves+c.Spines {
		return nil, fmt.Errorf("director of %d leaf and %d spine chips: %d GUIDs are given", c.Leaves, c.Spines, len(chips))
	}
	if int(c.External)+c.Spines*c.Parallel > 254 || c.Leaves*c.Parallel > 254 {
		return nil, fmt.Errorf("director of %d leaf and %d spine chips with %d links each: a chip has 254 ports at most", c.Leaves, c.Spines, c.Parallel)
	}
	var links []topospec.Link
	for leaf := range c.Leaves {
		for spine := range c.Spines {
			for k := range c.Parallel {
				links = append(links, topospec.Link{
					A:     topospec.End{GUID: chips[leaf], Port: ib.PortNum(int(c.External) + spine*c.Parallel + k + 1)},
					B:     topospec.End{GUID: chips[c.Leaves+spine], Port: ib.PortNum(leaf*c.Parallel + k + 1)},
					Class: topospec.ClassInternal,
				})
			}
		}
	}
	return links, nil
}
