package sim

import (
	"fmt"

	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/hcaconf"
)

// Device has the optional capabilities of a node. The zero Device is plain: like those of other simulators.
type Device struct {
	// PartitionCap is the number of P_Keys that a port of a CA or router holds,
	// 64 by default.
	PartitionCap uint16

	// EnforcementCap is the number of P_Keys that an external port of a switch
	// holds, 64 by default.
	EnforcementCap uint16

	// VL15Buffers is the number of SMPs that a port holds for the agent of its
	// node while that is busy with others, 16 by default; see Fault.Work.
	VL15Buffers uint16

	// NoEnforcement is a switch that can check no P_Keys.
	NoEnforcement bool

	// PretendsEnforcement is a switch that accepts P_Key tables and claims to enforce them, but lets every packet pass.
	PretendsEnforcement bool

	// NoPKeyTraps is a switch that sends no trap 259: that one of its external ports
	// refused a P_Key shows in PortRcvConstraintErrors and PortXmitConstraintErrors alone.
	NoPKeyTraps bool

	// InboundBaseOnly is a switch whose ports look only at the 15 bits of the
	// base of P_Keys that come in, so that a limited member can call itself full
	// towards other limited ones.
	InboundBaseOnly bool

	// DualMKey is a device that accepts the old M_Key after it gets a new one, until the new one is set a second time. The
	// exact behaviour of devices is not public; MlnxExtendedPortInfo reports that they hold two.
	DualMKey bool

	// CC, VS and N2N are the management classes 0x21, 0x0A and 0x0C, which have
	// keys of their own.
	CC, VS, N2N guard.Support

	// NoticeQueue is how many notices an end port keeps until they are read with a
	// Get of Notice; 0: it has no queue, as most devices of today.
	NoticeQueue int

	// Trusts verifies the signatures on configurations of a channel adapter; nil: no signature is accepted. See
	// Fabric.ApplyConfig.
	Trusts hcaconf.Verifier

	// KeepsMKey and KeepsPKeys report which settings survive a reboot: M_Key, protection level and lease period, and the
	// P_Key tables of end ports.
	KeepsMKey, KeepsPKeys bool
}

// Modern is a device that can do all that is modelled, and holds two keys of
// every kind.
func Modern() Device {
	return Device{DualMKey: true, CC: guard.DualKeyed, VS: guard.DualKeyed, N2N: guard.DualKeyed}
}

// SetDevice makes a node another device, or with node "" all nodes that have
// not been made one by themselves. Capacities take effect when the node is
// next switched on, see Reboot.
func (f *Fabric) SetDevice(node string, d Device) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if node == "" {
		f.opts.Device = d
		return nil
	}
	n, err := f.find(node)
	if err != nil {
		return fmt.Errorf("set device: %w", err)
	}
	n.own = &d
	return nil
}

// model returns the device of a node.
func (n *node) model() *Device {
	if n.own != nil {
		return n.own
	}
	return &n.fabric.opts.Device
}

// inboundRule is how a switch judges P_Keys of packets that come in.
func (d *Device) inboundRule() pkeyRule {
	if d.InboundBaseOnly {
		return sameBase
	}
	return notAbove
}

func (d *Device) partitionCap() int {
	if d.PartitionCap != 0 {
		return int(d.PartitionCap)
	}
	return partitionCap
}

func (d *Device) enforcementCap() int {
	switch {
	case d.NoEnforcement:
		return 0
	case d.EnforcementCap != 0:
		return int(d.EnforcementCap)
	default:
		return partitionCap
	}
}

// pkeyCap is how many P_Keys a port holds.
func (p *port) pkeyCap() int {
	switch {
	case p.node.sw == nil:
		return p.node.model().partitionCap()
	case p.num == 0:
		return port0PartCap
	default:
		return p.node.model().enforcementCap()
	}
}
