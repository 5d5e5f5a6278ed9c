package sim

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// PortInfo returns the current state of a port, for tests and tools that check a subnet manager. For an unknown port it
// returns the zero PortInfo.
func (f *Fabric) PortInfo(node string, num ib.PortNum) mad.PortInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return mad.PortInfo{}
	}
	p.lapse()
	return p.info
}

// PKeys shows the P_Key table of a port without its empty entries. An unknown
// port has none.
func (f *Fabric) PKeys(node string, num ib.PortNum) (keys []ib.PKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return nil
	}
	for i := 0; i < len(p.pkeys); i += 2 {
		if k := ib.PKey(p.pkeys[i])<<8 | ib.PKey(p.pkeys[i+1]); k != 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// PKeyTable shows the P_Key table of a port, its empty entries included.
func (f *Fabric) PKeyTable(node string, num ib.PortNum) (keys []ib.PKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return nil
	}
	for i := 0; i < len(p.pkeys); i += 2 {
		keys = append(keys, ib.PKey(binary.BigEndian.Uint16(p.pkeys[i:])))
	}
	return keys
}

// PKeyAt returns one entry of the P_Key table of a port: the P_Key of a queue pair that uses this index. 0 is an empty
// entry, or none.
func (f *Fabric) PKeyAt(node string, num ib.PortNum, index int) ib.PKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil || index < 0 || 2*index+1 >= len(p.pkeys) {
		return 0
	}
	return ib.PKey(binary.BigEndian.Uint16(p.pkeys[2*index:]))
}

// ConstraintErrors shows how many packets a port refused since it was switched on,
// for their P_Key or because they were raw: as they came in from the link, and as
// they were to leave by it. Both end at 255.
func (f *Fabric) ConstraintErrors(node string, num ib.PortNum) (inbound, outbound uint8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return 0, 0
	}
	return p.counters.PortRcvConstraintErrors, p.counters.PortXmitConstraintErrors
}

// VL15Dropped shows how many SMPs a port dropped since it was switched on because its
// buffers were full. It ends at 65,535.
func (f *Fabric) VL15Dropped(node string, num ib.PortNum) uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return 0
	}
	return p.counters.VL15Dropped
}

// GUIDs shows the GUID table of an end port without its empty entries at the
// end. An unknown port has none.
func (f *Fabric) GUIDs(node string, num ib.PortNum) (guids []ib.GUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return nil
	}
	used := 0
	for i := 0; i < len(p.guids); i += 8 {
		guids = append(guids, ib.GUID(binary.BigEndian.Uint64(p.guids[i:])))
		if guids[i/8] != 0 {
			used = i/8 + 1
		}
	}
	return guids[:used]
}

// Egress shows through which port a switch sends a LID; ib.NoPort: it drops.
func (f *Fabric) Egress(node string, lid ib.LID) ib.PortNum {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil || n.sw == nil {
		return ib.NoPort
	}
	return n.sw.lookup(lid)
}

// SwitchInfo returns the current state of a switch, or the zero SwitchInfo for any other node.
func (f *Fabric) SwitchInfo(node string) mad.SwitchInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil || n.sw == nil {
		return mad.SwitchInfo{}
	}
	return n.sw.info
}

// SLtoVL shows the virtual lanes by service level of packets that come in by one
// port of a switch and leave by another; of a CA port, in is 0 and out the port.
func (f *Fabric) SLtoVL(node string, in, out ib.PortNum) (t mad.SLtoVLMappingTable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, err := f.findPort(node, out); err == nil && int(in) < len(p.slToVL) {
		must(mad.Decode(p.slToVL[in][:], &t))
	}
	return t
}

// VLArbitration shows a half of the arbitration table of a port.
func (f *Fabric) VLArbitration(node string, num ib.PortNum, half mad.VLArbHalf) (t mad.VLArbitration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, err := f.findPort(node, num); err == nil {
		must(mad.Decode(p.vlArb[half-1][:], &t))
	}
	return t
}
