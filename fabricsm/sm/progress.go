package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
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

// tally holds the counters, and the cause of the work under way.
type tally struct {
	Counters
	routeBegan time.Time
	routeTook  time.Duration
	why        trigger // of the work in this step
	trap       trigger // the last trap
	trapAt     time.Time
	work       struct { // since the fabric was settled no longer
		at       time.Time
		all      uint64 // requests sent before
		repeated uint64 // of which repeated others
		why      trigger
	}
}

// trigger is why an action is taken. Its text is made only when it is reported.
type trigger struct {
	kind     triggerKind
	lid      ib.LID
	trap     mad.TrapNum
	revision int64
}

type triggerKind uint8

const (
	byTimer triggerKind = iota
	byStart
	byTrap
	byIntent
	byAudit
	byRequest
)

// String says it in words.
func (t trigger) String() string {
	switch t.kind {
	case byStart:
		return "start"
	case byTrap:
		return fmt.Sprintf("trap %v from LID %v", t.trap, t.lid)
	case byIntent:
		return fmt.Sprintf("intent %d", t.revision)
	case byAudit:
		return "audit"
	case byRequest:
		return "another subnet manager"
	default:
		return "retry"
	}
}

// trapNear is how long after a trap what follows is put down to it.
const trapNear = time.Second

// noteInput remembers what a step is for.
func (t *tally) noteInput(in Input) {
	switch in := in.(type) {
	case *Started:
		t.why = trigger{kind: byStart}
	case *IntentSet:
		t.why = trigger{kind: byIntent, revision: in.Intent.Revision}
	case *IntentChanged:
		t.why = trigger{kind: byIntent, revision: in.Revision}
	case *Received:
		t.Unsolicited++
		t.why = trigger{kind: byRequest}
	default:
		t.why = trigger{}
	}
}

// noteTrap records a trap as the reason of the work that follows.
func (c *Core) noteTrap(lid ib.LID, num mad.TrapNum) {
	c.tally.Traps++
	switch num {
	case mad.TrapBadMKey:
		c.tally.MKeyTraps++
	case mad.TrapBadPKey, mad.TrapBadPKeySwitch:
		c.tally.PKeyTraps++
	case mad.TrapBadQKey:
		c.tally.QKeyTraps++
	}
	c.tally.why = trigger{kind: byTrap, lid: lid, trap: num}
	c.tally.trap, c.tally.trapAt = c.tally.why, c.now
}

// noteReply counts how a request ended.
func (t *tally) noteReply(outcome Outcome, m *mad.MAD) {
	switch outcome {
	case Answered:
		t.Answered++
		if m.Status() != mad.StatusOK {
			t.Refused++
		}
	case TimedOut:
		t.TimedOut++
	case Undelivered:
		t.Undelivered++
	}
}

// noteWork remembers why, and since when, the fabric is not settled.
func (c *Core) noteWork() {
	t := &c.tally
	t.work.at, t.work.all, t.work.repeated, t.work.why = c.now, c.wire.All(), t.Repeated, t.why
	switch {
	case c.auditing:
		t.work.why = trigger{kind: byAudit}
	case t.why.kind == byTimer && t.trap.kind == byTrap && c.now.Sub(t.trapAt) <= trapNear:
		t.work.why = t.trap
	}
}

func (c *Core) progress() Progress {
	p := Progress{
		Phase: c.phase(), Fresh: c.wire.Fresh(), Window: c.cfg.Window, Silent: len(c.failures),
		Routing: c.routing.need || c.routing.running, RouteTook: c.tally.routeTook,
		LFTSwitches: c.lfts.Pending(), Activating: len(c.routing.waiting),
		Background: c.idleWork.Len(),
	}
	p.Urgent = c.q.Urgent()
	for cl := range p.Waiting {
		p.Waiting[cl] = c.q.Waiting(work.Class(cl))
	}
	if p.LFTSwitches > 0 {
		p.LFTBlocks = c.lfts.BlocksLeft()
	}
	return p
}

func (c *Core) phase() Phase {
	r := &c.routing
	switch {
	case c.state == ib.SMStandby || c.state == ib.SMNotActive:
		return Standing
	case c.state == ib.SMDiscovering:
		return Discovery
	case !c.unsettled:
		return Done
	case r.tables == nil || r.need || r.running:
		return Routing
	case c.lfts.Pending() > 0:
		return Forwarding
	case !c.q.IsEmpty() || len(r.waiting) > 0:
		return Ports
	default:
		return Settling
	}
}

// noteTables counts the end of a routing computation.
func (t *tally) noteTables(now time.Time, in *TablesReady) {
	t.routeTook = now.Sub(t.routeBegan)
	if in.tables == nil {
		t.Unrouted++
		return
	}
	t.Routed++
}
