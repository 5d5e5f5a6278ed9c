package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/attributes"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// auditTick is the step of the background audit.
const auditTick = time.Second

// audit reads again as many ports as needed for each port to have its turn within Config.AuditPeriod. A changed value that
// it finds is repaired like any change.
func (c *Core) audit() {
	c.after(auditTick, work.Audit, work.Ref{})
	n := len(c.ports)
	if n == 0 || c.election.State() != ib.SMStandby && (!c.writing() || !c.tally.IsSettled()) {
		return // a standby keeps its picture up to date, which it may need soon
	}
	c.changes.Audit()
	for range (n*int(auditTick/time.Millisecond) + int(c.cfg.AuditPeriod/time.Millisecond) - 1) / int(c.cfg.AuditPeriod/time.Millisecond) {
		c.auditAt = (c.auditAt + 1) % topo.PortID(n)
		if c.auditAt == 0 {
			c.auditRound++
		}
		c.auditPort(c.auditAt)
	}
}

// auditPort reads a port again.
func (c *Core) auditPort(p topo.PortID) {
	pt := &c.ports[p]
	if !c.nodes[pt.node].alive || !pt.known {
		return
	}
	c.background(p)
	c.auditIdentity(p)
	c.aliases.Audit(p)
	c.wrote.ReadGUIDs(p)
	attributes.Lanes{Parts: &c.parts}.AuditMaps(p)
	attributes.Lanes{Parts: &c.parts}.AuditShares(p, c.auditRound)
	if pt.num == 0 {
		c.groups.Audit(pt.node)
	}
	c.pkeys.Audit(p)
}

// MaxSuspected bounds the places of one [Suspected].
const MaxSuspected = 256

// Suspected says that ports at these places, and at the other ends of their cables, may not have what was written to them. They are
// read again, and a value that differs is written again, as the background audit does in its turn. Places that are not known, and
// those after the first MaxSuspected, are ignored. Nothing is read while this Subnet Manager is not master.
type Suspected struct{ Places []ib.Place }

func (*Suspected) input() {}

// suspected reads ports again that may not have what was written.
func (c *Core) suspected(places []ib.Place) {
	if !c.writing() {
		return
	}
	for _, at := range places[:min(len(places), MaxSuspected)] {
		p := c.topo.SwitchPortAt(at)
		if p == topo.None {
			continue
		}
		c.auditPort(p)
		if end := c.topo.Peer(p); end != topo.None {
			c.auditPort(end)
		}
	}
}

// keepLeases reads so many end ports under their keys that each has its turn at least
// three times in a lease: a read with the key ends the time that a violation began. It goes
// before all other work, whether the fabric is settled or not.
func (c *Core) keepLeases() {
	c.after(leaseTick, work.KeepLeases, work.Ref{})
	n := len(c.ports)
	if n == 0 || !c.writing() || c.mkeys.IsReleasing() {
		return
	}
	third := time.Duration(c.cfg.MKey.Lease) * time.Second / 3
	for range min(n, (n*int(leaseTick/time.Millisecond)+int(third/time.Millisecond)-1)/int(third/time.Millisecond)) {
		c.leaseAt = (c.leaseAt + 1) % topo.PortID(n)
		if p := c.leaseAt; c.topo.IsEndPort(p) && c.ports[p].known && c.nodes[c.ports[p].node].alive && c.mkeys.Places().Ring(p) != nil {
			c.ports[p].background = true
			c.q.MarkUrgent(work.OnPort(work.Info, p))
		}
	}
}

// leaseTick is the step in which leases are kept.
const leaseTick = 250 * time.Millisecond

// changeFabric is the core as package statechange uses it.
type changeFabric struct{ *Core }

func (f changeFabric) IsAlive(id topo.NodeID) bool { return f.nodes[id].alive }
func (f changeFabric) ReadLater(p topo.PortID)     { f.background(p) }

// background reads PortInfo without counting that as unsettled.
func (c *Core) background(p topo.PortID) {
	c.ports[p].background = true
	c.q.MarkPort(work.Info, p)
}

// auditIdentity asks again for the identity of the node at the end of a link, and for the capabilities of a switch.
// Otherwise a value that was misread, or changed unseen, would be believed for ever.
func (c *Core) auditIdentity(p topo.PortID) {
	pt := &c.ports[p]
	switch {
	case pt.num == 0 && c.topo.Node(pt.node).Type == ib.NodeSwitch:
		c.nodes[pt.node].sw.Audit()
		c.q.MarkNode(work.Switch, pt.node)
	case c.tree.Probes(p) && c.topo.Peer(p) != topo.None:
		pt.host.Ask()
		c.q.MarkPort(work.Probe, p)
	}
}
