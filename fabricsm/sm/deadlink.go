package sm

import (
	"cmp"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// A device that has an M_Key does not answer a request without it, and keys are shown only where they belong. So a cable
// that leads to the wrong device, or back to us, shows nothing but silence. An event can report which device was looked for
// there, and which other link fell silent at about the same time.

// ReportDead reports, once, that no device answers behind a link.
func (f failureActions) ReportDead(p topo.PortID) {
	c := f.Core
	if c.ports[p].told {
		return
	}
	c.ports[p].told = true
	at := c.topo.PlaceOf(p)
	e := &NodeUnreachable{Place: at, Keyed: c.mkeys.LookedFor(p)}
	if c.mkeys.Places().IsOwnCable(p) {
		e.Own = c.cfg.PortGUID
		if c.mkeys.IsOn() {
			a, keyed := c.mkeys.Attachment()
			e.Neighbour, e.By, e.Switches = a.GUID, a.By, keyed
		}
	}
	e.Where, e.Declared = c.law.Describe(at)
	if len(e.Keyed) > 0 {
		e.With = c.deadLinks.Add(at, c.now, func(at ib.Place) bool { return c.faults.Has(fault.Key{Kind: fault.LinkDead, Place: at}) })
	}
	c.problem(fault.Key{Kind: fault.LinkDead, Place: at}, e)
}

// maxNamed bounds the switches that a message about our own port names.
const maxNamed = 8

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
