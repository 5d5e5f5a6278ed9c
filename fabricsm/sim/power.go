package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// Reboot switches a node off and on again. The node loses its settings except those that its Device keeps. Its links go
// down and come up, and the switches at the other ends report that. Settings of an adapter that wait for the next boot come
// into force.
func (f *Fabric) Reboot(node string) error {
	return f.change("reboot", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		n.powerOff()
		n.powerOn()
		return nil
	})
}

// PowerOff takes the power off a node: its links go down, its agents and the
// programs at it are cut off, until PowerOn. It is idempotent.
func (f *Fabric) PowerOff(node string) error {
	return f.change("power off", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		n.powerOff()
		return nil
	})
}

// PowerOn puts the power on a node again, see Reboot. One that is on stays as
// it is.
func (f *Fabric) PowerOn(node string) error {
	return f.change("power on", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		if n.off {
			n.powerOn()
		}
		return nil
	})
}

func (n *node) powerOff() {
	n.off, n.traps = true, nil
	n.smps.empty()
	for _, p := range n.ports {
		if p == nil {
			continue
		}
		if far := p.peer; p.drop() {
			far.noteLinkChange()
		}
	}
	for _, s := range n.fabric.stations {
		if s != nil && s.at.node == n {
			s.empty()
		}
	}
}

func (n *node) powerOn() {
	n.off = false
	n.reset(&netlist.Node{Ports: make([]netlist.Port, len(n.ports))})
	n.trainAll()
}

// beginTraining starts the training that takes Options.Training until the link is up. A change of cable, power or state in
// between ends it.
func (p *port) beginTraining(far *port) {
	f := p.node.fabric
	f.trainings++
	number := f.trainings
	for _, end := range []*port{p, far} {
		end.training = number
		end.info.PortPhysicalState = ib.PhysCfgTraining
		end.commit()
	}
	f.later.add(f.now+f.opts.Training, func() {
		for _, end := range []*port{p, far} {
			if end.training == number && end.info.PortPhysicalState == ib.PhysCfgTraining {
				end.info.PortPhysicalState = ib.PhysPolling
				end.commit()
			}
		}
		if p.training == number && far.training == number && p.cable == far && p.linkUp() {
			p.noteLinkChange()
			far.noteLinkChange()
		}
	})
}
