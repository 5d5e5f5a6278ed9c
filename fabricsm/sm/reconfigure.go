package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Policy is the part of Config that may change while a Core runs.
type Policy struct {
	Ports   portpolicy.Config // but for LMCPort0, which stays as it was
	QoS     qos.Options
	Health  health.Config // devices in quarantine stay there for their time
	Allowed []AllowedSM   // of ElectionConfig
	// Engines, if not nil, replace those of Config, and tables are computed again.
	Engines []route.Engine
}

// Policy returns the part of a configuration that may change while a Core runs.
func (c *Config) Policy() Policy {
	return Policy{Ports: c.Ports, QoS: c.QoS, Health: c.Health, Allowed: c.Election.Allowed, Engines: c.Engines}
}

// PolicySet is the input by which a Policy replaces the one before. One that
// Config.Check refuses changes nothing.
type PolicySet struct{ Policy Policy }

func (*PolicySet) input() {}

// setPolicy takes another policy. It looks at all ports, where ports are
// concerned: this is no event of the fabric.
func (c *Core) setPolicy(in *Policy) {
	was, now := c.cfg, c.cfg
	lmc := was.Ports.LMCPort0
	now.Ports, now.QoS, now.Health, now.Election.Allowed = in.Ports, in.QoS, in.Health, in.Allowed
	now.Ports.LMCPort0 = lmc
	if in.Engines != nil {
		now.Engines = in.Engines
	}
	if now = now.withDefaults(); now.Check() != nil {
		return
	}
	c.cfg = now
	c.trust.SetAllowed(now.Election.Allowed)
	c.disturb()
	if !was.Ports.Equal(&now.Ports) {
		c.newPortPolicy()
	}
	if !was.QoS.Equal(now.QoS) {
		c.lanes.Renew()
		c.touchAll()
	}
	if in.Engines != nil {
		c.routing.Renew()
	}
}

// newPortPolicy looks at all ports again under other rules. One that a rule held
// down is switched on when none does any longer.
func (c *Core) newPortPolicy() {
	before := c.rules
	c.rules = portpolicy.New(&c.topo, &c.cfg.Ports)
	lanes := false
	for i := range c.ports {
		p := topo.PortID(i)
		pt := &c.ports[i]
		if !c.nodes[pt.node].alive || !pt.known {
			continue
		}
		if before.SwitchesOff(p) && !c.rules.SwitchesOff(p) && !c.dark(p) {
			pt.quarantine.Reopen()
		}
		c.links.NoteAgain(p, linkUp(&pt.info))
		had := c.topo.Port(p).VLCap
		c.copyPort(p)
		lanes = lanes || had != c.topo.Port(p).VLCap
		c.touch(p)
	}
	for id := range c.nodes {
		if c.nodes[id].alive && c.topo.Node(topo.NodeID(id)).Type == ib.NodeSwitch {
			c.q.MarkNode(work.Switch, topo.NodeID(id))
		}
	}
	if lanes {
		c.routing.Want()
	}
}
