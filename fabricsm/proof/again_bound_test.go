package proof_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim/netlist"
)

// TestAgainIsBounded has a port hold another P_Key each time: the classes that it leaves do not add up without end, and it is proven again until then.
func TestAgainIsBounded(t *testing.T) {
	t.Parallel()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	b := grow(t, l, err, func(h int) int { return h % 2 })
	r := prove(t, b.Fabric)
	host := b.hosts[2]
	front := b.Devices[host].Ports[1].Cable
	steps, whole := 0, 0
	for i := range 700 {
		table := append(slices.Clone(b.port(at(host, 1)).PKeys.Value[:2]), ib.PKey(0x9000+i))
		b.Fabric = withTable(withTable(b.Fabric, at(host, 1), table), front, table)
		next, _, ok := r.Again(b.Fabric)
		if !ok {
			whole++
			next = prove(t, b.Fabric)
		}
		if steps++; !next.Holds(proof.Both) {
			t.Fatalf("after step %d a packet passes", i)
		}
		r = next
	}
	if whole < 2 || whole > 3 {
		t.Errorf("of %d steps %d were proven as a whole", steps, whole)
	}
}

// TestAgainWhereSwitchesCheck has a port meet the same others by another P_Key, which ports between switches let pass, and did not that before.
func TestAgainWhereSwitchesCheck(t *testing.T) {
	t.Parallel()
	const stopped, passing ib.PKey = 0x8055, 0x8056
	b := small(t)
	mine := b.hosts[2]
	leaf := b.Devices[mine].Ports[1].Cable.Device
	other := b.hosts[slices.IndexFunc(b.hosts, func(dev int) bool {
		p := &b.Devices[dev].Ports[1]
		return p.Owner == tenant(1) && p.Cable.Device != leaf
	})]
	for _, sw := range b.switches {
		for num := range b.Devices[sw].Ports {
			p := &b.Devices[sw].Ports[num]
			if p.Cable.Port != 0 && b.Devices[p.Cable.Device].Type == ib.NodeSwitch {
				p.Check.Value.Inbound, p.Check.Value.Outbound = true, true
				p.PKeys.Value = []ib.PKey{passing}
			}
		}
	}
	with := func(dev int, keys ...ib.PKey) {
		front := b.Devices[dev].Ports[1].Cable
		table := append(slices.Clone(b.port(at(dev, 1)).PKeys.Value[:3]), keys...)
		b.Fabric = withTable(withTable(b.Fabric, at(dev, 1), table), front, table)
	}
	with(other, stopped, passing)
	with(mine, stopped)
	r := prove(t, b.Fabric)
	if !r.Holds(proof.Both) {
		t.Fatal("a packet passes that ports between switches stop")
	}
	with(mine, passing)
	next, d, ok := r.Again(b.Fabric)
	if !ok {
		t.Fatal("it was not proven again")
	}
	if v := next.Pair(tenant(0), tenant(1)); v[proof.Both] != proof.Leaks || !slices.Contains(d.Pairs, proof.Pair{From: tenant(0), To: tenant(1)}) {
		t.Errorf("proven again is %v, and another thing of %v", v, d.Pairs)
	}
}
