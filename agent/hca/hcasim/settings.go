package hcasim

import (
	"slices"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// asked reads the header of an item that a host asks for or writes.
func (c *Card) asked(data []byte) (h nvconfig.Header, length int, slots []nvconfig.Address, status register.Status) {
	h, length, err := nvconfig.ParseHeader(data)
	switch {
	case err != nil || len(data) < register.ItemHeaderSize+length:
		return h, 0, nil, register.BadInputLength
	case length > register.MaxItemData:
		return h, 0, nil, register.BadParameter
	}
	slots = slices.DeleteFunc(c.store.find(h.Address), func(a nvconfig.Address) bool { return c.store.slots[a].hidden })
	if len(slots) == 0 {
		return h, 0, nil, register.BadParameter
	}
	return h, length, slots, register.OK
}

func (c *Card) readMNVDA(data []byte) ([]byte, register.Status) {
	h, length, slots, status := c.asked(data)
	switch {
	case status != register.OK:
		return nil, status
	case h.Access == nvconfig.Current && c.o.Traits.NoCurrent, h.Access == nvconfig.Default && c.o.Traits.NoFactory:
		return nil, register.BadSystemState
	case h.Access > nvconfig.Default:
		return nil, register.BadParameter
	}
	i := c.store.slots[slots[0]].item(slots[0], h.Access)
	if length < len(i.Data) { // tools ask for more than there is; the answer has its own length
		return nil, register.BadParameter
	}
	i.Address = h.Address
	return i.Append(nil), register.OK
}

// writeMNVDA stores an item of priority USER, whatever the header asks for.
func (c *Card) writeMNVDA(data []byte) ([]byte, register.Status) {
	h, length, slots, status := c.asked(data)
	switch {
	case status != register.OK:
		return nil, status
	case h.Access != nvconfig.Next || length != len(c.store.slots[slots[0]].factory) || !c.hostMayWrite(slots):
		return nil, register.BadParameter
	}
	i := nvconfig.Item{
		Header: nvconfig.Header{
			Priority: nvconfig.User, OverrideEnabled: h.OverrideEnabled, ReadEnabled: h.ReadEnabled,
			Writer: writer(h.Writer), Version: h.Version,
		},
		Data: data[register.ItemHeaderSize:][:length],
	}
	for _, a := range slots {
		c.store.put(a, i)
	}
	i.Address = h.Address
	return i.Append(nil), register.OK
}

// writer is the writer that the firmware records: one that a tool may request, or "through ICMD".
func writer(asked nvconfig.Writer) nvconfig.Writer {
	const first, last, icmd = 6, 0xB, 5
	if asked < first || asked > last {
		return icmd
	}
	return asked
}

// hostMayWrite reports that nothing keeps the host from writing any of these.
func (c *Card) hostMayWrite(slots []nvconfig.Address) bool {
	if c.lock.state == register.LockedHostCfg {
		return false
	}
	for _, a := range slots {
		if c.store.slots[a].burned {
			return false
		}
		if !c.store.slots[a].lets(nvconfig.User) && !c.o.Traits.IgnoresPriority || c.denied(privilegeOf(a)) {
			return false
		}
	}
	return true
}

func (c *Card) writeMNVDI(data []byte) ([]byte, register.Status) {
	_, _, slots, status := c.asked(data)
	switch {
	case status != register.OK:
		return nil, status
	case !c.hostMayWrite(slots):
		return nil, register.BadParameter
	}
	for _, a := range slots {
		c.store.drop(a)
	}
	return data, register.OK
}

// writeMNVIA takes back all that the host may write over.
func (c *Card) writeMNVIA(m register.MNVIA) (register.MNVIA, register.Status) {
	if m.Target != 0 || c.lock.state == register.LockedHostCfg {
		return m, register.BadParameter
	}
	for _, a := range c.store.stored() {
		if c.o.Traits.ForgetsOEM || c.hostMayWrite([]nvconfig.Address{a}) {
			c.store.drop(a)
		}
	}
	return m, register.OK
}

func (c *Card) readMNVQC(m register.MNVQC) (register.MNVQC, register.Status) {
	m = register.MNVQC{Type: m.Type, HostIDIsSent: m.HostIDIsSent}
	if slots := c.store.find(nvconfig.Address(m.Type)); len(slots) > 0 && !c.store.slots[slots[0]].hidden {
		m.CanRead, m.CanWrite = true, !c.store.slots[slots[0]].burned
	}
	return m, register.OK
}

func (c *Card) readMNVGC(register.MNVGC) (register.MNVGC, register.Status) {
	return register.MNVGC{ReadsFactory: !c.o.Traits.NoFactory, ReadsCurrent: !c.o.Traits.NoCurrent}, register.OK
}

// readMNVGN returns the stored setting at the position of the pointer.
func (c *Card) readMNVGN(m register.MNVGN) (register.MNVGN, register.Status) {
	all := c.store.stored()
	if int(m.Pointer) >= len(all) {
		if m.Pointer == 0 {
			return register.MNVGN{}, register.OK
		}
		return m, register.BadParameter
	}
	a := all[m.Pointer]
	i := c.store.slots[a].item(a, nvconfig.Next)
	next := register.MNVGN{Pointer: m.Pointer + 1}
	if int(next.Pointer) == len(all) {
		next.Pointer = 0
	}
	copy(next.Header[:], i.Header.Append(nil, len(i.Data)))
	copy(next.Data[:], i.Data)
	return next, register.OK
}
