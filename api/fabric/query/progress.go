package query

import (
	"context"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm/settling"
)

// shownFaults is how many faults a progress report has; the count goes on.
const shownFaults = 100

// Progress returns how far the subnet manager is, and the last events.
func (o *Observer) Progress(context.Context) (*v1.SMProgress, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	p, c := &x.View.Progress, &x.Counters
	out := &v1.SMProgress{
		Observed: x.Time.UTC(), Now: o.now().UTC(), Started: o.started.UTC(),
		State: x.State.String(), Settled: x.Settled, Phase: p.Phase.String(), GUID: x.GUID, LID: x.LID,
		Priority: x.Priority, Revision: x.Revision, Routing: x.routing(), Busy: p.Routing,
		Answered: c.Answered, Refused: c.Refused, Timeouts: c.TimedOut, Nobody: c.Undelivered,
		Retries: c.Repeated, Dropped: x.Dropped, Traps: c.Traps,
		Out: x.Pending, Window: p.Window, Blocks: p.LFTBlocks, Behind: p.LFTSwitches,
		Waiting: p.Activating, Pauses: p.Silent, SMPs: []v1.SMPKind{}, Queues: queues(p),
		Settles: o.log.settled(), Events: o.log.last(keptEvents), Faults: x.faultRows(shownFaults), NFaults: len(x.Faults),
	}
	out.Nodes, out.Ports = x.counts()
	out.Links = (out.Ports.Cabled + 1) / 2
	out.Settled = out.Settled && o.judged().State != v1.SightBlind
	for _, k := range x.SMPs {
		out.Sent += k.Sent
		out.SMPs = append(out.SMPs, v1.SMPKind{Method: k.Method.String(), Attribute: k.Attr.String(), Sent: k.Sent})
	}
	return out, nil
}

func queues(p *settling.Progress) []v1.Queue {
	out := []v1.Queue{}
	if p.Urgent > 0 {
		out = append(out, v1.Queue{Name: "urgent", Len: p.Urgent})
	}
	for i, n := range p.Waiting {
		if n > 0 {
			out = append(out, v1.Queue{Name: settling.WorkName(i), Len: n})
		}
	}
	return out
}

// SM returns the state of the subnet manager.
func (o *Observer) SM(context.Context) (*v1.SM, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	out := &v1.SM{
		State: x.State.String(), GUID: x.GUID, LID: x.LID, Priority: x.Priority, Settled: x.Settled,
		Pending: x.Pending, Revision: x.Revision, SMPs: map[string]int{}, Problems: slices.Clone(x.Problems), Updated: x.Time.UTC(),
	}
	for _, id := range x.MuteSwitches() {
		out.Mute = append(out.Mute, x.Fabric.Node(id).GUID)
	}
	out.Sight = o.judged()
	out.Settled = out.Settled && out.Sight.State != v1.SightBlind
	for _, k := range x.SMPs {
		out.SMPs[k.Method.String()+" "+k.Attr.String()] = int(k.Sent)
	}
	return out, nil
}
