package isolation

import (
	"fmt"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// Opened returns packets that would pass between parties if something else were declared, and that do not pass as things are: from the
// tables that were read, with the owners that another Intent declares. The list is bounded, and total says how many ordered pairs of
// parties there are. What was not read opens nothing.
func (p *Proven) Opened(planned *Intent) (examples []v1.IsolationExample, total int, err error) {
	now, err := p.under(p.in)
	if err != nil {
		return nil, 0, err
	}
	then, err := p.under(planned)
	if err != nil {
		return nil, 0, err
	}
	for _, pair := range then.Open(proof.Both) {
		if !then.Passes(proof.Both, pair) || now.Passes(proof.Both, pair) {
			continue
		}
		if total++; total > maxExamples {
			continue
		}
		c, err := then.Explain(proof.Both, pair)
		if err != nil {
			return nil, 0, fmt.Errorf("show a packet that would pass: %w", err)
		}
		examples = append(examples, example(&c))
	}
	return examples, total, nil
}

// under proves what was read with the owners that an Intent declares.
func (p *Proven) under(in *Intent) (*proof.Result, error) {
	f := *p.found.Fabric
	f.Devices = slices.Clone(f.Devices)
	for i := range f.Devices {
		d := &f.Devices[i]
		d.Ports = slices.Clone(d.Ports)
		if d.Type != ib.NodeSwitch {
			continue
		}
		d.Owner = in.switchOwner(&f, d)
		for num := 1; num < len(d.Ports); num++ {
			d.Ports[num].Owner = proof.Owner{}
			if in.spares[ib.Place{Switch: d.GUID, Port: ib.PortNum(num)}] {
				d.Ports[num].Owner.Kind = proof.Spare
			}
		}
	}
	for i := range p.found.Ends {
		e := &p.found.Ends[i]
		d := &f.Devices[e.Port.Device]
		port := &d.Ports[e.Port.Port]
		port.Owner = in.owner(e.At, reader.Identity{Type: d.Type, Node: d.GUID, Port: e.GUID})
		port.Aliases = slices.Clone(port.Aliases)
		for i := range port.Aliases {
			port.Aliases[i].Owner = in.issuedTo(port.Aliases[i].GUID, port.Owner)
		}
	}
	if r, _, ok := p.result.Again(&f); ok {
		return r, nil
	}
	r, err := proof.Prove(&f)
	if err != nil {
		return nil, fmt.Errorf("prove isolation as it would be: %w", err)
	}
	return r, nil
}

// switchOwner returns the owner of a switch, wherever it is connected: a switch at one place that is declared for a host, or spare, is undeclared.
func (in *Intent) switchOwner(f *proof.Fabric, d *proof.Device) proof.Owner {
	is := reader.Identity{Type: d.Type, Node: d.GUID}
	owner := in.owner(ib.Place{}, is)
	for num := range d.Ports {
		to := d.Ports[num].Cable
		if to.Port == 0 || to.Device < 0 || to.Device >= len(f.Devices) || f.Devices[to.Device].Type != ib.NodeSwitch {
			continue
		}
		if o := in.owner(ib.Place{Switch: f.Devices[to.Device].GUID, Port: to.Port}, is); o.Kind != proof.Infrastructure {
			owner = o
		}
	}
	return owner
}
