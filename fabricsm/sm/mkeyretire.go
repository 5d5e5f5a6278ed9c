package sm

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// RetireKey says that a device has left permanently: its M_Key is destroyed, and no key of an epoch that it had is made
// again. A device that is seen keeps its key: without it the device would be out of reach. A device that comes back with
// that key is never shown another one's; it stays out until it is reset.
type RetireKey struct {
	GUID ib.GUID // port GUID, of a switch that of port 0
}

// KeyRetired says that the M_Key of a device which left was destroyed.
type KeyRetired struct {
	GUID  ib.GUID
	Place ib.Place // where its key was bound to; zero: a switch
}

func (*RetireKey) input()        {}
func (*KeyRetired) FabricEvent() {}

func (e *KeyRetired) String() string {
	at := ""
	if !e.Place.IsZero() {
		at = fmt.Sprintf(", which was at %v", e.Place)
	}
	return fmt.Sprintf("the M_Key of %v%s is destroyed: an operator said that it left for good", e.GUID, at)
}

// retireKey destroys the key of a device that is not there.
func (c *Core) retireKey(in *RetireKey) {
	r := c.mkeys.book.Ring(keys.MKey, in.GUID)
	if !c.cfg.MKey.on() || r == nil || c.cfg.Weakness.KeepsRetired {
		return
	}
	rec := r.Record()
	if rec.Retired {
		c.noteRetired(in.GUID)
		return
	}
	if p, known := c.byPort[in.GUID]; known && c.nodes[c.ports[p].node].alive {
		c.event(&KeyProblem{GUID: in.GUID, Place: c.topo.PlaceOf(p), Reason: "its key is not destroyed, for it is seen: take it away first"})
		return
	}
	c.mkeys.book.Retire(keys.MKey, in.GUID)
	c.saveKey(r)
	c.expose(in.GUID, notExposed)
	c.forgetLease(in.GUID)
	c.faults.Clear(fault.Key{Kind: fault.NoKey, GUID: in.GUID})
	c.event(&KeyRetired{GUID: in.GUID, Place: rec.Place})
	c.noteRetired(in.GUID)
	c.disturb()
	if sp := c.topo.SwitchPortAt(rec.Place); sp != topo.None && c.topo.Peer(sp) == topo.None {
		c.q.MarkPort(work.Probe, sp) // the device there now may have waited behind that key
	}
}

// maxRetired bounds the devices that a view lists as retired.
const maxRetired = 64

// noteRetired shows in views that the key of a device is destroyed. Views share the
// list.
func (c *Core) noteRetired(guid ib.GUID) {
	list := append(slices.Clone(c.mkeys.retired), guid)
	c.mkeys.retired = list[max(0, len(list)-maxRetired):]
	c.viewDue = true
}
