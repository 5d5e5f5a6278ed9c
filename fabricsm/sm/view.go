package sm

import (
	"iter"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
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

	// Early are tables that were computed of the fabric as it was found, nil unless Tables is nil and Config.AnswersEarly. No
	// switch has them: they say which ports reach each other, by one lane, until the tables of the switches were read. They come
	// with an intent, once no P_Key is to be taken away.
	Early *route.Tables

	// Topology is nil without a declared topology.
	Topology *declared.TopologyView

	// MKeys is nil if devices get no M_Keys. See MKey for each.
	MKeys *mkeys.View

	// Multicast is nil before this SM was master.
	Multicast *multicast.View

	// Devices are ports and switches, besides what Fabric has of them.
	portview.Devices
}

// SMPCount says how many requests of a kind were sent.
type SMPCount = work.Count

// ChangedPKeys visits the ports whose P_Key tables may differ from those of an
// older view, nil for none.
func (v *View) ChangedPKeys(old *View) iter.Seq[topo.PortID] { return v.PKeysSince(old.devices()) }

// ChangedAliases visits the ports whose aliases differ from those of an older
// view, nil for none, some of them twice, in no order. Without a change it costs
// nothing.
func (v *View) ChangedAliases(old *View) iter.Seq[topo.PortID] { return v.AliasesSince(old.devices()) }

func (v *View) devices() *portview.Devices {
	if v == nil {
		return &portview.Devices{}
	}
	return &v.Devices
}
