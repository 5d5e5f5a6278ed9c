package conf

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// rules turns definitions into rules, and rejects impossible ones.
func (p *parser) rules() *Rules {
	p.number()
	r := &Rules{}
	index := map[ib.PKey]int{}
	for i := range p.defs {
		d := &p.defs[i]
		p.multicast(d, r)
		if d.pkey == ib.DefaultPKeyLimited {
			p.inDefault(d)
			continue
		}
		if d.indx0 {
			p.refuse(Refusal{Line: d.line, Text: "indx0", nth: -1}, "indx0: index 0 of a P_Key table is the default partition's; leave the flag out")
		}
		at, known := index[d.pkey]
		if !known {
			at = len(r.Partitions)
			index[d.pkey] = at
			r.Partitions = append(r.Partitions, Partition{Name: d.name, PKey: d.pkey.Full()})
		}
		part := &r.Partitions[at]
		if part.Name != d.name {
			p.notice(d.line, "%q and %q have the P_Key %v and are one partition", short(part.Name), short(d.name), d.pkey)
		}
		part.Who = slices.Grow(part.Who, len(d.ports))
		for i := range d.ports {
			if e := &d.ports[i]; p.possible(e) {
				part.Who = append(part.Who, e.who)
			}
		}
	}
	for i := range r.Partitions {
		r.Partitions[i].Who = once(r.Partitions[i].Who)
	}
	r.Notices = p.notices
	return r
}

// once leaves out ports that were named before. Most files name ports in the order of their GUIDs, in which that is seen
// without a list of all.
func once(who []Who) []Who {
	ascending := true
	for i := 1; i < len(who) && ascending; i++ {
		a, b := who[i-1], who[i]
		ascending = a.Group == OnePort && b.Group == OnePort && a.GUID < b.GUID
	}
	if ascending {
		return who
	}
	seen := make(map[Who]struct{}, len(who))
	return slices.DeleteFunc(who, func(w Who) bool {
		_, again := seen[w]
		seen[w] = struct{}{}
		return again
	})
}

// number sets the P_Keys of definitions without one. It is that of an earlier definition with their name, or the lowest
// that the file does not mention anywhere: a key that a later line assigns must not be used for another partition.
func (p *parser) number() {
	taken := map[ib.PKey]bool{ib.DefaultPKeyLimited: true}
	for i := range p.defs {
		taken[p.defs[i].pkey] = true
	}
	named := map[string]ib.PKey{"Default": ib.DefaultPKeyLimited}
	next := ib.PKey(1)
	for i := range p.defs {
		d := &p.defs[i]
		if d.pkey == 0 {
			d.pkey = named[d.name]
		}
		if d.pkey == 0 {
			for taken[next] && next < ib.DefaultPKeyLimited {
				next++
			}
			if next == ib.DefaultPKeyLimited {
				p.wrong(d.line, "no P_Key is left for partition %q", short(d.name))
				continue
			}
			d.pkey, taken[next] = next, true
			p.notice(d.line, "partition %q gets the P_Key %v; name one to keep it when the file changes", short(d.name), next)
		}
		if _, ok := named[d.name]; !ok && d.name != "" {
			named[d.name] = d.pkey
		}
	}
}

// inDefault accepts rules for the default partition that hold anyway.
func (p *parser) inDefault(d *definition) {
	for _, e := range d.ports {
		switch {
		case e.who.Group == nobody:
		case e.who.Group == Self && e.as != full:
			p.refuse(e.refusal("SELF=full", false), "%q: the Subnet Manager is always a full member of the default partition; write SELF=full", e.text)
		case e.who.Group == allSwitches && e.as == full:
			p.refuse(e.refusal("", false), "%q: any host could send MADs to switches; write =limited, or have the configuration say so where switches report failed links to each other: fabric.keys.n2n_switch_membership", e.text)
		case e.who.Group != Self && e.as != limited:
			p.refuse(e.refusal(limitedInstead(&e), true), "%q: only the Subnet Manager is a full member of the default partition, or every host could reach every other; write =limited", e.text)
		}
	}
}

// possible rejects members of other partitions that this SM cannot make.
func (p *parser) possible(e *entry) bool {
	switch {
	case e.who.Group == nobody:
		return false
	case e.who.Group == allPorts:
		p.refuse(e.refusal(endPortsInstead(e), e.as != full), "%q: switches are not made members of partitions; write ALL_CAS=full, and ALL_ROUTERS=full if you have any", e.text)
	case e.who.Group == allSwitches:
		p.refuse(e.refusal("", false), "%q: switches are not made members of partitions; leave them out", e.text)
	case e.as != full:
		p.refuse(e.refusal("", true), "%q: %v members are supported in the default partition only; write =full, or defmember=full, if members may all talk to each other", e.text, e.as)
	default:
		return true
	}
	return false
}
