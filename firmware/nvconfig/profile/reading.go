package profile

import (
	"fmt"

	"portcullis/firmware/nvconfig"
)

// Support says whether an adapter knows an item.
type Support uint8

// Support. The zero Support means that it could not be found out.
const (
	SupportUnknown Support = iota
	Supported
	NotSupported
)

// State is the result of reading a value.
type State uint8

// States. The zero State means that the value was not read.
const (
	NotRead State = iota
	Read          // Item is what the adapter answered
	Absent        // the adapter holds no such item
	Failed        // Problem says why
)

// Answer is what an adapter said of one value of an item.
type Answer struct {
	State   State
	Item    nvconfig.Item
	Problem string
}

// Reading is what an adapter said of one item.
type Reading struct {
	Address nvconfig.Address
	Support Support
	Default Answer // of the factory
	Current Answer
	Next    Answer // after the next reset of the firmware
}

// Card is an adapter.
type Card struct {
	PSID string
	// Ports and Functions are how many of each there are, and are asked for; 0
	// counts as 1.
	Ports, Functions int
	// Device, unless it is all zeros, is named in files instead of the PSID.
	Device [nvconfig.DeviceIDSize]byte
	// Readings are in any order, one for each address. Nil: the card could not be read.
	Readings []Reading
}

func (c Card) reading(a nvconfig.Address) (Reading, bool) {
	for _, r := range c.Readings {
		if r.Address == a {
			return r, true
		}
	}
	return Reading{Address: a}, false
}

// addresses returns the addresses at which an adapter has an item: at each port, and each function of the first host.
func (c Card) addresses(l *nvconfig.Layout) []nvconfig.Address {
	var out []nvconfig.Address
	switch l.Class {
	case nvconfig.Port:
		for port := range max(c.Ports, 1) {
			out = append(out, nvconfig.PortItem(uint8(port+1), uint16(l.Index)))
		}
	case nvconfig.HostFunction:
		for function := range max(c.Functions, 1) {
			out = append(out, nvconfig.FunctionItem(0, uint8(function), uint16(l.Index)))
		}
	case nvconfig.Host:
		out = append(out, nvconfig.HostItem(0, l.Index))
	default:
		out = append(out, nvconfig.GlobalItem(l.Index))
	}
	return out
}

// Addresses returns the items that must be read from an adapter to judge it, each once, in the order of the rules.
func (p *Profile) Addresses(c Card) []nvconfig.Address {
	var out []nvconfig.Address
	seen := make(map[nvconfig.Address]bool)
	for _, r := range p.Rules {
		for _, a := range c.addresses(r.parameter().Item) {
			if !seen[a] {
				seen[a] = true
				out = append(out, a)
			}
		}
	}
	return out
}

// check compares an answer with the request: an adapter, or an attacker in front of it, may answer anything.
func (a Answer) check(asked nvconfig.Address, access nvconfig.Access, l *nvconfig.Layout) error {
	switch {
	case a.Item.Address != asked:
		return fmt.Errorf("asked for %v, it answered %v", asked, a.Item.Address)
	case a.Item.Access != access:
		return fmt.Errorf("asked for the %v value, it answered the %v one", access, a.Item.Access)
	case len(a.Item.Data) != l.Size:
		return fmt.Errorf("it answered %d bytes, want %d", len(a.Item.Data), l.Size)
	}
	return nil
}
