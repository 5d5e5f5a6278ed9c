package proof

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// Reading is how a value was obtained from a device.
type Reading uint8

// Readings.
const (
	NotRead      Reading = iota // the device did not answer, or was not asked
	Inconsistent                // two answers differ, or an answer contradicts itself
	WasRead
)

// Read is a value of a device, valid only if it was read.
type Read[T any] struct {
	How   Reading
	Value T
}

// Known returns a value that was read.
func Known[T any](v T) Read[T] { return Read[T]{WasRead, v} }

func (r Read[T]) known() bool { return r.How == WasRead }

// Kind is the kind of the owner of a port.
type Kind uint8

// Kinds of owners.
const (
	Undeclared     Kind = iota // nothing declares what is at the port
	Spare                      // declared to be unused
	Tenant                     // a host of a tenant
	Shared                     // a service that several tenants use, such as storage
	Infrastructure             // the Subnet Manager, a switch, a router
)

// Owner is the owner of a port. Name identifies a tenant, and is ignored for undeclared and spare ports.
type Owner struct {
	Kind Kind
	Name string
}

// hostile reports whether the statement covers the owner: it is the adversary, or may be.
func (o Owner) hostile() bool { return o.Kind <= Tenant }

// canonical returns the owner without the parts that do not count.
func (o Owner) canonical() Owner {
	if o.Kind < Tenant {
		o.Name = ""
	}
	return o
}

// InboundRule is how a switch compares the P_Key of an incoming packet with an entry of its port.
type InboundRule uint8

// Rules. The base is compared in each of them.
const (
	InboundUnknown    InboundRule = iota // may be either
	InboundMembership                    // a limited entry does not let a packet pass that claims full membership
	InboundBaseOnly                      // membership is ignored
)

// Fabric is everything that was read.
type Fabric struct {
	Devices []Device
}

// Device is a switch, adapter or router.
type Device struct {
	Name  string // shown in counter-examples
	GUID  ib.GUID
	Type  ib.NodeType
	Ports []Port // by number; port 0 is the management port of a switch, and unused in other devices

	// Of switches. A switch that Owner does not declare to be infrastructure counts as undeclared: whatever it was read to
	// hold, it passes every packet, and so does what is behind it.
	Owner   Owner
	Inbound InboundRule
	// LFT is the egress port by LID, up to LinearFDBTop. Numbers of ports that do not exist drop a packet.
	LFT Read[[]ib.PortNum]
	// MFT is the egress ports by multicast LID, up to MulticastFDBTop.
	MFT Read[map[ib.LID]Ports]
	// MulticastDefaults are the egress ports of packets whose multicast LID has no entry.
	MulticastDefaults Read[Defaults]
}

// Defaults are DefaultMulticastPrimaryPort, for packets that came in by another port, and
// DefaultMulticastNotPrimaryPort, for packets that came in by that port. ib.NoPort drops them.
type Defaults struct{ Primary, NotPrimary ib.PortNum }

// Port is a port of a device.
type Port struct {
	Owner Owner // of an adapter's or router's port; of a switch port only Spare counts
	Cable Place // the port at the other end; the zero Place is no cable, or an unknown end
	State Read[ib.PortState]
	PKeys Read[[]ib.PKey]
	Check Read[Checks] // of external ports of switches

	Aliases []Alias // of an adapter's port
}

// Checks are the checks of an external switch port, as its PortInfo has them.
type Checks struct {
	Inbound, Outbound       bool // PartitionEnforcementInbound, PartitionEnforcementOutbound
	RawInbound, RawOutbound bool // FilterRawInbound, FilterRawOutbound
}

// Alias is an additional GUID of a port, and the owner that the GUID was issued to.
type Alias struct {
	GUID  ib.GUID
	Owner Owner
}

// Place is a port: the index of its device, and its number.
type Place struct {
	Device int
	Port   ib.PortNum
}

// Ports is a set of ports by number.
type Ports [4]uint64

// PortSet returns the set of the given ports.
func PortSet(nums ...ib.PortNum) (s Ports) {
	for _, n := range nums {
		s = s.with(n)
	}
	return s
}

func (s Ports) with(n ib.PortNum) Ports {
	s[n/64] |= 1 << (n % 64)
	return s
}

func (s *Ports) meets(o *Ports) bool {
	return s[0]&o[0]|s[1]&o[1]|s[2]&o[2]|s[3]&o[3] != 0
}

// Has reports whether a port is in the set.
func (s *Ports) Has(n ib.PortNum) bool { return s[n/64]&(1<<(n%64)) != 0 }

func (f *Fabric) port(p Place) *Port { return &f.Devices[p.Device].Ports[p.Port] }

func (f *Fabric) name(p Place) string {
	return fmt.Sprintf("%s port %d", f.Devices[p.Device].Name, p.Port)
}

// far returns the port at the other end of a cable on which both ends agree.
func (f *Fabric) far(p Place) (Place, bool) {
	to := f.port(p).Cable
	if to.Port == 0 || to == p || to.Device < 0 || to.Device >= len(f.Devices) || int(to.Port) >= len(f.Devices[to.Device].Ports) {
		return Place{}, false
	}
	return to, f.port(to).Cable == p
}

// trusted reports whether the tables of a device decide about packets that it forwards.
func (d *Device) trusted() bool { return d.Type == ib.NodeSwitch && d.Owner.Kind == Infrastructure }

// validate rejects a fabric that no reader of devices creates.
func (f *Fabric) validate() error {
	for i := range f.Devices {
		d := &f.Devices[i]
		if len(d.Ports) > int(ib.NoPort) {
			return fmt.Errorf("device %d (%s) has %d ports, more than 254: read it again", i, d.Name, len(d.Ports)-1)
		}
		for num := range d.Ports {
			if o := d.Ports[num].Owner; o.Kind > Infrastructure || o.Kind == Tenant && o.Name == "" {
				return fmt.Errorf("port %d of device %d (%s) has owner %q: a tenant needs a name", num, i, d.Name, o)
			}
		}
	}
	return nil
}
