package sim

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// Fault is how badly packets fare that are for a node: for its agents or for
// the stations at it. Packets that a switch only forwards are not touched.
type Fault struct {
	Silent    bool          // the agents of the node do not answer
	Loss      float64       // share of packets that get lost, 0 to 1
	Duplicate float64       // share of packets that arrive twice, 0 to 1
	Delay     time.Duration // packets arrive after an Advance of so much

	// Work is the time for which an agent of a slow node works on each SMP.
	// Others wait in the buffers of the port they came by; when those are full
	// they are dropped, which the port counts as VL15Dropped.
	Work time.Duration
}

// SetFault sets the fault of one node, or with node "" that of all nodes that
// have none of their own.
func (f *Fabric) SetFault(node string, fault Fault) error {
	return f.ChangeFault(node, func(old *Fault) { *old = fault })
}

// ChangeFault changes the fault of one node, or of all nodes, as SetFault does. change gets the current fault of the node.
func (f *Fabric) ChangeFault(node string, change func(*Fault)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if node == "" {
		f.countFault(&f.fault, -1)
		change(&f.fault)
		f.countFault(&f.fault, 1)
		return nil
	}
	n, err := f.find(node)
	if err != nil {
		return fmt.Errorf("set fault: %w", err)
	}
	fault := n.activeFault()
	if n.fault != nil {
		f.countFault(n.fault, -1)
	}
	change(&fault)
	n.fault = &fault
	f.countFault(n.fault, 1)
	return nil
}

// countFault adds a fault to the counts, or removes it.
func (f *network) countFault(fault *Fault, by int) {
	if *fault != (Fault{}) {
		f.faults += by
	}
	if fault.Delay > 0 || fault.Work > 0 {
		f.timed += by
	}
}

// IsTimed reports whether packets may wait for the fabric's time because of a Fault. A caller that follows a clock then
// advances the time in small steps.
func (f *Fabric) IsTimed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.timed > 0
}

func (n *node) activeFault() Fault {
	switch {
	case n.fabric.faults == 0:
		return Fault{}
	case n.fault != nil:
		return *n.fault
	default:
		return n.fabric.fault
	}
}

// change runs a function that changes the fabric, moves the packets that it causes and wakes the stations that they reach.
func (f *Fabric) change(what string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.run()
	f.settle()
	return nil
}

// Unlink pulls the cable out of a port. The link goes down at both ends.
func (f *Fabric) Unlink(node string, num ib.PortNum) error {
	return f.change("unlink", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		if p.cable == nil {
			return fmt.Errorf("port %d of %q has no cable", num, p.node.name)
		}
		p.unplug()
		return nil
	})
}

// Relink connects two ports without cables. The link trains.
func (f *Fabric) Relink(node string, num ib.PortNum, peer string, peerNum ib.PortNum) error {
	return f.change("relink", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		far, err := f.findPort(peer, peerNum)
		if err != nil {
			return err
		}
		return plug(p, far)
	})
}

// SetGUIDs sets other GUIDs of a node, as new firmware or a forger does. The ports of a CA get the GUIDs that follow.
func (f *Fabric) SetGUIDs(node string, guid, systemImage ib.GUID) error {
	return f.change("set GUIDs", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		n.guid, n.systemGUID = guid, systemImage
		for _, p := range n.ports {
			if p == nil {
				continue
			}
			p.guid = guid
			if n.sw == nil {
				p.guid += ib.GUID(p.num)
			}
			p.encodeNodeInfo()
			p.guids.setPort(p.guid)
		}
		return nil
	})
}
