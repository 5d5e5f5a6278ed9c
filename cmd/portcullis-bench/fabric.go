package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// fabric is what is brought up.
type fabric struct {
	hosts    int
	switches int
	cables   int
	far      int    // cabled ports of switches
	file     []byte // the netlist
	list     *netlist.Netlist

	hostNodes []int           // by host: index in list.Nodes
	hostNames map[string]bool // names of hosts
}

func newFabric(hosts int) (*fabric, error) {
	list, err := netlist.FatTree3(netlist.Shape{Hosts: hosts})
	if err != nil {
		return nil, err
	}
	f := &fabric{hosts: hosts, list: list, hostNames: make(map[string]bool)}
	ends := 0
	for i := range list.Nodes {
		n := &list.Nodes[i]
		if n.Type == ib.NodeCA {
			f.hostNodes = append(f.hostNodes, i)
			f.hostNames[n.Name] = true
		}
		for _, p := range n.Ports[1:] {
			if p.Peer == "" {
				continue
			}
			ends++
			if n.Type == ib.NodeSwitch {
				f.far++
			}
		}
		if n.Type == ib.NodeSwitch {
			f.switches++
		}
	}
	f.cables = ends / 2
	var b bytes.Buffer
	if _, err := list.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write netlist: %w", err)
	}
	f.file = b.Bytes()
	return f, nil
}

// sample is one run.
type sample struct {
	wall   float64 // seconds from the start of the process
	cpu    float64 // seconds, all threads
	simCPU float64 // seconds of the simulator meanwhile
	smps   uint64  // requests sent
	memory memory
	load   float64 // of the machine over the last minute, before the run

	repeated uint64 // of smps, as one before was not answered in time
}

// once brings the fabric up in a fresh simulator by a fresh process.
func (f *fabric) once(ctx context.Context, m *manager, program string) (s sample, err error) {
	lab, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: f.file})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lab.Stop()) }()
	load, err := loadAverage()
	if err != nil {
		return s, err
	}
	before, err := cpuOf(lab.PID())
	if err != nil {
		return s, err
	}
	s, err = m.run(ctx, lab, program)
	if err != nil {
		return s, err
	}
	after, err := cpuOf(lab.PID())
	if err != nil {
		return s, err
	}
	s.load, s.simCPU = load, after-before
	return s, f.judge(ctx, lab, 0)
}

// judge has iblinkinfo, which knows neither of us, count active switch ports:
// all that are cabled but those that are down.
func (f *fabric) judge(ctx context.Context, lab *ibsimlab.Lab, down int) error {
	out, err := lab.Diag(ctx, "sm", "iblinkinfo", "--switches-only", "-l")
	if err != nil {
		return err
	}
	active := 0
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "Active/") {
			active++
		}
	}
	if active != f.far-down {
		return fmt.Errorf("iblinkinfo sees %d active switch ports, want %d", active, f.far-down)
	}
	return nil
}
