package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// PortInfo shows a port as it is, for tests and tools that judge what a subnet
// manager did. An unknown port gives the zero PortInfo.
func (f *Fabric) PortInfo(node string, num ib.PortNum) mad.PortInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return mad.PortInfo{}
	}
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
