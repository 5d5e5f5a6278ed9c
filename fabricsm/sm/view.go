package sm

import (
	"iter"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// View is an immutable snapshot for readers.
type View struct {
	Time     time.Time
	Fabric   *topo.Fabric
	Repeats  bool // Fabric and tables are those of the view before: events since then are newer
	State    ib.SMState
	GUID     ib.GUID // own port
	LID      ib.LID  // own port
	Priority uint8
	ActCount uint32    // as SMInfo has it
	Others   []OtherSM // other subnet managers, by rank, at most 100
	// Managers are the ports, by id, of other subnet managers with which this one works:
	// of those that policy allows, of siblings, and of those that are trusted.
	Managers []topo.PortID
	Settled  bool
	Pending  int   // requests that are out
	Revision int64 // of the intent in force
	Intent   bool  // an intent has come
	SMPs     []SMPCount
	Dropped  uint64        // received MADs that were malformed or meant nothing here
	Problems []string      // what stands in the way, the gravest first; at most 100 and how many more there are
	Faults   []fault.Fault // the same with where it is, in the same order, at most 4096
	Progress settling.Progress
	Counters settling.Counters

	// Health is where something is unhealthy or marked, by place.
	Health []health.State

	// Refusing are adapters that answer under none of their M_Keys; see PortCounted.
	Refusing []RefusingPort

	// Violations is what was reported of wrong keys and other traps, not older than Config.Violations.TellEvery, or nil.
	Violations *violation.List

	// Tables are the forwarding tables that are wanted, and when Settled those
	// that the switches have. nil before the first; see route.Tables.LFT.
	Tables *route.Tables

	// Topology is nil without a declared topology.
	Topology *declared.TopologyView

	// MKeys is nil if devices get no M_Keys. See MKey for each.
	MKeys *mkeys.View

	// Multicast is nil before this SM was master.
	Multicast *multicast.View

	aliases *aliases.Shown

	pkeys topo.Pages[*pkeys.Table] // by PortID, nil: not read
	mkeys topo.Pages[*mkeys.State] // by PortID, nil: nothing is known

	ports    topo.Pages[*portShown]            // by PortID, nil: not read
	switches topo.Pages[*[switchInfoSize]byte] // by NodeID, nil: not read
	lanes    lanes.View
}

// SMPCount says how many requests of a kind were sent.
type SMPCount struct {
	Method mad.Method
	Attr   mad.AttrID
	Sent   uint64
}

// PKeys gives the P_Key table of a port, empty entries left out, in the order
// of the table. proven says that every block of it was read with a Get since it
// was last written; a table that was not read at all is nil and not proven.
func (v *View) PKeys(p topo.PortID) (keys []ib.PKey, proven bool) {
	if int(p) >= v.pkeys.Len() {
		return nil, false
	}
	t := v.pkeys.At(int32(p))
	if t == nil {
		return nil, false
	}
	for _, k := range t.Keys() {
		if k.Valid() {
			keys = append(keys, k)
		}
	}
	return keys, t.IsProven()
}

// PKeyTable gives the P_Key table of a port as it is known, empty entries and all,
// nil if nothing was read of it. It must not be written to.
func (v *View) PKeyTable(p topo.PortID) []ib.PKey {
	if int(p) >= v.pkeys.Len() {
		return nil
	}
	return v.pkeys.At(int32(p)).Keys()
}

// ChangedPKeys visits the ports whose P_Key tables may differ from those of an
// older view, nil for none.
func (v *View) ChangedPKeys(old *View) iter.Seq[topo.PortID] {
	return func(yield func(topo.PortID) bool) {
		var was topo.Pages[*pkeys.Table]
		if old != nil {
			was = old.pkeys
		}
		for i := range v.pkeys.Changed(&was) {
			if (i >= int32(was.Len()) || v.pkeys.At(i) != was.At(i)) && !yield(topo.PortID(i)) {
				return
			}
		}
	}
}
