package sm

import (
	"cmp"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// A device that has an M_Key does not answer a request without it, and keys are shown only where they belong. So a cable
// that leads to the wrong device, or back to us, shows nothing but silence. An event can report which device was looked for
// there, and which other link fell silent at about the same time.

// deadPair is the longest time between the silence of two links that are reported together. A cable that is moved is out of
// its place for longer than the tries of a probe.
const deadPair = 30 * time.Second

// maxDead bounds the silent links that are remembered to be reported with others.
const maxDead = 64

// silentLink is a link behind which a device with an M_Key was looked for in vain.
type silentLink struct {
	at    ib.Place
	since time.Time
}

// tellUnreachable reports, once, that no device answers behind a link.
func (c *Core) tellUnreachable(p topo.PortID) {
	if c.ports[p].told {
		return
	}
	c.ports[p].told = true
	at := c.topo.PlaceOf(p)
	e := &NodeUnreachable{Place: at, Keyed: c.lookedFor(p)}
	if c.ownCable(p) {
		c.ownUnreachable(e)
	}
	e.Where, e.Declared = c.law.Describe(at)
	if len(e.Keyed) > 0 {
		e.With = c.deadWith(at)
	}
	c.problem(fault.Key{Kind: fault.LinkDead, Place: at}, e)
}

// lookedFor lists the end ports under whose keys a probe asks behind a port.
func (c *Core) lookedFor(p topo.PortID) []ib.GUID {
	if !c.cfg.MKey.on() {
		return nil
	}
	place := c.topo.LinkEnd(p)
	out := c.mkeys.book.At(keys.MKey, place)
	if guid := c.mkeys.behind[place]; guid != 0 {
		out = append(out, guid)
	}
	kept := out[:0]
	for _, guid := range out {
		if c.keptKey(guid) {
			kept = append(kept, guid)
		}
	}
	return kept
}

// deadWith returns the link that fell silent before this one, if it is silent still, and remembers this one.
func (c *Core) deadWith(at ib.Place) (with ib.Place) {
	kept := c.deadLinks[:0]
	for _, d := range c.deadLinks {
		if !c.faults.Has(fault.Key{Kind: fault.LinkDead, Place: d.at}) || d.at == at || c.now.Sub(d.since) > deadPair {
			continue
		}
		kept = append(kept, d)
		with = d.at
	}
	if c.deadLinks = append(kept, silentLink{at, c.now}); len(c.deadLinks) > maxDead {
		c.deadLinks = c.deadLinks[1:]
	}
	return with
}

func (e *NodeUnreachable) String() string {
	switch {
	case e.Own != 0:
		return e.ownText()
	case e.GUID != 0:
		return fmt.Sprintf("node %v behind %v does not answer", e.GUID, e.Place)
	}
	at := e.Place.String()
	if e.Where != "" {
		at = fmt.Sprintf("%s (%v)", e.Where, e.Place)
	}
	text := fmt.Sprintf("nothing answers behind %s although the link is up", at)
	if len(e.Keyed) == 0 {
		return text
	}
	text += fmt.Sprintf("; %s belongs there, and whoever is there does not know its M_Key", cmp.Or(e.Declared, "port "+e.Keyed[len(e.Keyed)-1].String()))
	if !e.With.IsZero() {
		text += fmt.Sprintf("; the same is so at %v: two cables may be swapped, or one may join both ports", e.With)
	}
	return text + "; look where the cable leads; a device that was put there on purpose has to be reset, or: portcullis fabric keys move GUID " + e.Place.String()
}
