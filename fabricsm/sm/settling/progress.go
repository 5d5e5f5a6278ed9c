package settling

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
)

// Progress says how far the core is: requests that are out, work that waits and blocks that are still to be written.
type Progress struct {
	Phase   Phase
	Fresh   int // requests that are out and count against the window
	Window  int // how many may
	Urgent  int // P_Keys that are to be taken away, waiting
	Waiting [NumWork]int

	Routing     bool          // a routing computation runs, or is due
	RouteTook   time.Duration // the last one, 0 before the first
	LFTSwitches int           // whose forwarding is not in place
	LFTBlocks   int           // to be written on those
	Activating  int           // ports that are Armed and wait for forwarding
	Silent      int           // pieces of work that wait for a pause to pass
	Background  int           // low-priority work that nothing waits for: names, blocks of P_Keys most likely empty
}

// NumWork is the number of kinds of work, see WorkName.
const NumWork = work.NumClasses

// WorkName names a kind of work by what it asks for: "PortInfo". i is below
// NumWork.
func WorkName(i int) string {
	if i < 0 || i >= len(workNames) || workNames[i] == "" {
		return fmt.Sprintf("Work(%d)", i)
	}
	return workNames[i]
}

var workNames = [work.NumClasses]string{
	work.Root: "Root", work.Switch: "SwitchInfo", work.Info: "PortInfo", work.Probe: "NodeInfo", work.SMInfo: "SMInfo",
	work.PKey: "P_KeyTable", work.LFT: "LinearForwardingTable", work.SLtoVL: "SLtoVLMappingTable",
	work.Set: "Set PortInfo", work.Desc: "NodeDescription", work.MFT: "MulticastForwardingTable", work.VLArb: "VLArbitration",
	work.GUID: "GUIDInfo", work.Vendor: "MlnxExtendedPortInfo", work.Notice: "Notice",
}

// Phase is what the core is mainly busy with. Phases overlap; the first of the
// list that fits is given.
type Phase uint8

// Phases, in the order of a bring-up.
const (
	Discovery  Phase = iota // finding the devices
	Routing                 // a routing computation runs or is due
	Forwarding              // forwarding tables are being written
	Ports                   // ports are being configured and made active
	Settling                // nothing waits, answers are out or intent has not come
	Done                    // settled
	Standing                // not master: another subnet manager is, or is expected to be
)

// String names the phase in one word.
func (p Phase) String() string {
	names := [...]string{"discovery", "routing", "forwarding", "ports", "settling", "settled", "standby"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Counters count what happened since the core was made.
type Counters struct {
	Answered    uint64 // requests that were answered, refusals included
	Refused     uint64 // of which with a status other than 0
	TimedOut    uint64 // requests without an answer
	Undelivered uint64 // requests that could not be sent
	Repeated    uint64 // requests that repeat one which was not answered
	Unsolicited uint64 // MADs that came and were no answers
	Traps       uint64 // of which traps
	MKeyTraps   uint64 // of which reported a bad M_Key
	PKeyTraps   uint64 // of a bad P_Key
	QKeyTraps   uint64 // of a bad Q_Key
	ClassTraps  uint64 // of a bad key of a class
	Routed      uint64 // tables that were taken
	Unrouted    uint64 // routing computations without a result
	Masterships uint64 // times this subnet manager became master
}

// Stage is what the phase of a core depends on.
type Stage struct {
	State      ib.SMState
	Settled    bool
	Routed     bool // there are tables
	Routing    bool // a routing computation runs, or is due
	Forwarding bool // a switch does not have its tables
	Waiting    bool // there is work on ports
}

// Phase returns the first phase of the list that fits.
func (s Stage) Phase() Phase {
	switch {
	case s.State == ib.SMStandby || s.State == ib.SMNotActive:
		return Standing
	case s.State == ib.SMDiscovering:
		return Discovery
	case s.Settled:
		return Done
	case !s.Routed || s.Routing:
		return Routing
	case s.Forwarding:
		return Forwarding
	case s.Waiting:
		return Ports
	default:
		return Settling
	}
}
