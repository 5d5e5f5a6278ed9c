package inventory

import (
	"cmp"
	"context"
	"fmt"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Contents is a whole inventory, each kind by key.
type Contents struct {
	Sites    []Site
	Racks    []Rack
	Switches []Switch
	Hosts    []Host
	Adapters []Adapter
	Trunks   []Trunk
}

// Unit is a height in a rack, or a number of such, in rack units from 1 at the bottom to MaxUnit. 0: not declared.
type Unit uint8

// MaxUnit is the highest unit that a rack may have.
const MaxUnit = 100

// Position is where a device stands.
type Position struct {
	Rack   string `json:"rack,omitempty"`
	Unit   Unit   `json:"unit,omitempty"`   // the lowest one that the device takes
	Height Unit   `json:"height,omitempty"` // how many units it takes; 0: one
	Slot   string `json:"slot,omitempty"`   // of several devices that share a unit
}

// top returns the highest unit that a device at p takes.
func (p Position) top() int { return int(p.Unit) + int(max(p.Height, 1)) - 1 }

// Role is the purpose of a switch or a host. The empty Role is "not declared".
type Role string

// Roles of switches, and of hosts.
const (
	RoleLeaf    Role = "leaf"
	RoleSpine   Role = "spine"
	RoleCore    Role = "core"
	RoleCompute Role = "compute"
	RoleSM      Role = "sm"
	RoleService Role = "service"
)

// Site is a place with racks.
type Site struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Rack is one rack.
type Rack struct {
	ID    string `json:"id"`
	Site  string `json:"site,omitempty"`
	Room  string `json:"room,omitempty"`
	Units Unit   `json:"units,omitempty"` // its height
}

// Switch is one switch, or one chip of a director.
type Switch struct {
	ID              string     `json:"id"`
	GUID            ib.GUID    `json:"guid"`
	SystemImageGUID ib.GUID    `json:"system_image_guid,omitzero"`
	AggregationGUID ib.GUID    `json:"aggregation_guid,omitzero"` // node GUID of the aggregation node inside
	Model           string     `json:"model,omitempty"`
	Serial          string     `json:"serial,omitempty"`
	NumPorts        ib.PortNum `json:"ports,omitempty"` // for cables; 0: those of the model
	Role            Role       `json:"role,omitempty"`
	Spare           bool       `json:"spare,omitempty"` // it is in stock and has no cable
	Position
}

// LastPort returns the highest port for a cable, 0 if it is neither declared nor known of the model.
func (s *Switch) LastPort() ib.PortNum {
	m, _ := devicemodel.Find(s.Model)
	return cmp.Or(s.NumPorts, ib.PortNum(m.Ports))
}

// Trunk is a cable between two switches. A is the lower end.
type Trunk struct {
	A     ib.Place `json:"a"`
	B     ib.Place `json:"b"`
	Label string   `json:"label,omitempty"`
}

// Key names the trunk in the store: the end A as "0x...guid-port".
func (t *Trunk) Key() string { return fmt.Sprintf("%v-%d", t.A.Switch, t.A.Port) }

// Moved returns t with its ends at one switch at another, at ports of the same number.
func (t *Trunk) Moved(from, to ib.GUID) Trunk {
	n := *t
	for _, p := range []*ib.Place{&n.A, &n.B} {
		if p.Switch == from {
			p.Switch = to
		}
	}
	n.normal()
	return n
}

// normal puts the lower end first.
func (t *Trunk) normal() {
	if comparePlace(t.B, t.A) < 0 {
		t.A, t.B = t.B, t.A
	}
}

func comparePlace(a, b ib.Place) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
}

// Adapter is an adapter in stock, in no host.
type Adapter struct {
	HCA
	Location string `json:"location,omitempty"` // where it lies, in words
}

// Sites holds the sites by id.
func Sites() store.Collection[Site] { return store.NewCollection[Site]("inventory/sites", 1) }

// Racks holds the racks by id.
func Racks() store.Collection[Rack] { return store.NewCollection[Rack]("inventory/racks", 1) }

// Switches holds the switches by id.
func Switches() store.Collection[Switch] { return store.NewCollection[Switch]("inventory/switches", 1) }

// Trunks holds the cables between switches by Trunk.Key.
func Trunks() store.Collection[Trunk] { return store.NewCollection[Trunk]("inventory/trunks", 1) }

// Adapters holds the adapters in stock by node GUID.
func Adapters() store.Collection[Adapter] {
	return store.NewCollection[Adapter]("inventory/adapters", 1)
}

// Load reads a whole inventory as of one revision.
func Load(ctx context.Context, n store.Snapshot) (*Contents, error) {
	var c Contents
	for _, read := range []func() error{
		func() error { return values(&c.Sites)(Sites().List(ctx, n, "")) },
		func() error { return values(&c.Racks)(Racks().List(ctx, n, "")) },
		func() error { return values(&c.Switches)(Switches().List(ctx, n, "")) },
		func() error { return values(&c.Hosts)(Hosts().List(ctx, n, "")) },
		func() error { return values(&c.Adapters)(Adapters().List(ctx, n, "")) },
		func() error { return values(&c.Trunks)(Trunks().List(ctx, n, "")) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// values returns a function that takes the values of records into to.
func values[T any](to *[]T) func([]store.Record[T], int64, error) error {
	return func(recs []store.Record[T], _ int64, err error) error {
		*to = make([]T, len(recs))
		for i := range recs {
			(*to)[i] = recs[i].Value
		}
		return err
	}
}
