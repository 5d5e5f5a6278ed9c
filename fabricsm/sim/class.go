package sim

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// keyClasses is how many classes with keys there are.
const keyClasses = 3

// support returns the support of a device for a class, and the index of the class in port.classes.
func (d *Device) support(c mad.Class) (place int, s guard.Support) {
	switch c {
	case mad.ClassCongestionControl:
		return 0, d.CC
	case mad.ClassVendorVS:
		return 1, d.VS
	case mad.ClassVendorN2N:
		return 2, d.N2N
	default:
		return 0, guard.Absent
	}
}

// classAgent returns the agent of p for a class, or nil if its device has none.
func (p *port) classAgent(c mad.Class) *guard.Agent {
	place, support := p.node.model().support(c)
	if support == guard.Absent {
		return nil
	}
	if a := p.classes[place]; a != nil {
		a.Support = support
		return a
	}
	device := guard.Device{Switch: p.node.sw != nil, Ports: len(p.node.ports)}
	p.classes[place] = guard.NewAgent(c, support, device)
	return p.classes[place]
}
