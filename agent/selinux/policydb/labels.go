package policydb

import (
	"net/netip"
)

// Label is a type and the categories of its level.
type Label struct {
	Type       string
	Categories []string // as the policy names them
}

// PKeyLabel labels a range of P_Keys of a subnet.
type PKeyLabel struct {
	Prefix    netip.Prefix
	Low, High uint32
	Label
}

// EndPortLabel labels a port of an adapter.
type EndPortLabel struct {
	Device string
	Port   uint32
	Label
}

// labels takes what has a label of its own, in the order of a policy: initial SIDs,
// file systems, ports, interfaces, nodes, uses of file systems, IPv6 nodes, P_Keys and
// end ports.
func (p *Policy) labels(r *reader) {
	named := func() {
		r.text(r.u32())
		r.label()
		r.label()
	}
	words := func(n int) func() {
		return func() {
			r.skip(n)
			r.label()
		}
	}
	use := func() {
		r.skip(1)
		r.text(r.u32())
		r.label()
	}
	pkey := func() {
		var l PKeyLabel
		prefix := [16]byte{}
		copy(prefix[:8], r.bytes(8))
		l.Prefix = netip.PrefixFrom(netip.AddrFrom16(prefix), 64)
		l.Low, l.High = r.u32(), r.u32()
		l.Label = p.labelOf(r)
		p.PKeys = append(p.PKeys, l)
	}
	endPort := func() {
		length, port := r.u32(), r.u32()
		device := r.text(length)
		p.EndPorts = append(p.EndPorts, EndPortLabel{device, port, p.labelOf(r)})
	}
	for _, take := range []func(){words(1), named, words(3), named, words(2), use, words(8), pkey, endPort} {
		r.each(take)
	}
}

func (p *Policy) labelOf(r *reader) Label {
	kind, l := r.label()
	t, ok := p.types[kind]
	if r.err == nil && !ok {
		r.fail("a label of type number %d, which the policy does not have", kind)
	}
	label := Label{Type: t.name}
	for _, c := range l.categories {
		label.Categories = append(label.Categories, p.categories[c+1])
	}
	return label
}
