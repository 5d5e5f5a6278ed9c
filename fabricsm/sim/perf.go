package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/perf"
)

// Of the performance management class.
const (
	allPorts = 255 // PortSelect

	// Capabilities in its ClassPortInfo: PortSelect 255, and 64-bit counters.
	perfCapabilities = mad.PerfAllPortSelect | mad.PerfExtendedWidth

	perfDataOffset = 64 // of the attribute in the MAD
)

// perfAgent answers the performance management class.
func (p *port) perfAgent(m *mad.MAD) mad.Status {
	data, set := m[perfDataOffset:], m.Method() == mad.MethodSet
	switch m.Attr() {
	case mad.AttrClassPortInfo:
		if set {
			return mad.StatusUnsupportedMethodAttr
		}
		clear(data)
		must(mad.Encode(data, &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, CapabilityMask: perfCapabilities, RespTimeValue: 8}))
		return mad.StatusOK
	case mad.PerfAttrPortCounters, mad.PerfAttrPortCountersExtended:
		ports := p.counted(data[1])
		if ports == nil {
			return mad.StatusInvalidField
		}
		if m.Attr() == mad.PerfAttrPortCounters {
			return answerCounters(ports, data, set)
		}
		return answerExtended(ports, data, set)
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// counted is the ports that a PortSelect names.
func (p *port) counted(selected uint8) []*port {
	if selected == allPorts {
		return p.node.ports[1:]
	}
	if at := p.selected(uint32(selected)); at != nil {
		return []*port{at}
	}
	return nil
}

// answerCounters clears the selected counters in a Set, and answers with the
// sum over the ports.
func answerCounters(ports []*port, data []byte, set bool) mad.Status {
	var asked, sum mad.PortCounters
	must(mad.Decode(data, &asked))
	for _, p := range ports {
		if set {
			p.counters.Reset(asked.CounterSelect)
		}
		one := p.counters.Short()
		perf.Add(&sum, &one)
	}
	sum.PortSelect, sum.CounterSelect = asked.PortSelect, asked.CounterSelect
	clear(data)
	must(mad.Encode(data, &sum))
	return mad.StatusOK
}

// answerExtended is answerCounters for the 64-bit counters.
func answerExtended(ports []*port, data []byte, set bool) mad.Status {
	var asked, sum mad.PortCountersExtended
	must(mad.Decode(data, &asked))
	for _, p := range ports {
		if set {
			p.counters.ResetExtended(asked.CounterSelect)
		}
		one := p.counters.Long()
		perf.AddExtended(&sum, &one)
	}
	sum.PortSelect, sum.CounterSelect = asked.PortSelect, asked.CounterSelect
	clear(data)
	must(mad.Encode(data, &sum))
	return mad.StatusOK
}

// PacketsSent returns the number of packets that a port counted as sent since its counters were reset; for port 0 of a
// switch the sum over its ports.
func (f *Fabric) PacketsSent(node string, num ib.PortNum) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return 0
	}
	ports := []*port{p}
	if p.node.sw != nil && num == 0 {
		ports = p.node.ports[1:]
	}
	var sum mad.PortCountersExtended
	for _, p := range ports {
		one := p.counters.Long()
		perf.AddExtended(&sum, &one)
	}
	return sum.PortXmitPkts
}
