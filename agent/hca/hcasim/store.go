package hcasim

import (
	"bytes"
	"encoding/binary"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// store keeps the settings of a card: for each address the factory's value, the value in force, and the value after the
// next boot.
type store struct {
	power *power
	slots map[nvconfig.Address]*slot
	order []nvconfig.Address // ascending
}

// slot is one setting of one port, host or function.
type slot struct {
	factory       []byte
	hidden        bool
	burned        bool
	current, next *nvconfig.Item // nil: that of the factory
}

// newStore makes room for each setting of each port and function. There is one
// host, and a function for each port.
func newStore(o Options, p *power) store {
	s := store{power: p, slots: map[nvconfig.Address]*slot{}}
	settings := append(slices.Clip(o.Settings), o.Identity.burned(len(o.Ports))...)
	if o.Traits.EnrollsKeys {
		for i, size := range []int{32, 256, 256} {
			settings = append(slices.Clip(settings), Setting{Family: nvconfig.Global, Index: keyIndex + uint32(i), Default: make([]byte, size)})
		}
	}
	for _, setting := range settings {
		for _, a := range setting.addresses(len(o.Ports)) {
			s.slots[a] = &slot{factory: setting.Default, hidden: setting.Hidden, burned: setting.Burned}
			s.order = append(s.order, a)
		}
	}
	slices.Sort(s.order)
	return s
}

// addresses are where a setting is kept on a card with so many ports.
func (s Setting) addresses(ports int) (all []nvconfig.Address) {
	switch s.Family {
	case nvconfig.Port:
		for p := range ports {
			all = append(all, nvconfig.PortItem(uint8(p+1), uint16(s.Index)))
		}
	case nvconfig.HostFunction:
		for f := range ports {
			all = append(all, nvconfig.FunctionItem(0, uint8(f), uint16(s.Index)))
		}
	case nvconfig.Host:
		all = append(all, nvconfig.HostItem(0, s.Index))
	case nvconfig.Global:
		all = append(all, nvconfig.GlobalItem(s.Index))
	default:
		panic("card: a setting of " + s.Family.String())
	}
	return all
}

// find returns the addresses that an address stands for, ascending: itself, or all ports, hosts or functions of its class.
func (s *store) find(a nvconfig.Address) (all []nvconfig.Address) {
	if a.Check() != nil {
		return nil
	}
	if _, ok := s.slots[a]; ok {
		return []nvconfig.Address{a}
	}
	for _, b := range s.order {
		if b.Class() == a.Class().Family() && a.Class() != b.Class() && b.Index() == a.Index() && covers(a, b) {
			all = append(all, b)
		}
	}
	return all
}

// covers reports that an address of a class for many means one of the family.
func covers(a, b nvconfig.Address) bool {
	switch a.Class() {
	case nvconfig.HostAllFunctions:
		return a.Host() == b.Host()
	case nvconfig.AllHostsFunction:
		return a.Function() == b.Function()
	default:
		return true
	}
}

// item returns one of the three values. A value that was never written has priority USER and may be overwritten by all.
func (s *slot) item(a nvconfig.Address, access nvconfig.Access) nvconfig.Item {
	var stored *nvconfig.Item
	switch access {
	case nvconfig.Next:
		stored = s.next
	case nvconfig.Current:
		stored = s.current
	case nvconfig.Default:
	}
	i := nvconfig.Item{Header: nvconfig.Header{OverrideEnabled: true, ReadEnabled: true}, Data: s.factory}
	if stored != nil {
		i = *stored
	}
	i.Address, i.Access = a, access
	return i
}

// lets reports that a priority may write over what is stored for the next boot.
func (s *slot) lets(p nvconfig.Priority) bool {
	return s.next == nil || s.next.OverrideEnabled || !p.Later(s.next.Priority)
}

func (s *store) boot() {
	for _, slot := range s.slots {
		slot.current = slot.next
	}
}

// stored lists what is not of the factory, for the next boot.
func (s *store) stored() (all []nvconfig.Address) {
	for _, a := range s.order {
		if slot := s.slots[a]; slot.next != nil && !slot.hidden {
			all = append(all, a)
		}
	}
	return all
}

// globalInForce returns the data in force of a setting of the whole card, or nil if the card does not know the setting.
func (s *store) globalInForce(index uint32) []byte {
	a := nvconfig.GlobalItem(index)
	slot, ok := s.slots[a]
	if !ok {
		return nil
	}
	return slot.item(a, nvconfig.Current).Data
}

// alternate returns the alternate GUID of a function that is in force, or 0 if there is none.
func (s *store) alternate(function int) ib.GUID {
	a := nvconfig.FunctionItem(0, uint8(function), virtualGUIDIndex)
	slot, ok := s.slots[a]
	if !ok {
		return 0
	}
	data := slot.item(a, nvconfig.Current).Data
	if len(data) < virtualGUIDLength || data[0]&virtualGUIDOn == 0 {
		return 0
	}
	return ib.GUID(binary.BigEndian.Uint64(data[4:]))
}

// Item shows one value of a setting, past all that keeps a host from reading it;
// false if the card does not know the setting.
func (c *Card) Item(a nvconfig.Address, access nvconfig.Access) (nvconfig.Item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.store.find(a)
	if len(all) == 0 {
		return nvconfig.Item{}, false
	}
	i := c.store.slots[all[0]].item(all[0], access)
	i.Data = bytes.Clone(i.Data)
	return i, true
}

// Put stores an item for the next boot past all checks, as a management
// controller does, or a program of the vendor: false if the card does not know
// the setting, or it has another length.
func (c *Card) Put(i nvconfig.Item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.store.find(i.Address)
	for _, a := range all {
		if len(i.Data) != len(c.store.slots[a].factory) {
			return false
		}
	}
	for _, a := range all {
		c.store.put(a, i)
	}
	return len(all) > 0
}

// Forget makes the card one that does not know a setting; it reports whether it
// did.
func (c *Card) Forget(a nvconfig.Address) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.store.find(a)
	for _, a := range all {
		delete(c.store.slots, a)
		c.store.order = slices.DeleteFunc(c.store.order, func(b nvconfig.Address) bool { return a == b })
	}
	return len(all) > 0
}

// put stores one item at one address; it survives the loss of power that may
// come next.
func (s *store) put(a nvconfig.Address, i nvconfig.Item) {
	i.Address, i.Access, i.Data = a, nvconfig.Next, bytes.Clone(i.Data)
	s.power.durable(func() { s.slots[a].next = &i })
}

// drop restores the factory's value.
func (s *store) drop(a nvconfig.Address) {
	s.power.durable(func() { s.slots[a].next = nil })
}
