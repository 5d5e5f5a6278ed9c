package sm

import (
	"container/heap"
	"time"

	"portcullis/fabricsm/topo"
)

// timerKind is the work to do when a timer is due.
type timerKind uint8

const (
	timerRetry      timerKind = iota // look at ref again
	timerNear                        // the same, after so short a pause that the fabric is not settled
	timerHold                        // ref has an allowance again
	timerVerify                      // verify a switch that sent traps
	timerReport                      // read the counters of a port that traps reported
	timerIntent                      // stop waiting for the first intent
	timerAudit                       // next step of the background audit
	timerWatch                       // look at our own port
	timerPoll                        // standby: ask the master
	timerRoute                       // routing has waited long enough
	timerHealth                      // look after the sick
	timerRotate                      // go on with the rotation of keys
	timerBackground                  // next batch of low-priority work
	timerTurn                        // the port of ref had long enough to get onto its new key
	timerViolations                  // report again violations that grew
	timerLease                       // a tool has had a key for long enough
	timerKeepLeases                  // read devices before the leases of their keys run out
	timerLIDs                        // read LIDs of adapters
	timerClosed                      // ask behind switch ports that are closed, see refusing.go
)

type timer struct {
	at    time.Time
	seq   uint64 // order of equal times
	kind  timerKind
	ref   ref
	epoch uint32
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (c *Core) after(d time.Duration, kind timerKind, x ref) {
	c.timerSeq++
	t := timer{at: c.now.Add(d), seq: c.timerSeq, kind: kind, ref: x}
	if kind == timerNear {
		c.near++
	}
	if kind <= timerReport {
		t.epoch = c.epochOf(x)
	}
	heap.Push(&c.timers, t)
}

func (c *Core) epochOf(x ref) uint32 {
	switch {
	case x.class == clsRoot:
		return 0
	case x.class.onNode():
		return c.nodes[x.id].epoch
	default:
		return c.nodes[c.ports[x.id].node].epoch
	}
}

// fire does the work that is due.
func (c *Core) fire() {
	for len(c.timers) > 0 && !c.timers[0].at.After(c.now) {
		t := heap.Pop(&c.timers).(timer)
		switch t.kind {
		case timerNear:
			c.near--
			if c.epochOf(t.ref) == t.epoch {
				c.mark(t.ref)
			}
		case timerRetry:
			if c.epochOf(t.ref) == t.epoch {
				c.pausedFor(t.ref)
				c.mark(t.ref)
			}
		case timerHold:
			c.marksOf(t.ref).held &^= 1 << t.ref.class
			if c.epochOf(t.ref) == t.epoch {
				c.mark(t.ref)
			}
		case timerVerify:
			if c.epochOf(t.ref) == t.epoch {
				c.verifyDue(topo.NodeID(t.ref.id))
			}
		case timerReport:
			if c.epochOf(t.ref) == t.epoch {
				c.reports.CheckDue(topo.PortID(t.ref.id))
			}
		case timerViolations:
			c.reports.ReportDue()
			c.viewDue = true
		case timerIntent:
			c.stopWaiting()
		case timerAudit:
			c.audit()
		case timerWatch:
			c.watch()
		case timerPoll:
			c.poll()
		case timerHealth:
			c.nurse()
		case timerBackground:
			c.backgroundDue()
		case timerRotate:
			c.rotationDue()
		case timerTurn:
			c.turnOver(topo.PortID(t.ref.id))
		case timerLease:
			c.leasesDue()
		case timerKeepLeases:
			c.keepLeases()
		case timerClosed:
			c.askClosed()
		case timerLIDs:
			c.readLIDs()
		case timerRoute:
			if wait := c.routesBy().Sub(c.now); c.routing.need && !c.routing.running && wait > 0 {
				c.after(wait, timerRoute, ref{})
			}
		}
	}
}

// pausedFor forgets which blocks of a table were refused before a pause.
func (c *Core) pausedFor(x ref) {
	switch x.class {
	case clsLFT:
		c.nodes[x.id].lft.refused = nil
	case clsMFT:
		if t := c.nodes[x.id].mft; t != nil {
			t.refused = nil
		}
	default:
	}
}
