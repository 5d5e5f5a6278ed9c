package sim

import (
	"time"

	"portcullis/fabricsm/sim/perf"
)

// vl15Buffers is how many SMPs a port of a plain device holds for its agent.
const vl15Buffers = 16

// smpQueue holds the SMPs that wait for the agent of a slow node, first come, first served for all ports; the first is in
// work. SMPs have no flow control, so each port holds as many as it has buffers for, and drops the others. The zero queue
// is empty.
type smpQueue struct {
	waiting []waitingSMP
	power   uint64 // times that the queue was emptied: actions planned before are void
}

// waitingSMP is an SMP in a buffer of port in, for the agent behind port at.
type waitingSMP struct {
	flight flight
	at, in *port
}

// enqueue puts an SMP into a buffer of the port it came by, or drops it.
func (f *network) enqueue(fl *flight, at *port, work time.Duration) {
	n, in := at.node, fl.in
	if in == nil {
		in = at
	}
	if in.held >= n.model().vl15Buffers() {
		f.stats.VL15Dropped++
		in.counters.VL15Dropped = perf.Saturate16(in.counters.VL15Dropped, 1)
		f.undelivered(fl)
		return
	}
	in.held++
	n.smps.waiting = append(n.smps.waiting, waitingSMP{*fl, at, in})
	if len(n.smps.waiting) == 1 {
		n.workOnSMP(work)
	}
}

// workOnSMP plans the end of the work on the first SMP of the queue.
func (n *node) workOnSMP(work time.Duration) {
	power := n.smps.power
	n.fabric.later.add(n.fabric.now+work, func() {
		if n.smps.power == power {
			n.finishSMP()
		}
	})
}

// finishSMP passes the first SMP of the queue to the agent, and starts with the next one.
func (n *node) finishSMP() {
	done := n.smps.waiting[0]
	n.smps.waiting = append(n.smps.waiting[:0], n.smps.waiting[1:]...)
	done.in.held--
	if len(n.smps.waiting) > 0 {
		n.workOnSMP(n.activeFault().Work)
	}
	n.fabric.deliver(&done.flight, done.at)
}

// empty drops the waiting SMPs, as a device without power does.
func (q *smpQueue) empty() {
	for i := range q.waiting {
		q.waiting[i].in.held = 0
	}
	q.waiting = nil
	q.power++
}

// vl15Buffers is how many SMPs a port holds for the agent.
func (d *Device) vl15Buffers() int {
	if d.VL15Buffers != 0 {
		return int(d.VL15Buffers)
	}
	return vl15Buffers
}
