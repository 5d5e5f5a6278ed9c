package sim

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// answers reports whether the agents of a node answer a request themselves.
// SMInfo and traps are for a subnet manager, other classes for programs.
func (n *node) answers(m *mad.MAD) bool {
	switch m.Class() {
	case mad.ClassSubn, mad.ClassSubnDR:
		return (m.Method() == mad.MethodGet || m.Method() == mad.MethodSet) && m.Attr() != mad.AttrSMInfo
	case mad.ClassPerf:
		return m.Method() == mad.MethodGet || m.Method() == mad.MethodSet
	default:
		_, support := n.model().support(m.Class())
		return support != guard.Absent && (m.Method() == mad.MethodGet || m.Method() == mad.MethodSet)
	}
}

// agent answers a request that came in through p, within the access a of the sender. It changes the node and writes the
// attribute of the answer into m.
func (p *port) agent(m *mad.MAD, a guard.Access) mad.Status {
	switch m.Class() {
	case mad.ClassSubn, mad.ClassSubnDR:
	case mad.ClassPerf:
		return p.perfAgent(m)
	default:
		return p.endPort().classAgent(m.Class()).Serve(m)
	}
	set := m.Method() == mad.MethodSet
	switch m.Attr() {
	case mad.AttrNodeInfo:
		return p.getOnly(m, p.nodeInfo[:], set)
	case mad.AttrNotice:
		return p.notice(m, set)
	case mad.AttrNodeDescription:
		return p.getOnly(m, p.node.description.NodeString[:], set)
	case mad.AttrSwitchInfo:
		return p.node.switchInfo(m, set)
	case mad.AttrPortInfo:
		return p.portInfo(m, set, a)
	case mad.AttrPKeyTable:
		return p.pkeyTable(m, set)
	case mad.AttrGUIDInfo:
		return p.guidInfo(m, set)
	case mad.AttrSLtoVLMappingTable:
		return p.slToVLTable(m, set)
	case mad.AttrVLArbitration:
		return p.vlArbitration(m, set)
	case mad.AttrLinearForwardingTable:
		return p.node.linearTable(m, set)
	case mad.AttrMulticastForwardingTable:
		return p.node.multicastTable(m, set)
	case mad.AttrGeneralInfo:
		return p.generalInfo(m, set)
	case mad.AttrMlnxExtendedPortInfo:
		return p.extendedPortInfo(m, set)
	case mad.AttrRouterInfo:
		return p.routerInfo(m, set)
	case mad.AttrAdjacentSubnetsTable:
		return p.adjacentSubnets(m, set)
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// getOnly answers with an attribute that cannot be set.
func (p *port) getOnly(m *mad.MAD, attribute []byte, set bool) mad.Status {
	if set {
		return mad.StatusUnsupportedMethodAttr
	}
	copy(m.Data(), attribute)
	return mad.StatusOK
}

// selected returns the port that an attribute modifier names: any port of a switch, and for other nodes the requested one,
// which number 0 means as well.
func (p *port) selected(num uint32) *port {
	n := p.node
	if n.sw == nil && num == 0 {
		return p
	}
	if num >= uint32(len(n.ports)) {
		return nil
	}
	return n.ports[num]
}

// exchange is a Get or Set of a block that has no rules: bytes of the node
// against bytes of the packet.
func exchange(m *mad.MAD, block []byte, set bool) mad.Status {
	data := m.Data()
	if set {
		copy(block, data)
	}
	clear(data)
	copy(data, block)
	return mad.StatusOK
}

// pkeyTable answers P_KeyTable: 32 entries to a block, the port in the upper
// half of the modifier for switches.
func (p *port) pkeyTable(m *mad.MAD, set bool) mad.Status {
	at, block := p, int(m.Mod()&0xFFFF)
	if p.node.sw != nil {
		at = p.selected(m.Mod() >> 16)
	}
	from := block * mad.DataSize
	if at == nil || from >= len(at.pkeys) {
		return mad.StatusInvalidField
	}
	if set && beyond(m.Data(), len(at.pkeys)-from) {
		return mad.StatusInvalidField
	}
	return exchange(m, at.pkeys[from:min(from+mad.DataSize, len(at.pkeys))], set)
}

// beyond reports whether a block has non-zero bytes after its first size bytes.
func beyond(block []byte, size int) bool {
	return size < len(block) && slices.ContainsFunc(block[size:], func(b byte) bool { return b != 0 })
}

// guidInfo answers GUIDInfo; entry 0 of block 0, the port GUID, is read only.
func (p *port) guidInfo(m *mad.MAD, set bool) mad.Status {
	at := p.endPort()
	if m.Mod() >= guidBlocks {
		return mad.StatusInvalidField
	}
	if set && m.Mod() == 0 {
		copy(m.Data()[:8], at.guids[:8])
	}
	return exchange(m, at.guids[m.Mod()*mad.DataSize:][:mad.DataSize], set)
}

// slToVLTable answers SLtoVLMappingTable: output port in bits 7..0, input port
// in bits 15..8 of the modifier. With wildcards, which only a Set may have, bit
// 16 stands for all output and bit 17 for all input ports.
func (p *port) slToVLTable(m *mad.MAD, set bool) mad.Status {
	if sw := p.node.sw; sw != nil && set && m.Mod()>>16 != 0 && sw.info.OptimizedSLtoVLMappingProgramming&1 != 0 {
		return p.node.slToVLTables(m)
	}
	out, in := p.selected(m.Mod()&0xFF), int(m.Mod()>>8&0xFF)
	if p.node.sw == nil {
		in = 0
	}
	if out == nil || in >= len(out.slToVL) || m.Mod()>>16 != 0 {
		return mad.StatusInvalidField
	}
	return exchange(m, out.slToVL[in][:], set)
}

// slToVLTables takes one table for many pairs of ports.
func (n *node) slToVLTables(m *mad.MAD) mad.Status {
	allOut, allIn := m.Mod()&mad.SLtoVLAllOutputs != 0, m.Mod()&mad.SLtoVLAllInputs != 0
	if m.Mod()>>18 != 0 {
		return mad.StatusInvalidField
	}
	for out, p := range n.ports {
		if !allOut && uint32(out) != m.Mod()&0xFF {
			continue
		}
		for in := range p.slToVL {
			if allIn || uint32(in) == m.Mod()>>8&0xFF {
				copy(p.slToVL[in][:], m.Data())
			}
		}
	}
	table := append([]byte(nil), m.Data()[:slToVLSize]...)
	clear(m.Data())
	copy(m.Data(), table)
	return mad.StatusOK
}

// vlArbitration answers VLArbitration: the half in the upper, the port in the
// lower 16 bits of the modifier. Each table has vlArbCap entries.
func (p *port) vlArbitration(m *mad.MAD, set bool) mad.Status {
	at, half := p.selected(m.Mod()&0xFFFF), mad.VLArbHalf(m.Mod()>>16)
	if at == nil || half != mad.VLArbLow0 && half != mad.VLArbHigh0 || m.Mod()>>24 != 0 {
		return mad.StatusInvalidField
	}
	return exchange(m, at.vlArb[half-1][:2*vlArbCap], set)
}

// SetNodeDescription changes the description of a node, as its owner can at
// any time. It raises trap 144.
func (f *Fabric) SetNodeDescription(node, description string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil {
		return err
	}
	n.description = mad.MakeNodeDescription(description)
	for _, p := range n.ports {
		if p != nil && p.isEnd() && p.info.PortState > ib.PortDown {
			p.sendLocalChangeTrap(mad.NodeDescriptionChanged)
			break
		}
	}
	f.run()
	f.settle()
	return nil
}
