// Package confirm finds out whether what was learned of a host or a switch still holds, before a port is made Active.
//
// The host behind a switch port is asked for its identity when its link is found. By the time the link is Armed, the cable
// may be in another host: while the link was in Init nothing showed that the cable was out. A link that was Armed and then
// out is in Init again, though, and cannot be made Active from there (IBTA volume 1, 7.2.7). So where a grant depends on
// it, the host is asked once more for its identity while the link is Armed. Elsewhere that is done in the background.
//
// A switch that is reset while all its links are in Init loses its settings, and nothing shows that: its links
// come back in Init, as they were, and it sends no trap without a LID. So the first write to a new switch is the LID of its
// port 0. A reset removes that LID, and it does not come back by itself. Once one of its links is armed, a reset would show
// there. From then on one Get of that LID proves that nothing was lost before. Until that Get, the switch is not sure: no
// link of its hosts is made Active, and no grant there is reported as applied.
//
// The package has no clock and sends nothing. It marks which work is to be done.
package confirm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Host is what is kept of a switch port about the host behind it. The zero value is that of a link that is not armed.
type Host struct {
	armed     int64 // when its link was seen to be armed, in nanoseconds of the core's life and one; 0: it is not
	asked     bool  // it is asked for its identity in the background
	confirmed bool  // it was asked since its link was armed
}

// Ask records that the host is asked for its identity in the background.
func (h *Host) Ask() { h.asked = true }

// IsAsked reports whether the host is asked for its identity in the background.
func (h *Host) IsAsked() bool { return h.asked }

// Switch is what is kept of a switch. The zero value is that of a switch that lost nothing.
type Switch struct {
	held    []work.Ref // work that waits until its port 0 has its LID
	unsure  bool       // it may have lost its settings
	armed   bool       // a link of it was seen armed since it is unsure
	written bool       // something may have been written to it since it is unsure
	proving bool       // the pending read of port 0 decides
}

// Doubt begins to doubt a switch that is new, or has lost its tables. written says that something was written to it.
func (s *Switch) Doubt(written bool) {
	s.unsure, s.written, s.proving, s.armed = true, written, false, false
}

// IsUnsure reports whether the switch may have lost its settings.
func (s *Switch) IsUnsure() bool { return s.unsure }

// NoteSet records that a Set goes out to the switch.
func (s *Switch) NoteSet() { s.written = true }

// Port is what is known of a port.
type Port struct {
	Info   *mad.PortInfo
	Host   *Host
	Node   topo.NodeID
	LID    ib.LID // that it is to have
	Num    ib.PortNum
	IsRead bool // PortInfo was read in this life of the link
	IsSeen bool // it was read, or may be written without that
}

// Fabric is what this package asks of the core.
type Fabric interface {
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// Switch returns what is kept of a switch.
	Switch(topo.NodeID) *Switch
	// Age returns how long the core has been running.
	Age() time.Duration
	// IsWriting reports whether this subnet manager may change devices.
	IsWriting() bool
	// Enforces reports whether the declared topology is enforced.
	Enforces() bool
	// Concerns reports whether a grant depends on a port.
	Concerns(topo.PortID) bool
	// IsKeySettled reports whether nothing is left to be done about the M_Key of an end port.
	IsKeySettled(topo.PortID) bool
	// Verify has the next probe of a port ask although its peer is known.
	Verify(topo.PortID)
	// AskLater has a port probed in the background.
	AskLater(topo.PortID)
	// JudgePort judges again which grants on a port are applied.
	JudgePort(topo.PortID)
	// JudgeNode judges again which grants on a node are applied.
	JudgeNode(topo.NodeID)
}
