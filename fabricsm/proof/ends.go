package proof

import "portcullis/fabricsm/ib"

// shared finds parties that meet without a switch: a GUID of one at the port of another, and adapters cabled to each other.
func (p *pass) shared() {
	for _, at := range p.beside {
		port := p.f.port(at)
		for k := range port.Aliases {
			mine, other := p.known(port.Owner), p.known(port.Aliases[k].Owner)
			if p.crosses(mine, other) {
				p.settle(mine, other, witness{meeting: &meeting{at, &port.Aliases[k]}})
				p.meets(at, other)
			}
		}
		if at.Port > 0 && p.f.Devices[at.Device].Type != ib.NodeSwitch {
			p.direct(at)
		}
	}
}

// known returns the party of an owner that was added before.
func (w *wiring) known(o Owner) party {
	if at, ok := w.parties[o.canonical()]; ok && w.uses[at] > 0 {
		return at
	}
	return noParty
}

// direct examines the packets of an adapter's port to another that it is cabled to.
func (p *pass) direct(at Place) {
	far, agreed := p.f.far(at)
	if !agreed || p.f.Devices[far.Device].Type == ib.NodeSwitch || !p.carries(at) && !p.carries(far) {
		return
	}
	a, b := p.known(p.f.port(at).Owner), p.known(p.f.port(far).Owner)
	if !p.crosses(a, b) {
		return
	}
	k := p.adapter(at, exact).and(p.adapter(far, matching))
	if k.raw = k.raw && p.assume != Adapters; !k.empty() {
		w := witness{meeting: &meeting{at: at}}
		w.key, w.raw = p.pick(k)
		p.settle(a, b, w)
		p.meets(at, b) // far is the sender of another call
	}
}

// adapter returns the packets that an adapter's port lets pass by a rule, without a switch.
func (p *pass) adapter(at Place, r rule) keys {
	port := p.f.port(at)
	if p.assume == Switches || port.Owner.Kind != Tenant {
		return everything
	}
	return p.table(port.PKeys, r)
}
