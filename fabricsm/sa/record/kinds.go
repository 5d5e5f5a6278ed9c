package record

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// known reports whether this package has the records of an attribute. RandomForwardingTables are not included: no supported
// switch has any.
func known(a mad.AttrID) bool {
	switch a {
	case mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSLtoVLRecord, mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingRecord,
		mad.AttrMulticastForwardingRecord, mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrGUIDInfoRecord,
		mad.AttrPKeyTableRecord, mad.AttrVLArbitrationRecord:
		return true
	default:
		return false
	}
}

// outer returns the span to try for the current end port, and inner the span to try for each number of it. A pair of
// numbers stands for at most one record. For most records the first number is that of a port or block, and the second is
// always 0.
func (c *Cursor) outer() span {
	switch c.query.Attr {
	case mad.AttrPortInfoRecord:
		return c.asked(c.ports(), mad.PortInfoComponentPortNum, int(c.query.Data[portInfoPortNum]))
	case mad.AttrSLtoVLRecord:
		return c.slToVLOutputs()
	case mad.AttrSwitchInfoRecord:
		if !c.isSwitch() {
			return span{}
		}
	case mad.AttrLinearForwardingRecord:
		return c.linearBlocks()
	case mad.AttrMulticastForwardingRecord:
		return c.multicastBlocks()
	case mad.AttrLinkRecord:
		return c.links()
	case mad.AttrGUIDInfoRecord:
		return c.guidBlocks()
	case mad.AttrPKeyTableRecord:
		return c.asked(c.ports(), mad.PKeyTableComponentPortNum, int(c.query.Data[4]))
	case mad.AttrVLArbitrationRecord:
		if !c.isSwitch() {
			return c.ports()
		}
		return c.asked(c.ports(), mad.VLArbitrationComponentOutputPortNum, int(c.query.Data[2]))
	}
	return span{0, 1}
}

func (c *Cursor) inner(i int) span {
	switch c.query.Attr {
	case mad.AttrSLtoVLRecord:
		return c.slToVLInputs(i)
	case mad.AttrMulticastForwardingRecord:
		return c.multicastPositions()
	case mad.AttrPKeyTableRecord:
		blocks := span{0, c.book.View.PKeyBlocks(c.port(i))}
		return c.asked(blocks, mad.PKeyTableComponentBlockNum, int(binary.BigEndian.Uint16(c.query.Data[2:])))
	case mad.AttrVLArbitrationRecord:
		halves := span{int(mad.VLArbLow0), int(mad.VLArbHigh32) + 1}
		return c.asked(halves, mad.VLArbitrationComponentBlockNum, int(c.query.Data[3]))
	}
	return span{0, 1}
}

// make writes the record of a pair of numbers to dst, which is zero. It returns false if there is none, or none for the
// requester.
func (c *Cursor) make(dst []byte, i, j int) bool {
	switch c.query.Attr {
	case mad.AttrNodeRecord:
		return c.makeNode(dst)
	case mad.AttrPortInfoRecord:
		return c.makePortInfo(dst, i)
	case mad.AttrSLtoVLRecord:
		return c.makeSLtoVL(dst, i, j)
	case mad.AttrSwitchInfoRecord:
		return c.makeSwitchInfo(dst)
	case mad.AttrLinearForwardingRecord:
		return c.makeLinear(dst, i)
	case mad.AttrMulticastForwardingRecord:
		return c.makeMulticast(dst, i, j)
	case mad.AttrSMInfoRecord:
		return c.makeSMInfo(dst, i)
	case mad.AttrLinkRecord:
		return c.makeLink(dst, i)
	case mad.AttrGUIDInfoRecord:
		return c.makeGUIDInfo(dst, i)
	case mad.AttrPKeyTableRecord:
		return c.makePKeys(dst, i, j)
	case mad.AttrVLArbitrationRecord:
		return c.makeVLArb(dst, i, j)
	default:
		return false
	}
}

func put16(dst []byte, v uint16) { binary.BigEndian.PutUint16(dst, v) }

func (c *Cursor) isSwitch() bool { return c.node.Type == ib.NodeSwitch }

// asked restricts a span to the number that a query has for a component.
func (c *Cursor) asked(s span, component mad.ComponentMask, value int) span {
	if c.query.Mask.Has(component) {
		return s.only(value)
	}
	return s
}

// ports returns the numbers of the ports that the current end port stands for: all of a switch, or itself.
func (c *Cursor) ports() span {
	if c.isSwitch() {
		return span{0, int(c.node.NumPorts) + 1}
	}
	n := int(c.end.Port - c.node.FirstPort)
	return span{n, n + 1}
}

// port returns a port of the current node.
func (c *Cursor) port(num int) topo.PortID { return c.node.FirstPort + topo.PortID(num) }

const nodePortGUID = 24

func (c *Cursor) makeNode(dst []byte) bool {
	n := c.node
	put16(dst, uint16(c.end.LID))
	ni := mad.NodeInfo{
		BaseVersion: n.BaseVersion, ClassVersion: n.ClassVersion, NodeType: n.Type, NumPorts: n.NumPorts,
		SystemImageGUID: n.SystemImageGUID, NodeGUID: n.GUID, PortGUID: c.end.GUID, PartitionCap: n.PartitionCap,
		DeviceID: n.DeviceID, Revision: n.Revision, LocalPortNum: ib.PortNum(c.end.Port - n.FirstPort), VendorID: n.VendorID,
	}
	if mad.Encode(dst[4:], &ni) != nil {
		return false
	}
	copy(dst[44:108], n.Description)
	return true
}

const (
	portInfoPortNum = 2
	portInfoOptions = 3
	portInfoAt      = 4

	// Bytes of PortInfo.
	piSpeedSupported = 32 // upper half
	piSpeeds         = 35 // LinkSpeedActive, then LinkSpeedEnabled
	piSpeedExt       = 62 // LinkSpeedExtActive in the upper half
)

func (c *Cursor) makePortInfo(dst []byte, num int) bool {
	info := c.book.View.PortInfo(c.port(num))
	if info == nil {
		return false
	}
	put16(dst, uint16(c.end.LID))
	dst[portInfoPortNum] = byte(num)
	copy(dst[portInfoAt:], info[:])
	return true
}

// finish adapts a matching record for the requester.
func (c *Cursor) finish(dst []byte) {
	switch c.query.Attr {
	case mad.AttrPortInfoRecord:
		c.finishPortInfo(dst)
	case mad.AttrPKeyTableRecord:
		// The one field that clients read with the lower byte first: saquery does as
		// OpenSM writes it. In questions it is as the standard has it.
		dst[2], dst[3] = dst[3], dst[2]
	}
}

// finishPortInfo adds QDR to the record of a port at extended speed, unless the requester knows extended speeds. Otherwise
// an old client would take the link for a slow one.
func (c *Cursor) finishPortInfo(dst []byte) {
	q := &c.query
	if q.Mask.Has(mad.PortInfoComponentOptions) && q.Data[portInfoOptions]&mad.PortInfoRecordFull != 0 {
		dst[portInfoOptions] = mad.PortInfoRecordFull
		return
	}
	if pi := dst[portInfoAt:]; pi[piSpeedExt]>>4 != 0 {
		const qdr = byte(ib.SpeedQDR)
		pi[piSpeedSupported] |= qdr << 4
		pi[piSpeeds] |= qdr<<4 | qdr
	}
}

func (c *Cursor) slToVLOutputs() span {
	if !c.isSwitch() {
		return span{0, 1}
	}
	return c.asked(c.ports(), mad.SLtoVLComponentOutputPortNum, int(c.query.Data[3]))
}

// slToVLInputs returns the input ports, or none while the tables of an output port are being written: they become known all
// at once. Tables that the manager leaves alone have records of zeros. The device was not asked, and clients expect one
// record for each port.
func (c *Cursor) slToVLInputs(out int) span {
	s := span{0, 1}
	p := c.end.Port
	if c.isSwitch() {
		s, p = c.ports(), c.port(out)
	}
	if _, known := c.book.View.SLtoVL(p, 0); !known && !c.book.View.LeavesSLtoVL(p) {
		return span{}
	}
	if !c.isSwitch() {
		return s
	}
	return c.asked(s, mad.SLtoVLComponentInputPortNum, int(c.query.Data[2]))
}

func (c *Cursor) makeSLtoVL(dst []byte, out, in int) bool {
	p := c.end.Port
	if c.isSwitch() {
		p = c.port(out)
	}
	vl, known := c.book.View.SLtoVL(p, ib.PortNum(in))
	if !known && !c.book.View.LeavesSLtoVL(p) {
		return false
	}
	put16(dst, uint16(c.end.LID))
	dst[2], dst[3] = byte(in), byte(out)
	return mad.Encode(dst[8:], &mad.SLtoVLMappingTable{VL: vl}) == nil
}

func (c *Cursor) makeSwitchInfo(dst []byte) bool {
	info := c.book.View.SwitchInfo(c.end.Node)
	if info == nil {
		return false
	}
	put16(dst, uint16(c.end.LID))
	copy(dst[4:], info[:])
	return true
}

func (c *Cursor) linearBlocks() span {
	blocks := span{}
	if t := c.book.View.Tables; c.isSwitch() && t != nil {
		blocks.end = min(int(t.MaxLID)/mad.LIDsPerBlock+1, len(t.LFT(c.end.Node))/mad.LIDsPerBlock)
	}
	return c.asked(blocks, mad.ForwardingComponentBlockNum, int(binary.BigEndian.Uint16(c.query.Data[2:])))
}

func (c *Cursor) makeLinear(dst []byte, block int) bool {
	put16(dst, uint16(c.end.LID))
	put16(dst[2:], uint16(block))
	for i, p := range c.book.View.Tables.LFT(c.end.Node)[block*mad.LIDsPerBlock:][:mad.LIDsPerBlock] {
		dst[8+i] = byte(p)
	}
	return true
}

const (
	mftPosition = 12 // bits to the left of it
	mftBlocks   = 1<<9 - 1
)

func (c *Cursor) mftRID() int { return int(binary.BigEndian.Uint16(c.query.Data[2:])) }

// multicastBlocks are those up to the highest multicast LID that is in use, as far as
// the switch has room.
func (c *Cursor) multicastBlocks() span {
	blocks := span{}
	if m := c.book.View.Multicast; c.isSwitch() && m != nil && len(m.Trees) > 0 {
		used := int(m.Trees[len(m.Trees)-1].MLID - ib.MinMulticastLID)
		blocks.end = min(used/mad.MLIDsPerBlock+1, (int(c.node.MulticastFDBCap)+mad.MLIDsPerBlock-1)/mad.MLIDsPerBlock)
	}
	return c.asked(blocks, mad.MulticastForwardingComponentBlockNum, c.mftRID()&mftBlocks)
}

func (c *Cursor) multicastPositions() span {
	positions := span{0, int(c.node.NumPorts)/16 + 1}
	return c.asked(positions, mad.MulticastForwardingComponentPosition, c.mftRID()>>mftPosition)
}

func (c *Cursor) makeMulticast(dst []byte, block, position int) bool {
	put16(dst, uint16(c.end.LID))
	put16(dst[2:], uint16(position<<mftPosition|block))
	for i := range mad.MLIDsPerBlock {
		mlid := ib.MinMulticastLID + ib.LID(block*mad.MLIDsPerBlock+i)
		if ports := c.book.View.Multicast.PortsOf(c.end.Node, mlid); ports != nil {
			put16(dst[8+2*i:], ports.Position(position))
		}
	}
	return true
}

// makeSMInfo shows ours first, then the others by rank. An SM whose port has no LID
// cannot be named.
func (c *Cursor) makeSMInfo(dst []byte, i int) bool {
	v := c.book.View
	si := mad.SMInfo{GUID: v.GUID, ActCount: v.ActCount, Priority: v.Priority, SMState: v.State}
	if i > 0 {
		o := &v.Others[i-1]
		si = mad.SMInfo{GUID: o.GUID, ActCount: o.ActCount, Priority: o.Priority, SMState: o.State}
	}
	e := c.book.ByGUID(si.GUID)
	if !c.sees(e) || c.one != nil && c.one != e {
		return false
	}
	put16(dst, uint16(e.LID))
	return mad.Encode(dst[4:], &si) == nil
}

const linkToLID = 4

func (c *Cursor) links() span {
	ports := c.ports()
	if c.isSwitch() {
		ports.at = 1
	}
	if c.back {
		return c.asked(ports, mad.LinkComponentToPort, int(c.query.Data[3]))
	}
	return c.asked(ports, mad.LinkComponentFromPort, int(c.query.Data[2]))
}

// makeLink shows a link at both of whose ends is a port with a LID.
func (c *Cursor) makeLink(dst []byte, num int) bool {
	f := c.book.View.Fabric
	far := f.LinkUp(c.port(num))
	if far == topo.None {
		return false
	}
	farNode := f.NodeOf(far)
	farNum := int(far - farNode.FirstPort)
	e := c.farEnd(far, farNode)
	if !c.sees(e) {
		return false
	}
	from, fromNum, to, toNum := c.end, num, e, farNum
	if c.back {
		from, fromNum, to, toNum = to, toNum, from, fromNum
	}
	if c.far != nil && c.far != to {
		return false
	}
	put16(dst, uint16(from.LID))
	dst[2], dst[3] = byte(fromNum), byte(toNum)
	put16(dst[linkToLID:], uint16(to.LID))
	return true
}

// farEnd returns the end port that has the LID of a port, or nil if there is none.
func (c *Cursor) farEnd(p topo.PortID, n *topo.Node) *portindex.EndPort {
	if n.Type == ib.NodeSwitch {
		p = n.FirstPort
	}
	return c.book.EndPort(p)
}

// guidBlocks are as many as the port has room for GUIDs.
func (c *Cursor) guidBlocks() span {
	const guidCap = 50
	blocks := span{}
	if info := c.book.View.PortInfo(c.end.Port); info != nil {
		blocks.end = max(1, (int(info[guidCap])+mad.GUIDsPerBlock-1)/mad.GUIDsPerBlock)
	}
	return c.asked(blocks, mad.GUIDInfoComponentBlockNum, int(c.query.Data[2]))
}

func (c *Cursor) makeGUIDInfo(dst []byte, block int) bool {
	put16(dst, uint16(c.end.LID))
	dst[2] = byte(block)
	aliases := c.book.View.Aliases(c.end.Port)
	for i := range mad.GUIDsPerBlock {
		g, at := ib.GUID(0), block*mad.GUIDsPerBlock+i
		switch {
		case at == 0:
			g = c.end.GUID
		case at <= len(aliases):
			g = aliases[at-1]
		}
		binary.BigEndian.PutUint64(dst[8+8*i:], uint64(g))
	}
	return true
}

func (c *Cursor) makePKeys(dst []byte, num, block int) bool {
	keys := c.book.View.PKeyBlock(c.port(num), block)
	if keys == nil {
		return false
	}
	put16(dst, uint16(c.end.LID))
	put16(dst[2:], uint16(block))
	dst[4] = byte(num)
	for i, k := range keys {
		put16(dst[8+2*i:], uint16(k))
	}
	return true
}

func (c *Cursor) makeVLArb(dst []byte, num, half int) bool {
	t, known := c.book.View.VLArbitration(c.port(num), mad.VLArbHalf(half))
	if !known && !c.book.View.LeavesVLArbitration(c.port(num), mad.VLArbHalf(half)) {
		return false
	}
	put16(dst, uint16(c.end.LID))
	dst[2], dst[3] = byte(num), byte(half)
	return mad.Encode(dst[8:], &t) == nil
}
