package declared

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// TopologyPort is a switch port at which the fabric is not as declared.
type TopologyPort struct {
	Place    ib.Place
	State    verify.State
	Verdict  verify.Verdict
	Action   verify.Action // action taken
	Would    verify.Action // action that enforcement would take
	Fields   verify.Fields // that differ
	Seen     topospec.End  // zero: nothing
	Type     ib.NodeType   // that is seen
	Expected topospec.End  // zero: nothing, or not known
	Belongs  topospec.End  // where the seen device belongs, zero: nowhere
	Pair     ib.Place      // the other port of a swap
	Page     bool          // a person is needed at once: a protected port is violated
	Since    time.Time
	Where    string // rack, unit, device and port, in words
	Cable    string // its serial number, "" if the topology does not say
	Text     string // a sentence for people

	saved bool
}

// TopologyChanged says that a port came to differ from the declared topology, or is
// as declared again, or was released.
type TopologyChanged struct {
	TopologyPort
	From     verify.State
	Revision uint64
	By, Why  string // of a release
}

// TopologyInForce describes the topology that is in force from now on. Mode Observe, Revision 0 and no digest: nothing is
// compared any more.
type TopologyInForce struct {
	Revision           uint64
	Digest             topospec.Digest
	Mode               topospec.Mode
	By                 string
	Verified, Expected int // links
}

// TopologyRefused says that a declared topology, a mode or a release is not taken,
// or that it cannot be enforced as things stand.
type TopologyRefused struct {
	Revision uint64
	Reason   string
}

// FabricEvent marks an event of the fabric.
func (*TopologyChanged) FabricEvent() {}

// FabricEvent marks an event of the fabric.
func (*TopologyInForce) FabricEvent() {}

// FabricEvent marks an event of the fabric.
func (*TopologyRefused) FabricEvent() {}

func (e *TopologyChanged) String() string { return e.Text }

func (e *TopologyInForce) String() string {
	if e.Digest.IsZero() {
		return fmt.Sprintf("no declared topology is in force any more, says %s", e.By)
	}
	return fmt.Sprintf("declared topology %d (%s) is in force, mode %v, says %s: %d of %d links are verified",
		e.Revision, e.Digest.Short(), e.Mode, e.By, e.Verified, e.Expected)
}

func (e *TopologyRefused) String() string { return "declared topology: " + e.Reason }
