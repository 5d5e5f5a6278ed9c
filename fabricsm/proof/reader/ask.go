package reader

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// Cause is why a value was not read.
type Cause uint8

// Causes.
const (
	Fine     Cause = iota // it was read
	Silent                // the device did not answer
	Refused               // the device answered with an error
	Nonsense              // the answer was not to the question, or contradicts itself
	Changed               // the two answers differ
	TooMany               // the fabric has more devices than the reader may read
	TooFar                // the directed route would be longer than 63 hops
	TooLarge              // a P_Key table has more than 1,024 entries
)

var causeNames = [...]string{
	"it was read", "the device did not answer", "the device answered with an error", "the device answered nonsense",
	"it changed while it was read", "there are more devices than may be read", "it is more than 63 hops away",
	"it has more than 1,024 entries",
}

// String returns the cause in words.
func (c Cause) String() string {
	if int(c) >= len(causeNames) {
		return "unknown cause"
	}
	return causeNames[c]
}

// none is the device before the own port.
const none = -1

// name identifies what is asked. NodeInfo is asked of what is behind a port of a device; everything else of the device.
type name struct {
	device int
	port   ib.PortNum
	attr   mad.AttrID
	mod    uint32
}

// ask is one attribute of one device, and what was answered.
type ask struct {
	name
	route mad.Route
	at    ib.Place // of the device that is asked
	how   proof.Reading
	cause Cause
	data  [mad.DataSize]byte // of the first answer
	taken bool               // from the earlier reading
}

// add asks for something, once.
func (r *Reader) add(q ask) {
	if _, ok := r.byName[q.name]; ok {
		return
	}
	r.byName[q.name] = len(r.asks)
	r.asks = append(r.asks, q)
}

// settle takes the result of a request: data, or a cause.
func (r *Reader) settle(i int, data []byte, why Cause) {
	q := &r.asks[i]
	switch {
	case why != Fine:
		q.how, q.cause = proof.NotRead, why
	case !r.second:
		q.how = proof.WasRead
		copy(q.data[:], data)
	case !same(q.attr, q.data[:], data):
		q.how, q.cause = proof.Inconsistent, Changed
	}
	if !r.second {
		r.follow(i)
	}
	r.advance()
}

// same reports whether two answers agree in what counts. Counters and the state of errors may differ.
func same(attr mad.AttrID, a, b []byte) bool {
	switch attr {
	case mad.AttrPortInfo:
		return portFacts(a) == portFacts(b)
	case mad.AttrSwitchInfo:
		x, y := decode[mad.SwitchInfo](a), decode[mad.SwitchInfo](b)
		x.PortStateChange, y.PortStateChange = false, false
		return x == y
	case mad.AttrSLtoVLMappingTable:
		return decode[mad.SLtoVLMappingTable](a) == decode[mad.SLtoVLMappingTable](b)
	default:
		return string(a) == string(b)
	}
}

// facts are what counts of a PortInfo.
type facts struct {
	state ib.PortState
	check proof.Checks
	guard Guard
	top   bool // MulticastFDBTop counts
}

func portFacts(data []byte) facts {
	p := decode[mad.PortInfo](data)
	return facts{
		state: p.PortState,
		check: proof.Checks{
			Inbound: p.PartitionEnforcementInbound, Outbound: p.PartitionEnforcementOutbound,
			RawInbound: p.FilterRawInbound, RawOutbound: p.FilterRawOutbound,
		},
		guard: Guard{Level: p.MKeyProtectBits, Lease: p.MKeyLeasePeriod},
		top:   p.CapabilityMask&mad.IsMulticastFDBTopSupported != 0,
	}
}

// decode decodes a whole attribute, which can't be too short.
func decode[T any](data []byte) (v T) {
	if err := mad.Decode(data, &v); err != nil {
		panic(err)
	}
	return v
}
