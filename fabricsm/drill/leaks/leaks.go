// Package leaks plays what makes a fabric leak after the Subnet Manager had set it right: tables and settings change past it. The proof of
// isolation is to find the packet that passes, and the change that it names is to end that. Two drills start a Subnet Manager that discloses
// ports of others to hosts: the examination of its answers is to find that.
//
// The fabric is the judge: a packet is sent before, with the leak, and after the cure.
package leaks

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim"
)

// Drills lists the drills.
func Drills() []drill.Drill {
	return []drill.Drill{
		{ID: "T161", Threat: "have a switch port no longer check packets that come in, unseen", Play: inbound},
		{ID: "T162", Threat: "have a switch port no longer check packets that go out, before a host that holds the P_Key of another tenant", Play: outbound},
		{ID: "T163", Threat: "have a P_Key of another tenant left over at a host and its switch port", Play: leftOver},
		{ID: "T164", Threat: "have two tenants be full members of the default partition", Play: fullDefault},
		{ID: "T165", Threat: "put an adapter that is not declared into a tenant's partition", Play: undeclared},
		{ID: "T166", Threat: "use a port that is declared unused and was left open", Play: spare},
		{ID: "T167", Threat: "have a switch forward a group of one tenant to a host of another one that holds its P_Key", Play: group},
		{ID: "T168", Threat: "hold the GUID of another tenant's port as an alias", Play: alias},
		{ID: "T169", Threat: "have a client of a shared partition become a full member, and so reach other clients", Play: shared},
		{ID: "T170", Threat: "have subnet administration return paths to ports of other tenants, unseen", Play: disclosedPaths},
		{ID: "T171", Threat: "have subnet administration return records to hosts that the enhanced trust model keeps from them, unseen", Play: disclosedNodes},
	}
}

var (
	tenantA = proof.Owner{Kind: proof.Tenant, Name: "A"}
	tenantB = proof.Owner{Kind: proof.Tenant, Name: "B"}
)

// leak is a leak between two parties.
type leak struct {
	what   string // as a sentence
	from   proof.Owner
	to     proof.Owner
	assume proof.Assumption // under which the two are no longer isolated
	plant  func(b *bed)
	passes func(b *bed) bool // whether a packet passes, by the fabric
}

// play plants a leak, has it found, makes the changes that are named, and looks whether packets still pass.
func (l *leak) play(s *drill.Scene, o drill.SiteOptions) {
	b := newBed(s, o)
	b.Victim("h1", "h5")
	_, before := b.read()
	s.Check(before.Pair(l.from, l.to)[l.assume] != proof.Leaks, "it leaks already")
	s.Check(l.passes == nil || !l.passes(b), "a packet passes already")
	b.Attack()
	s.Tried("%s", l.what)
	l.plant(b)
	s.Check(l.passes == nil || l.passes(b), "no packet passes, so nothing is there to be found")
	const mostCures = 6
	for n := 0; ; n++ {
		f, now := b.read()
		if n == 0 && !s.Check(now.Pair(l.from, l.to)[l.assume] == proof.Leaks, drill.Unreported+": the proof says %v of the two", now.Pair(l.from, l.to)) {
			return
		}
		ways := slices.DeleteFunc(now.Open(l.assume), func(p proof.Pair) bool {
			return !(p.From == l.from && p.To == l.to || p.From == l.to && p.To == l.from)
		})
		if len(ways) == 0 {
			break
		}
		if !s.Check(n < mostCures, "after %d changes that the proof named, packets still pass", n) {
			return
		}
		c, err := now.Explain(l.assume, ways[0])
		s.Must(err)
		s.Reported("a packet passes from %v to %v: %s; %s", c.From, c.To, hops(&c), c.Change)
		b.cure(f, c.Change)
	}
	b.Isolated(0, "no packet passes after the changes that the proof named", func() bool { return l.passes == nil || !l.passes(b) })
	s.Stopped("the proof finds the packet and names the change that ends it: %s", strings.Join(slices.Sorted(maps.Keys(b.cured)), "; "))
}

func hops(c *proof.CounterExample) string {
	var all []string
	for _, h := range c.Hops {
		all = append(all, fmt.Sprintf("%s (%s)", h.Device, strings.Join(h.Passed, ", ")))
	}
	return strings.Join(all, ", ")
}

// delivers returns whether a packet of a host reaches another one.
func delivers(from, to string, key ib.PKey) func(*bed) bool {
	return func(b *bed) bool { return b.Send(from, to, key).Fate == sim.Delivered }
}

// inbound is T161.
func inbound(s *drill.Scene) {
	(&leak{
		what: "inbound enforcement is off at the switch port of h1, whose root sends with the P_Key of tenant B",
		from: tenantA, to: tenantB, assume: proof.Switches, passes: delivers("h1", "h2", drill.KeyB),
		plant: func(b *bed) {
			at := b.SwitchPort("h1", 1)
			b.portInfo(at.Node, at.Port, func(p *mad.PortInfo) { p.PartitionEnforcementInbound = false })
		},
	}).play(s, drill.SiteOptions{})
}

// outbound is T162.
func outbound(s *drill.Scene) {
	(&leak{
		what: "outbound enforcement is off at the switch port of h2, whose adapter holds the P_Key of tenant A",
		from: tenantA, to: tenantB, assume: proof.Both, passes: delivers("h1", "h2", drill.KeyA),
		plant: func(b *bed) {
			at := b.SwitchPort("h2", 1)
			b.portInfo(at.Node, at.Port, func(p *mad.PortInfo) { p.PartitionEnforcementOutbound = false })
			b.entry(drill.Port("h2"), 9, drill.KeyA)
		},
	}).play(s, drill.SiteOptions{})
}

// leftOver is T163.
func leftOver(s *drill.Scene) {
	(&leak{
		what: "h2 of tenant B and its switch port hold the P_Key of tenant A",
		from: tenantA, to: tenantB, assume: proof.Both, passes: delivers("h1", "h2", drill.KeyA),
		plant: func(b *bed) { b.stray("h2", drill.KeyA) },
	}).play(s, drill.SiteOptions{})
}

// fullDefault is T164.
func fullDefault(s *drill.Scene) {
	(&leak{
		what: "h1 of tenant A and h2 of tenant B, and their switch ports, are full members of the default partition",
		from: tenantA, to: tenantB, assume: proof.Both, passes: delivers("h1", "h2", ib.DefaultPKeyFull),
		plant: func(b *bed) { b.stray("h1", ib.DefaultPKeyFull); b.stray("h2", ib.DefaultPKeyFull) },
	}).play(s, drill.SiteOptions{})
}

// undeclared is T165.
func undeclared(s *drill.Scene) {
	(&leak{
		what: "h3, which belongs to no tenant, and its switch port hold the P_Key of tenant A",
		from: tenantA, to: proof.Owner{}, assume: proof.Both, passes: delivers("h3", "h1", drill.KeyA),
		plant: func(b *bed) { b.stray("h3", drill.KeyA) },
	}).play(s, drill.SiteOptions{})
}

// spare is T166.
func spare(s *drill.Scene) {
	(&leak{
		what: "h3 is at a port that is declared unused, and both hold the P_Key of tenant A",
		from: tenantA, to: proof.Owner{Kind: proof.Spare}, assume: proof.Both, passes: delivers("h3", "h1", drill.KeyA),
		plant: func(b *bed) {
			b.spare = b.Place("h3", 1)
			b.stray("h3", drill.KeyA)
		},
	}).play(s, drill.SiteOptions{})
}

// group is T167.
func group(s *drill.Scene) {
	const mlid = ib.MinMulticastLID + 5
	l := &leak{
		what: "the leaf of h2 forwards a group of tenant A to h2, which holds the P_Key of tenant A, as its switch port does",
		from: tenantA, to: tenantB, assume: proof.Both,
		plant: func(b *bed) {
			at := b.SwitchPort("h2", 1)
			b.stray("h2", drill.KeyA)
			b.write(at.Node, mad.AttrMulticastForwardingTable, mad.MulticastForwardingMod(uint8(at.Port/16), 0), func(data []byte) {
				i := int(mlid-ib.MinMulticastLID) * 2
				binary.BigEndian.PutUint16(data[i:], binary.BigEndian.Uint16(data[i:])|1<<(at.Port%16))
			})
		},
	}
	l.passes = func(b *bed) bool {
		r, err := b.Fabric.Inject(drill.Port("h1"), sim.Data{SLID: b.LID("h1"), DLID: mlid, PKey: drill.KeyA, DestQP: 0xFFFFFF, Payload: 64})
		b.s.Must(err)
		b.Collect()
		return slices.Contains(r.To, drill.Port("h2"))
	}
	l.play(s, drill.SiteOptions{})
}

// alias is T168.
func alias(s *drill.Scene) {
	(&leak{
		what: "the adapter of h1 has the GUID of h2, of tenant B, as an alias",
		from: tenantA, to: tenantB, assume: proof.Both,
		passes: func(b *bed) bool { return slices.Contains(b.Fabric.GUIDs("h1", 1), b.GUID("h2", 1)) },
		plant: func(b *bed) {
			guid := b.GUID("h2", 1)
			b.write("h1", mad.AttrGUIDInfo, 0, func(data []byte) { binary.BigEndian.PutUint64(data[16:], uint64(guid)) })
		},
	}).play(s, drill.SiteOptions{})
}

// shared is T169.
func shared(s *drill.Scene) {
	const key ib.PKey = 0x8077
	(&leak{
		what: "h1 of tenant A, a client of the shared partition, and its switch port become full members of it",
		from: tenantA, to: tenantB, assume: proof.Both, passes: delivers("h1", "h2", key),
		plant: func(b *bed) { b.stray("h1", key) },
	}).play(s, drill.SiteOptions{Shared: []drill.Shared{{PKey: key, Servers: []string{"h3"}, Clients: []string{"h1", "h2"}}}})
}
