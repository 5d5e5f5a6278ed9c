package pkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Port is what has to be known of a port.
type Port struct {
	Node    topo.NodeID
	Num     ib.PortNum
	State   ib.PortState // that was read last
	Known   bool         // PortInfo was read
	Seen    bool         // PortInfo was read, or the port may be written without
	Fresh   bool         // the link came up without configuration
	Placed  bool         // its place was reported
	BitsDue bool         // enforcement bits were set, and are still to be read back
	Checked bool         // it checked P_Keys, in one direction or both, when it was read first
	Barred  bool         // the declared topology keeps out the device behind it
}

// Node is what has to be known of a node.
type Node struct {
	Known  bool // SwitchInfo was read
	Cap    int  // P_Keys that a port of the switch has room for
	Reset  bool // the switch came without configuration, so its tables are empty
	Unsure bool // the switch may have lost what was written to it
	Silent bool
}

// Enforcement is what is known of how a switch port checks P_Keys.
type Enforcement struct {
	Possible  bool // it has a table, and declares what is asked for
	Proven    bool // it is proven to check P_Keys, as far as is asked for
	Forgotten bool // it accepted the enforcement bits and did not keep them
}

// Fabric is what a Keeper asks of the core.
type Fabric interface {
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	PortOf(topo.PortID) Port
	NodeOf(topo.NodeID) Node
	EnforcementOf(topo.PortID) Enforcement
	// IsPaused reports whether the table of a port could not be read or written, and is left alone for a while.
	IsPaused(topo.PortID) bool
	// IsManager reports whether an end port is that of a subnet manager of this service.
	IsManager(topo.PortID) bool
	// MayBelong reports whether the declared topology lets the device behind a switch port into partitions.
	MayBelong(topo.PortID) bool
	// IsRetired reports whether the device of a GUID left permanently.
	IsRetired(ib.GUID) bool
	// IsConfirmed reports whether the host behind a switch port was asked for its identity since the link was armed. If not,
	// it has the host asked.
	IsConfirmed(topo.PortID) bool
	// ReadFirst reports whether PortInfo of a port has to be read before its tables are written. If so, it has that read.
	ReadFirst(topo.PortID) bool
	// Expel takes away a switch that was linked to a place before it was known to be for a host.
	Expel(ib.Place)
	// ReadsLater reports whether blocks in which nothing is wanted are read when ReadNow is called.
	ReadsLater() bool
	// PutOff has work looked at in the background.
	PutOff(work.Ref)
}

// Events is what a Keeper reports of memberships, and of P_Keys without one.
type Events interface {
	// Applied reports that a membership was read back.
	Applied(*members.Membership)
	// Removed reports that a membership is proven to be gone; hca: from the adapter, too.
	Removed(ms *members.Membership, hca bool)
	// Refused reports why a membership is not honoured.
	Refused(ms *members.Membership, reason string)
	// Foreign reports what a port loses that no membership explains.
	Foreign(*Foreign)
	// Inherited reports what a port keeps, while a takeover is open, that no membership explains.
	Inherited(*Inherited)
	// Solved removes a fault from the views.
	Solved(fault.Key)
}
