package reader

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// Earlier is a reading that another one builds on. Values that were read then and are not touched since are taken over: no
// device is asked for them. A value that was not read then is asked for again, but no SLtoVL table that a device
// refused: those let no packet pass.
//
// Of an adapter nothing is taken over unless the NodeInfo is that leads to it.
type Earlier struct {
	Found *Found
	// Touched reports whether a value may have changed since the first request of that reading. It must always return the same.
	Touched func(Value) bool
	// Only are all values of which Touched returns true; nil: it is not known which they are, or Owner, Spare, Alias or Inbound do not return
	// what they did for that reading, but for Moved. If all are P_Key tables that were read, nothing else is asked, and everything else is
	// taken over: values that were not read are not asked for again.
	Only []Value
	// Moved are the places of adapters for which, beside Only, Owner may return another owner than for that reading.
	Moved []ib.Place
}

// Value names a value of a device.
type Value struct {
	Node ib.GUID
	Port ib.PortNum // 0: of a switch as a whole
	// Attr is NodeInfo (of what is behind the port), PortInfo, SwitchInfo, or a table: P_KeyTable, GUIDInfo, SLtoVLMappingTable (of packets
	// that leave by the port), LinearForwardingTable or MulticastForwardingTable, which are read as a whole.
	Attr mad.AttrID
}

// devices returns the devices that were found by GUID, without those of which nothing was believed.
func (e *Earlier) devices() map[ib.GUID]int {
	if e == nil {
		return nil
	}
	return e.Found.index
}

// before returns a device as the earlier reading found it; nil: it did not, or what its GUID shows now contradicts itself.
func (r *Reader) before(d int) *proof.Device {
	i, ok := r.known[r.devices[d].info.NodeGUID]
	if !ok || r.devices[d].conflict {
		return nil
	}
	return &r.o.Earlier.Found.Fabric.Devices[i]
}

// take takes the answer to an ask of the first round from the earlier reading, if that has it.
func (r *Reader) take(i int) bool {
	q := &r.asks[i]
	if r.amends || q.device == none || !r.isKept(q.device, q.port, q.attr) {
		return false
	}
	if q.attr == mad.AttrSLtoVLMappingTable {
		return r.takeLanes(q)
	}
	data, ok := r.o.Earlier.Found.answers[Value{r.devices[q.device].info.NodeGUID, q.port, q.attr}]
	if !ok {
		return false
	}
	q.how, q.taken, q.data = proof.WasRead, true, data
	r.follow(i)
	return true
}

// isKept reports whether a value of the earlier reading still counts.
func (r *Reader) isKept(d int, num ib.PortNum, attr mad.AttrID) bool {
	if r.before(d) == nil {
		return false
	}
	dev := &r.devices[d]
	if dev.info.NodeType != ib.NodeSwitch && attr != mad.AttrNodeInfo && !r.asks[dev.ports[num].node].taken {
		return false // another device may show its GUID
	}
	return !r.o.Earlier.Touched(Value{dev.info.NodeGUID, num, attr})
}

// takeKeys takes the P_Key table of a port, if it has as many entries as before.
func (r *Reader) takeKeys(d int, num ib.PortNum, entries uint16) bool {
	if !r.isKept(d, num, mad.AttrPKeyTable) {
		return false
	}
	was := r.before(d)
	if int(num) >= len(was.Ports) || was.Ports[num].PKeys.How != proof.WasRead || len(was.Ports[num].PKeys.Value) != pkeyBlocks(entries)*mad.PKeysPerBlock {
		return false
	}
	r.devices[d].ports[num].keys = true
	return true
}

// takeAliases takes the alias GUIDs of a port.
func (r *Reader) takeAliases(d int, num ib.PortNum) bool {
	if !r.isKept(d, num, mad.AttrGUIDInfo) {
		return false
	}
	_, known := r.o.Earlier.Found.aliases[Value{r.devices[d].info.NodeGUID, num, mad.AttrGUIDInfo}]
	r.devices[d].ports[num].guids = known
	return known
}

// takeLFT takes the linear forwarding table of a switch, if it has as many entries as before.
func (r *Reader) takeLFT(d int, si *mad.SwitchInfo) bool {
	if !r.isKept(d, 0, mad.AttrLinearForwardingTable) {
		return false
	}
	was := r.before(d)
	if was.LFT.How != proof.WasRead || len(was.LFT.Value) != int(si.LinearFDBTop)+1 {
		return false
	}
	r.devices[d].lft = true
	return true
}

// takeMFT takes the multicast forwarding table of a switch, if it has as many entries as before.
func (r *Reader) takeMFT(d, entries int) bool {
	if !r.isKept(d, 0, mad.AttrMulticastForwardingTable) || r.before(d).MFT.How != proof.WasRead {
		return false
	}
	answers, v := r.o.Earlier.Found.answers, Value{Node: r.devices[d].info.NodeGUID}
	v.Attr = mad.AttrSwitchInfo
	si, isRead := answers[v]
	v.Attr = mad.AttrPortInfo
	port0, also := answers[v]
	if n, ok := mlids(si[:], port0[:]); !isRead || !also || !ok || n != entries {
		return false
	}
	r.devices[d].mft = true
	return true
}

// answers returns what was answered to asks that lead to others.
func (r *Reader) answers() map[Value][mad.DataSize]byte {
	all := map[Value][mad.DataSize]byte{}
	for i := range r.asks {
		q := &r.asks[i]
		if q.device == none || q.how != proof.WasRead || r.devices[q.device].conflict {
			continue
		}
		switch q.attr {
		case mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrSwitchInfo:
			all[Value{r.devices[q.device].info.NodeGUID, q.port, q.attr}] = q.data
		}
	}
	return all
}
