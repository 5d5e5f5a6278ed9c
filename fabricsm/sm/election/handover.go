package election

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// command is a Set of SMInfo that is to be sent.
type command struct {
	control mad.SMInfoControl
	state   ib.SMState // that it shows as ours
}

// handOver hands the fabric over to a Subnet Manager of higher rank, which has shown the key. This one stops writing at
// once.
func (e *Election) handOver(p topo.PortID, o *other) {
	if o.declined > 0 && e.fabric.Now().Before(o.declinedAt.Add(min(e.o.RetryMin<<min(o.declined, 16), e.o.RetryMax))) {
		return
	}
	e.standByFor(p, "handing over to "+e.name(p)+", which is of higher rank")
	e.send(p, command{mad.SMInfoHandover, ib.SMMaster})
}

// send has a command sent to a port.
func (e *Election) send(p topo.PortID, cmd command) {
	e.commands[p] = cmd
	e.queue.MarkPort(work.SMInfo, p)
}

const (
	// drainTime is how long a handover waits for requests that are out.
	drainTime = time.Second
	// drainTick is how often it looks whether there are any.
	drainTick = 5 * time.Millisecond
)

// command sends the command for a port. Before a handover comes to rest what this Subnet Manager has on the wire, so that
// there is one writer at a time.
func (e *Election) command(p topo.PortID) {
	cmd := e.commands[p]
	if cmd.control == mad.SMInfoHandover && e.wire.Out() > 0 && e.fabric.Now().Sub(e.since) < drainTime {
		e.requests.After(drainTick, work.Near, work.OnPort(work.SMInfo, p))
		return
	}
	id := e.requests.Set(p, cmd.control, mad.SMInfo{
		GUID: e.o.GUID, SMKey: e.o.Key, ActCount: e.actCount, SMState: cmd.state, Priority: e.own.PriorityIn(cmd.state),
	})
	if cmd.control == mad.SMInfoAcknowledge {
		// No work waits for the answer, least of all our own discovery: the old master may have ended.
		e.wire.Ignore(id)
	}
}

// commanded handles that a command was obeyed, or the reason why not.
func (e *Election) commanded(p topo.PortID, control mad.SMInfoControl, reason string) {
	delete(e.commands, p)
	if control != mad.SMInfoHandover || e.own.State != ib.SMStandby || p != e.master || e.own.Leaving {
		return
	}
	o := e.at(p)
	if reason == "" {
		e.since = e.fabric.Now()
		if o != nil {
			o.declined = 0
		}
		return
	}
	if o != nil {
		o.declined, o.declinedAt = o.declined+1, e.fabric.Now()
	}
	e.takeOver(true, e.name(p)+" did not take the handover: "+reason)
}

// nudge is how a master of lower rank is asked to hand over.
type nudge struct {
	after time.Time // not before
	pause time.Duration
	count uint32 // sent so far
}

// nudgeMaster sends trap 144 to a master of lower rank, so that it looks at us and hands over. It is repeated after ever
// longer pauses.
func (e *Election) nudgeMaster(p topo.PortID) {
	n := &e.nudge
	now, own := e.fabric.Now(), e.fabric.Own()
	if now.Before(n.after) || own == topo.None {
		return
	}
	from, to := e.fabric.Info(own), e.fabric.Info(p).LID
	if !from.LID.IsUnicast() || !to.IsUnicast() {
		return
	}
	n.pause = min(max(2*n.pause, e.o.RetryMin), e.o.RetryMax)
	n.after = now.Add(n.pause)
	n.count++
	producer := e.topo.Node(e.topo.Port(own).Node).Type
	// The lower half of the transaction is one that no request of ours has.
	e.requests.Trap(to, ib.TID(work.UnusedID(n.count)), mad.Trap144{
		NoticeHeader: mad.NoticeHeader{
			IsGeneric: true, Type: mad.NoticeInformational, ProducerType: uint32(producer),
			TrapNumber: mad.TrapLocalChange, IssuerLID: from.LID,
		},
		LID: from.LID, OtherLocalChanges: true, NewCapabilityMask: from.CapabilityMask,
		ChangeFlags: mad.SMPriorityChanged,
	})
}
