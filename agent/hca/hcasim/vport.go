package hcasim

import (
	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// Port states that a port without a fabric shows.
const (
	portDown    = 1
	physPolling = 2
)

// live is how the port is doing that a command asks for.
func (c *Card) live(r register.RPC) Live {
	q, err := register.DecodeVportQuery(r.In)
	if n := int(q.Vport.Port); err == nil && c.o.Live != nil && n >= 1 && n <= len(c.o.Ports) {
		return c.o.Live(n)
	}
	return Live{State: portDown, Physical: physPolling, PKeys: []ib.PKey{ib.DefaultPKeyFull}}
}

// vport answers a query of the asker's own ports.
func (c *Card) vport(q register.VportQuery, live Live, room int) ([]byte, register.Status) {
	n := int(q.Vport.Port)
	if q.Vport.Other || n < 1 || n > len(c.o.Ports) {
		return nil, register.BadParameter
	}
	if q.Opcode == register.QueryHCAVportPKey {
		return pkeys(live.PKeys, q.Index, room)
	}
	out, err := register.Encode(register.VportContext{
		HasSMI: !c.smDisabled() || c.o.Traits.KeepsSMI, HasRaw: true,
		PhysicalState: live.Physical, PortState: live.State,
		SystemImageGUID: c.o.Identity.SystemGUID, PortGUID: c.portGUID(n), NodeGUID: c.o.Identity.NodeGUID,
		CapabilityMask: live.CapabilityMask, LID: live.LID, SMLID: live.SMLID,
	})
	if err != nil {
		return nil, register.InternalError
	}
	if room < len(out) {
		return nil, register.BadOutputLength
	}
	return out, register.OK
}

// pkeys returns one entry, or all that there is room for.
func pkeys(table []ib.PKey, index uint16, room int) ([]byte, register.Status) {
	switch {
	case index != register.WholeTable && int(index) >= len(table):
		return nil, register.BadIndex
	case index != register.WholeTable:
		table = table[index : index+1]
	}
	if room < register.PKeyRoom(len(table)) {
		return nil, register.BadOutputLength
	}
	return register.EncodePKeys(table), register.OK
}

// Item nv_virt_guid_addr assigns a function another GUID.
const (
	virtualGUIDIndex  = 273
	virtualGUIDOn     = 0x80
	virtualGUIDLength = 12
)

// portGUID is the port's own GUID, or the alternate one that the host set.
func (c *Card) portGUID(port int) ib.GUID {
	if alternate := c.store.alternate(port - 1); alternate != 0 {
		return alternate
	}
	return c.o.Ports[port-1].GUID
}
