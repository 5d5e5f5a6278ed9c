package mad

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"

	"portcullis/fabricsm/ib"
)

// recordPlan is how the components of a record are compared.
type recordPlan struct {
	components []Component
	size       int           // of the record without padding, in bytes
	compared   ComponentMask // by their bits
	ops        []matchOp     // by component
	selectors  []selectorOp
}

// matchOp compares one component: whole bytes, or bits inside a window of eight bytes.
type matchOp struct {
	at, end uint16 // bytes of the record
	mask    uint64 // of the window; 0: all of the bytes
	secret  bool   // in a time that does not depend on the bytes
}

// selectorOp is a byte with a selector and its value.
type selectorOp struct {
	both ComponentMask
	at   uint16
	kind selectorKind
}

type selectorKind uint8

const (
	selectMTU selectorKind = iota
	selectRate
	selectLife
)

func makePlan(a AttrID) *recordPlan {
	l := saLayout(a)
	p := &recordPlan{components: componentsOf(a), size: l.size}
	for i, c := range p.components {
		op := matchOp{at: uint16(c.Bit / 8), end: uint16((c.Bit + c.Width + 7) / 8), secret: strings.HasSuffix(c.Name, "Key") && c.Width >= 64}
		if c.Bit%8 != 0 || c.Width%8 != 0 {
			op.at = uint16(min(c.Bit/8, l.size-wordBytes))
			op.end = op.at + wordBytes
			op.mask = ^uint64(0) >> (wordBits - c.Width) << (wordBits - (c.Bit - int(op.at)*8) - c.Width)
		}
		p.ops = append(p.ops, op)
		if !c.Reserved {
			p.compared |= 1 << i
		}
	}
	p.addSelectors()
	if a == AttrPortInfoRecord {
		p.compared &^= PortInfoComponentOptions
	}
	return p
}

// addSelectors removes the pairs of selector and value from the comparison.
func (p *recordPlan) addSelectors() {
	for i, c := range p.components {
		value, ok := strings.CutSuffix(c.Name, "Selector")
		if !ok || i+1 == len(p.components) || p.components[i+1].Name != value {
			continue
		}
		op := selectorOp{both: 0b11 << i, at: uint16(c.Bit / 8)}
		switch value {
		case "Rate":
			op.kind = selectRate
		case "PacketLifeTime":
			op.kind = selectLife
		}
		p.selectors = append(p.selectors, op)
		p.compared &^= op.both
	}
}

// MatchRecord reports whether a record has, bit by bit, the components of a query that the mask selects. Both begin with a
// whole record; too short ones match nothing, and neither does a record of an attribute without components.
//
// Not compared are reserved components; bits beyond the record's components, which OpenSM ignores too; MTU, rate and packet
// lifetime, see MatchSelectors; and the Options of a PortInfoRecord, by which the requester says which options it supports.
// A LID matches only itself, although a requester may mean any LID that a port has by its LMC.
//
// Keys are compared in a time that does not depend on them, but a match reveals that a guess was right: record must have
// only values that the requester may see.
func MatchRecord(a AttrID, mask ComponentMask, query, record []byte) bool {
	p := planOf(a)
	if p == nil || len(query) < p.size || len(record) < p.size {
		return false
	}
	return p.match(mask, query, record)
}

func (p *recordPlan) match(mask ComponentMask, query, record []byte) bool {
	for rest := mask & p.compared; rest != 0; rest &= rest - 1 {
		if !p.ops[bits.TrailingZeros64(uint64(rest))].equal(query, record) {
			return false
		}
	}
	return true
}

func (o *matchOp) equal(query, record []byte) bool {
	x, y := query[o.at:o.end], record[o.at:o.end]
	switch {
	case o.mask != 0:
		return (binary.BigEndian.Uint64(x)^binary.BigEndian.Uint64(y))&o.mask == 0
	case o.secret:
		differ := byte(0)
		for i := range x {
			differ |= x[i] ^ y[i]
		}
		return differ == 0
	default:
		return bytes.Equal(x, y)
	}
}

// MatchSelectors reports whether a PathRecord or MCMemberRecord has the MTU, rate and packet lifetime that a query asks
// for, each by the meaning of its selector. A value is ignored unless the mask selects both the selector and the value.
// Other records have none and match if they are whole.
func MatchSelectors(a AttrID, mask ComponentMask, query, record []byte) bool {
	p := planOf(a)
	if p == nil || len(query) < p.size || len(record) < p.size {
		return false
	}
	for i := range p.selectors {
		o := &p.selectors[i]
		if mask.Has(o.both) && !o.takes(query[o.at], record[o.at]) {
			return false
		}
	}
	return true
}

// takes judges one byte: two bits of selector, six of value.
func (o *selectorOp) takes(asked, have byte) bool {
	const value = 0x3F
	s := Selector(asked >> 6)
	switch o.kind {
	case selectRate:
		return s.Rate(ib.Rate(asked&value), ib.Rate(have&value))
	case selectLife:
		return s.PacketLifeTime(ib.ExpTime(asked&value), ib.ExpTime(have&value))
	default:
		return s.MTU(ib.MTU(asked&value), ib.MTU(have&value))
	}
}

// PortInfoMatchBits is a bit of the attribute modifier of a request for PortInfoRecords. With it, CapabilityMask and
// CapabilityMask2 must have all bits of the request, rather than be equal. Clients that look for SMs use it.
const PortInfoMatchBits = 1 << 31

// MatchPortInfo is MatchRecord for PortInfoRecords, under an attribute modifier.
func MatchPortInfo(mod uint32, mask ComponentMask, query, record []byte) bool {
	const byBits = PortInfoComponentCapabilityMask | PortInfoComponentCapabilityMask2
	p := planOf(AttrPortInfoRecord)
	if len(query) < p.size || len(record) < p.size {
		return false
	}
	if mod&PortInfoMatchBits == 0 {
		return p.match(mask, query, record)
	}
	for rest := mask & byBits; rest != 0; rest &= rest - 1 {
		o := &p.ops[bits.TrailingZeros64(uint64(rest))]
		for i := o.at; i < o.end; i++ {
			if query[i]&^record[i] != 0 {
				return false
			}
		}
	}
	return p.match(mask&^byBits, query, record)
}
