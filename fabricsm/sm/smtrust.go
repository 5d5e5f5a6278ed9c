package sm

import (
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/topo"
)

// AllowedSM names another SM that this one works with.
type AllowedSM = smtrust.Allowed

// Sibling is another instance of the same service, at its place.
type Sibling = smtrust.Sibling

// trustFabric is the core as package smtrust uses it.
type trustFabric struct{ desk }

var _ smtrust.Fabric = trustFabric{}

func (f trustFabric) Own() topo.PortID           { return f.own() }
func (f trustFabric) LeadsOn(p topo.PortID) bool { return f.tree.Probes(p) }

func (f trustFabric) Root() topo.NodeID {
	if f.root == topo.None || !f.nodes[f.root].alive {
		return topo.None
	}
	return f.root
}

// newTrust returns which other subnet managers are trusted.
func newTrust(c *Core) smtrust.Trust {
	return smtrust.New(trustFabric{desk{c}}, &c.topo, smtrust.Options{
		Key: c.cfg.SMKey, Allowed: c.cfg.Election.Allowed, Siblings: c.cfg.Siblings, Controls: c.cfg.Controls.Managers,
	})
}
