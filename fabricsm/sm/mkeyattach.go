package sm

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// The subnet manager may start on another adapter than before, on another machine too.
// The switch that this adapter is cabled to answers nothing before it is shown its M_Key,
// so the key has to be shown to a device that has proven nothing. No request can prove
// more: an answer holds no secret that the request did not hold. So the place has to be
// known from elsewhere, and only the key of the one switch that belongs there is shown.
// Where nothing says which switch that is, none is shown, whatever answers claims to be.

// neighbour says which switch our own port is cabled to, and what says so.
type neighbour struct {
	guid ib.GUID // port GUID of the switch's port 0; 0: nothing says it
	by   string
}

// Sources from which it is known which switch our own port is cabled to.
const (
	bySetting  = "the setting attached_to"
	byTopology = "the declared topology"
	byState    = "the saved state"
	byImport   = "the file neighbors of the import"
)

// neighbour returns the switch that our own port is cabled to by the first that says
// so: the operator's setting; the topology, where places are declared; the place at which
// this adapter was given its M_Key; the switch that an earlier run found behind this
// port; the import; a topology that is not enforced.
func (c *Core) neighbour() neighbour {
	own := c.topo.LinkEnd(c.rootPort)
	if guid := c.switchPort(c.cfg.MKey.AttachedTo); guid != 0 {
		return neighbour{guid, bySetting}
	}
	declared := neighbour{c.declaredNeighbour(own), byTopology}
	if declared.guid != 0 && c.keyPlaces() == PlacesDeclared {
		return declared
	}
	if r := c.ring(c.rootPort); r != nil {
		if guid := c.switchPort(r.Record().Place.Switch); guid != 0 {
			return neighbour{guid, byState}
		}
	}
	if guid := c.mkeys.behind[own]; guid != 0 {
		return neighbour{guid, byState}
	}
	if guid := c.cfg.MKey.Import.neighbour(c.topo.GUIDOf(c.rootPort), own.Port); guid != 0 {
		return neighbour{guid, byImport}
	}
	return declared // with 0 if nothing says it
}

// declaredNeighbour returns the end port of the switch that the declared topology has
// behind our own port, 0 for none.
func (c *Core) declaredNeighbour(own ib.Place) ib.GUID {
	if !c.law.IsOn() {
		return 0
	}
	spec := c.law.Spec()
	peer := spec.Belongs(topospec.EndAt(own))
	if id := spec.DeviceByGUID(peer.GUID); id == topospec.None || spec.Device(id).Kind != topospec.KindSwitch {
		return 0
	}
	return c.switchPort(peer.GUID)
}

// switchPort returns the GUID of port 0 of a switch by its node GUID. They are the same
// unless it was saved otherwise.
func (c *Core) switchPort(node ib.GUID) ib.GUID {
	if guid := c.mkeys.behind[ib.Place{Switch: node}]; guid != 0 && node != 0 {
		return guid
	}
	return node
}

// saveSwitchPort saves the port GUID of a switch that differs from its node GUID: a place
// has only the node GUID, and the key goes by the port GUID.
func (c *Core) saveSwitchPort(p topo.PortID) {
	node, guid := c.topo.NodeGUID(c.ports[p].node), c.topo.GUIDOf(c.topo.EntryPort(p))
	if at := (ib.Place{Switch: node}); guid != 0 && guid != c.switchPort(node) {
		c.mkeys.seenBehind(at, guid)
		c.save(Fact{Kind: FactBehind, GUID: node, Behind: guid})
	}
}

// ownCable reports whether a port is our own, and that of an adapter.
func (c *Core) ownCable(p topo.PortID) bool {
	return p != topo.None && p == c.rootPort && !c.topo.IsExternal(p) && p == c.own()
}

// bindOwn saves at which switch port our own adapter is, once that switch has proven to be
// the one: so the adapter is found there when the subnet manager runs on another one.
func (c *Core) bindOwn() {
	p := c.own()
	if !c.cfg.MKey.on() || !c.ownCable(p) || c.topo.Peer(p) == topo.None || !c.provenSwitch(c.topo.Peer(p)) {
		return
	}
	r, at := c.ring(p), c.topo.PlaceOf(p)
	if r == nil || at.IsZero() || len(c.tryOf(r)) == 0 {
		return
	}
	if rec := r.Record(); rec.Place != at {
		c.mkeys.book.Move(keys.MKey, rec.GUID, at)
		c.saveKey(r)
		c.q.MarkPort(work.Info, p)
	}
}

// maxNamed bounds the switches that a message about our own port names.
const maxNamed = 8

// ownUnreachable describes why nothing answers at the other end of our own cable, and
// what an operator can do.
func (c *Core) ownUnreachable(e *NodeUnreachable) {
	e.Own = c.cfg.PortGUID
	if !c.cfg.MKey.on() {
		return
	}
	a := c.neighbour()
	e.Neighbour, e.By = a.guid, a.by
	for guid := range c.mkeys.switches {
		if r := c.mkeys.book.Ring(keys.MKey, guid); r != nil && len(c.tryOf(r)) > 0 {
			e.Switches = append(e.Switches, guid)
		}
	}
	slices.Sort(e.Switches)
}

func (e *NodeUnreachable) ownText() string {
	text := fmt.Sprintf("nothing answers behind the own port of the subnet manager, %v, although its link is up", e.Own)
	switch {
	case e.Neighbour != 0:
		return text + fmt.Sprintf("; %s has it at switch %v, and the device there does not know that switch's M_Key; look where the cable leads: if to another switch, set fabric.attached_to (portcullisd sm --attached-to) to the GUID of that one; if to this one, it has a key that is not in the state",
			e.By, e.Neighbour)
	case len(e.Switches) == 0:
		return text
	}
	names := make([]string, 0, maxNamed)
	for _, g := range e.Switches[:min(len(e.Switches), maxNamed)] {
		names = append(names, g.String())
	}
	more := ""
	if n := len(e.Switches) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return text + fmt.Sprintf("; nothing says which switch it is cabled to, so no M_Key is shown there; look where the cable leads, and set fabric.attached_to (portcullisd sm --attached-to) to the GUID of that switch; those with keys are %s%s",
		strings.Join(names, ", "), more)
}
