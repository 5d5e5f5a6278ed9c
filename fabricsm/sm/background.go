package sm

import (
	"portcullis/fabricsm/sm/attributes"
	"portcullis/fabricsm/sm/pacing"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// idle and allowances are the core as package pacing uses it.
type (
	idle       struct{ desk }
	allowances struct{ desk }
)

var (
	_ pacing.Idle  = idle{}
	_ pacing.Ports = allowances{}
)

func (f allowances) Allowance(p topo.PortID) *pacing.Allowance { return &f.ports[p].turns }
func (f allowances) KeyBlocks(p topo.PortID) int               { return f.pkeys.Blocks(p) }

func (f idle) IsSettled() bool { return f.tally.IsSettled() }

// Begin puts work into the queue. Its node or port may be gone.
func (f idle) Begin(x work.Ref) {
	switch x.Class {
	case work.Probe:
		f.hosts.AskInBackground(x.Port())
		return
	case work.Desc:
		if n := &f.nodes[x.ID]; n.alive && !n.described {
			f.q.Mark(x)
		}
		return
	default:
	}
	pt := &f.ports[x.ID]
	alive := f.nodes[pt.node].alive
	switch {
	case x.Class == work.Vendor && alive && pt.known:
		f.q.Mark(x)
	case x.Class == work.Vendor:
		f.mkeys.Rotation().Unanswered(x.Port())
	case !alive:
	case x.Class != work.SLtoVL:
		f.pkeys.ReadRest(x.Port())
	case pt.known:
		attributes.Lanes{Parts: &f.parts}.AuditMaps(x.Port())
	}
}

// Done shows what was found, once the answers are there.
func (f idle) Done() {
	f.viewDue = true
	if f.mkeys.Rotation().IsAsking() {
		f.mkeys.Rotation().Soon() // it may have waited for a device that does not answer
	}
}
