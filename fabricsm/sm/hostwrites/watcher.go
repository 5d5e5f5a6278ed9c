// Package hostwrites finds values that a host writes into its own adapter.
//
// No device checks the M_Key of an SMP that its own host sends. So root can write any value there, unless the adapter's SMP
// firewall is on. A value that the subnet manager reads there and had left otherwise is reported by field, with the place.
// It is written back like any other difference. LIDs are read more often than the rest: with another tenant's LID a host
// sends requests in its name, and nothing in the fabric checks source LIDs.
package hostwrites

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// State is what is kept of a port. The zero value is that of a port of which nothing strange was read.
type State struct {
	// foreign is an entry of the P_Key table that was not left there, until PortInfo shows whether the port was restarted;
	// 0: none.
	foreign ib.PKey
	block   uint8 // of GUIDInfo, read last by the audit
	due     bool  // that block is to be read: the port is to have no aliases
}

// Forget forgets a strange entry of the P_Key table.
func (s *State) Forget() { s.foreign = 0 }

// Due reports whether a block of GUIDInfo is to be read, and which, and takes it as asked for.
func (s *State) Due() (block uint8, due bool) {
	due, s.due = s.due, false
	return s.block, due
}

// Port is what is known of a port.
type Port struct {
	State    *State
	Node     topo.NodeID
	LID      ib.LID // that it is to have
	GUIDCap  uint8
	IsPlaced bool
	IsUp     bool // it was read, its link is up and its node answers
}

// Fabric is what a Watcher asks of the core, and where it reports.
type Fabric interface {
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// Own returns our own end port, None before it is known.
	Own() topo.PortID
	// IsWriting reports whether this subnet manager may change devices.
	IsWriting() bool
	// SMLID returns our own LID, 0 before it is assigned.
	SMLID() ib.LID
	// LMC returns the LMC that an end port is to have.
	LMC(topo.PortID) ib.LMC
	// Owner returns the GUID that a LID is assigned to, 0 for none.
	Owner(ib.LID) ib.GUID
	// HasAliases reports whether a port is to have alias GUIDs.
	HasAliases(topo.PortID) bool
	// IsMember reports whether memberships are granted to a GUID.
	IsMember(ib.GUID) bool
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// ReadLater reads PortInfo without unsettling the fabric.
	ReadLater(topo.PortID)
	// Note reports a value that a host wrote.
	Note(topo.PortID, violation.HostWrite)
}

// Watcher compares what adapters show with what was left there. Use New.
type Watcher struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
	lidAt  topo.PortID // adapter whose LID was read last
	due    float64     // how many are to be read now
}

// New returns a watcher of a fabric.
func New(f Fabric, t *topo.Builder, q *work.Queue) Watcher {
	return Watcher{fabric: f, topo: t, queue: q}
}

// IsAdapter reports whether a port is an end port of a host behind a switch port.
func (w *Watcher) IsAdapter(p topo.PortID) bool {
	if !w.topo.IsEndPort(p) || w.topo.Node(w.fabric.Port(p).Node).Type == ib.NodeSwitch || p == w.fabric.Own() {
		return false
	}
	peer := w.topo.Peer(p)
	return peer != topo.None && w.topo.IsExternal(peer)
}

// Compare compares what a Get of PortInfo shows of an adapter with what was left there. A port that is not Armed may have
// been restarted, and has lost what it had.
func (w *Watcher) Compare(p topo.PortID, old, is *mad.PortInfo) {
	if !w.IsAdapter(p) || !w.fabric.IsWriting() || w.queue.IsAsked(work.Set, p) {
		return
	}
	pt := w.fabric.Port(p)
	if old.PortState < ib.PortArmed || is.PortState < ib.PortArmed {
		pt.State.foreign = 0
		return
	}
	if pt.State.foreign != 0 {
		w.fabric.Note(p, violation.HostWrite{Field: violation.HostPKeys, LID: is.LID, PKey: pt.State.foreign})
		pt.State.foreign = 0
	}
	if pt.LID != 0 && old.LID == pt.LID && is.LID != pt.LID {
		w.fabric.Note(p, violation.HostWrite{Field: violation.HostLID, LID: is.LID, Victim: w.fabric.Owner(is.LID)})
	}
	if lmc := w.fabric.LMC(p); old.LMC == lmc && is.LMC != lmc {
		w.fabric.Note(p, violation.HostWrite{Field: violation.HostLMC, LID: is.LID})
	}
	if own := w.fabric.SMLID(); own != 0 && old.MasterSMLID == own && is.MasterSMLID != own {
		w.fabric.Note(p, violation.HostWrite{Field: violation.HostMasterLID, LID: is.MasterSMLID})
	}
}

// SuspectKeys notes a block of a P_Key table that a Get shows otherwise than it was left, nil if that is not known. It is
// reported when PortInfo, which is read next, shows that the port was not restarted.
func (w *Watcher) SuspectKeys(p topo.PortID, r *work.Request, had, got []ib.PKey) {
	if r.Method != mad.MethodGet || had == nil || !w.IsAdapter(p) || !w.fabric.IsWriting() {
		return
	}
	s := w.fabric.Port(p).State
	if s.foreign != 0 {
		return
	}
	for i, k := range got {
		if k == had[i] {
			continue
		}
		if s.foreign = k; k == 0 {
			s.foreign = had[i] // it was taken out
		}
		w.fabric.ReadLater(p)
		return
	}
}

const (
	// LIDTick is the step in which LIDs are read.
	LIDTick = 250 * time.Millisecond
	// lidsPerSecond bounds the share of the wire that this takes.
	lidsPerSecond = 500
)

// ReadLIDs is called once in LIDTick. It reads PortInfo of so many adapters that each has its turn within a period, whether
// the fabric is settled or not, as long as those are no more than lidsPerSecond. ports are all there are, ends those with a
// GUID.
func (w *Watcher) ReadLIDs(ports, ends int, period time.Duration) {
	if ports == 0 || !w.fabric.IsWriting() {
		return
	}
	w.due += min(float64(ends)*float64(LIDTick)/float64(period), lidsPerSecond*LIDTick.Seconds())
	for range ports {
		if w.due < 1 {
			return
		}
		w.lidAt = (w.lidAt + 1) % topo.PortID(ports)
		if p := w.lidAt; w.fabric.Port(p).IsUp && w.IsAdapter(p) {
			w.fabric.ReadLater(p)
			w.due--
		}
	}
	w.due = 0 // all have been read
}
