// Package refusing finds adapters that refuse their M_Keys, and has the switch ports in front of them closed.
//
// A host can set another M_Key on its own adapter. Then this subnet manager can no longer write there, and another tenant's
// LID would stay. So the switch port in front is closed: its link is taken down to Init, in which only SMPs pass. The adapter
// is asked further, under its keys. As soon as it answers it is admitted like any host that was cabled there. A restart also
// leads to this, as an M_Key does not survive it.
//
// Neither silence nor a trap closes a port. For an adapter that answered under its key since its link came up, these do:
//
//   - an answer with an M_Key that is none of ours, or in which one is hidden, or
//   - that it answers under none of its keys while the switch in front, asked by package
//     counterwatch, has counted packets from it twice, in the same life of the link:
//     it works, and refuses.
//
// Where many adapters do so at once the fault is more likely in a firmware, or ours, than in so many hosts. Then the rest
// stays as it is, and is reported.
//
// The package has no clock and sends nothing. It marks which work is to be done.
package refusing

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

const (
	// MaxClosed is how many switch ports may be closed for this within Window.
	MaxClosed = 4
	// Window is the time in which closed ports are counted.
	Window = 10 * time.Minute

	countsNeeded = 2                // times that the count of packets must have grown
	askEvery     = 2 * time.Second  // how often an adapter is asked behind a closed switch port
	closedFor    = 10 * time.Second // how long the link of a port may be down because it was closed
	// tooOften is how many times within Window a port may be closed before the device behind it is isolated as unhealthy.
	tooOften = 3
)

// Port is what is known of a port.
type Port struct {
	Info      *mad.PortInfo
	IsRead    bool // PortInfo was read in this life of the link
	HasObeyed bool // it answered under its M_Key since its link is there
}

// Fabric is what Adapters ask of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// IsSilent reports whether a node answers nothing.
	IsSilent(topo.NodeID) bool
	// IsAdapter reports whether a port is that of an adapter behind a switch port.
	IsAdapter(topo.PortID) bool
	// IsAtPlace reports whether it is proven that a device is where its key is.
	IsAtPlace(topo.PortID) bool
	// IsWriting reports whether this subnet manager may change devices.
	IsWriting() bool
	// IsProtected reports whether a switch port is never closed.
	IsProtected(topo.PortID) bool
	// IsPaused reports whether work was left for a pause since it last went well.
	IsPaused(work.Ref) bool
}

// Keys is what Adapters ask of those who know the M_Keys.
type Keys interface {
	// IsOn reports whether devices have M_Keys.
	IsOn() bool
	// IsReleasing reports whether they lose them.
	IsReleasing() bool
	// Do returns what is to be done about the key of a port, and false if it has none.
	Do(topo.PortID) (keys.Do, bool)
}

// Actions is what Adapters have done.
type Actions interface {
	// Unlink takes the cable of a port away, and what could be reached over it alone.
	Unlink(topo.PortID)
	// Shut takes the link of a switch port down that is in use.
	Shut(topo.PortID)
	// Doubt records that a device may have been restarted.
	Doubt(topo.PortID)
	// ReadPort has the PortInfo of a port read in the background.
	ReadPort(topo.PortID)
	// AskLater calls Adapters.AskClosed after a time.
	AskLater(time.Duration)
	// NoteWrite lists that a host wrote an M_Key into its adapter, which had a LID.
	NoteWrite(topo.PortID, ib.LID)
	// ReportRefused reports an adapter, and keeps it in the views until fault.KeyRefused is solved at its place.
	ReportRefused(Refused)
	// ReportObeyed reports that an adapter for which a switch port was closed answers again.
	ReportObeyed(ib.GUID, ib.Place)
	// ShowSoon has a view made, which shows Adapters.List.
	ShowSoon()
	// Solved removes a fault from the views.
	Solved(fault.Key)
}

// Refused says that an adapter works and refuses its M_Key.
type Refused struct {
	GUID    ib.GUID
	Place   ib.Place
	LID     ib.LID // that was read there last
	Packets uint64 // that it sent while it refused, as the switch in front counts; 0: it showed an M_Key that is not ours
	Open    bool   // the port was left open, since too many were closed lately
}

// Listed is an adapter that answers under none of its M_Keys. The packets that the switch port in front receives say whether
// it works.
type Listed struct {
	GUID   ib.GUID
	Place  ib.Place
	Switch topo.PortID // port 0 of the switch in front
}

// refusal is what is known of an adapter that answers under none of its keys.
type refusal struct {
	place   ib.Place
	first   uint64 // packets at the first count
	last    uint64
	counts  int
	grew    int
	stopped bool // it was decided what follows
}

// take takes a count of packets. It reports whether the count has grown often enough.
func (r *refusal) take(packets uint64) bool {
	switch r.counts++; {
	case r.counts == 1:
		r.first = packets
	case packets > r.last:
		r.grew++
	case packets < r.last: // they were reset
		r.counts, r.grew, r.first = 1, 0, packets
	}
	r.last = packets
	return r.grew >= countsNeeded
}

// closing is for which adapter a switch port was closed, and when.
type closing struct {
	guid ib.GUID
	at   time.Time
}

// past is a switch port that was closed within Window.
type past struct {
	place ib.Place
	at    time.Time
}

// Parts are what Adapters work with.
type Parts struct {
	Fabric  Fabric
	Actions Actions
	Keys    Keys
	Topo    *topo.Builder
	Queue   *work.Queue
	Health  *health.Records
}

// Adapters is what is known of adapters that refuse their keys. Use New.
type Adapters struct {
	fabric   Fabric
	actions  Actions
	keys     Keys
	topo     *topo.Builder
	queue    *work.Queue
	health   *health.Records
	mayClose bool

	refusals map[topo.PortID]*refusal
	closed   map[ib.Place]closing // switch ports that are closed
	lately   []past
	asking   bool // Adapters.AskClosed is to be called
}

// New returns what is known at first: nothing. mayClose says whether ports are closed at all. What it works with stays the
// caller's.
func New(p *Parts, mayClose bool) Adapters {
	return Adapters{
		fabric: p.Fabric, actions: p.Actions, keys: p.Keys, topo: p.Topo, queue: p.Queue, health: p.Health, mayClose: mayClose,
		refusals: make(map[topo.PortID]*refusal), closed: make(map[ib.Place]closing),
	}
}

func (a *Adapters) nodeOf(p topo.PortID) topo.NodeID { return a.topo.Port(p).Node }

func keyRefused(at ib.Place) fault.Key { return fault.Key{Kind: fault.KeyRefused, Place: at} }
