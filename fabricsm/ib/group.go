package ib

// JoinState says how a port takes part in a multicast group
// (MCMemberRecord.JoinState; IBTA volume 1, 15.2.5.17): a set of bits.
type JoinState uint8

// Bits of JoinState.
const (
	FullMember JoinState = 1 << iota // sends and receives
	NonMember                        // sends and receives, keeps no group alive
	SendOnlyNonMember
	SendOnlyFullMember
)

// Receives reports whether packets of the group are delivered to the port.
func (s JoinState) Receives() bool { return s&(FullMember|NonMember) != 0 }

// Sends reports whether packets of the port reach the group: any state does.
func (s JoinState) Sends() bool { return s&0xF != 0 }

// String names the bits of the set, "Full|SendOnlyFull", or "none".
func (s JoinState) String() string {
	return maskNames(uint8(s), "Full", "Non", "SendOnlyNon", "SendOnlyFull")
}
