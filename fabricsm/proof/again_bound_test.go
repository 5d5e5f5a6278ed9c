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
