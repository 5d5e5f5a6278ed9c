package main

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

// mutes are the switches that send no trap 259.
type mutes struct {
	all   bool
	nodes []string
}

// apply makes the named switches mute, which are else such a device.
func (m *mutes) apply(l *netlist.Netlist, f *sim.Fabric, device sim.Device) error {
	device.NoPKeyTraps = true
	for _, name := range m.nodes {
		if n := l.Find(name); n == nil || n.Type != ib.NodeSwitch {
			return usageError{fmt.Errorf("--mute-switch %s: the netlist has no switch of this name", name)}
		}
		if err := f.SetDevice(name, device); err != nil {
			return err
		}
		if err := f.Reboot(name); err != nil {
			return err
		}
	}
	return nil
}
