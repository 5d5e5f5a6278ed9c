package mcast

import (
	"math/bits"

	"portcullis/fabricsm/ib"
)

// Ports is a set of ports of a switch, 0 to 255; bit 0 of the first word is
// switch port 0.
type Ports [4]uint64

// Add puts a port into the set.
func (p *Ports) Add(n ib.PortNum) { p[n/64] |= 1 << (n % 64) }

// Remove takes a port out of the set.
func (p *Ports) Remove(n ib.PortNum) { p[n/64] &^= 1 << (n % 64) }

// Has reports whether a port is in the set.
func (p *Ports) Has(n ib.PortNum) bool { return p[n/64]&(1<<(n%64)) != 0 }

// IsEmpty reports whether no port is in the set.
func (p *Ports) IsEmpty() bool { return *p == Ports{} }

// Count returns the number of ports in the set.
func (p *Ports) Count() (n int) {
	for _, w := range p {
		n += bits.OnesCount64(w)
	}
	return n
}

// Union adds all ports of another set.
func (p *Ports) Union(o *Ports) {
	for i := range p {
		p[i] |= o[i]
	}
}

// Each calls visit for every port of the set, lowest first.
func (p *Ports) Each(visit func(ib.PortNum)) {
	for i, w := range p {
		for ; w != 0; w &= w - 1 {
			visit(ib.PortNum(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// PortsPerPosition is the number of ports that one entry of a
// MulticastForwardingTable block covers: position p has ports 16p to 16p+15.
const PortsPerPosition = 16

// Position returns the 16 ports of a position, 0 to 15, as in the table: the lowest bit is the lowest port.
func (p *Ports) Position(position int) uint16 {
	return uint16(p[position/4] >> (16 * (position % 4)))
}

// SetPosition replaces the 16 ports of a position.
func (p *Ports) SetPosition(position int, mask uint16) {
	shift := 16 * (position % 4)
	p[position/4] = p[position/4]&^(0xFFFF<<shift) | uint64(mask)<<shift
}

// JoinState says how a port takes part in a group.
type JoinState = ib.JoinState

// Bits of JoinState.
const (
	FullMember         = ib.FullMember
	NonMember          = ib.NonMember
	SendOnlyNonMember  = ib.SendOnlyNonMember
	SendOnlyFullMember = ib.SendOnlyFullMember
)
