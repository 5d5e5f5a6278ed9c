package isolation

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// Digest identifies what was read of devices: two readings of the same tables, cables and states have the same.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf returns the SHA-256 of what was read as lines of text: devices by GUID, their ports by number, tables by index. It
// depends on what devices answered and on which of it was not read. Names and owners are not in it.
func DigestOf(found *reader.Found) Digest {
	f := found.Fabric
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<16) // a hash refuses no bytes
	fmt.Fprintln(w, "portcullis tables 2")
	order := make([]int, len(f.Devices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.Devices[a].GUID, f.Devices[b].GUID) })
	rank := make([]int, len(order)) // devices with the same GUID get different numbers
	for i, at := range order {
		rank[at] = i
	}
	lanes := make([][]reader.Lanes, len(order))
	for i := range found.Lanes {
		if at := found.Lanes[i].Port.Device; at >= 0 && at < len(lanes) {
			lanes[at] = append(lanes[at], found.Lanes[i])
		}
	}
	for _, at := range order {
		d := &f.Devices[at]
		fmt.Fprintf(w, "device %v %d\n", d.GUID, d.Type)
		fmt.Fprintf(w, "lft %d %x\n", d.LFT.How, d.LFT.Value)
		fmt.Fprintf(w, "defaults %d %d %d\n", d.MulticastDefaults.How, d.MulticastDefaults.Value.Primary, d.MulticastDefaults.Value.NotPrimary)
		fmt.Fprintf(w, "mft %d\n", d.MFT.How)
		for _, lid := range slices.Sorted(maps.Keys(d.MFT.Value)) {
			fmt.Fprintf(w, "group %d %x\n", lid, d.MFT.Value[lid])
		}
		for num := range d.Ports {
			digestPort(w, num, &d.Ports[num], rank)
		}
		for i := range lanes[at] {
			l := &lanes[at][i]
			fmt.Fprintf(w, "lanes %d in %d %d %d\n", l.Port.Port, l.In, l.Table.How, l.Table.Value.VL)
		}
	}
	_ = w.Flush()
	return Digest(h.Sum(nil))
}

func digestPort(w *bufio.Writer, num int, p *proof.Port, rank []int) {
	cable := -1
	if p.Cable != (proof.Place{}) && p.Cable.Device >= 0 && p.Cable.Device < len(rank) {
		cable = rank[p.Cable.Device]
	}
	c := &p.Check.Value
	fmt.Fprintf(w, "port %d cable %d %d state %d %d check %d %t %t %t %t pkeys %d", num, cable, p.Cable.Port, p.State.How, p.State.Value,
		p.Check.How, c.Inbound, c.Outbound, c.RawInbound, c.RawOutbound, p.PKeys.How)
	for _, key := range p.PKeys.Value {
		fmt.Fprintf(w, " %v", key)
	}
	fmt.Fprint(w, " aliases")
	for _, a := range slices.SortedFunc(slices.Values(p.Aliases), func(a, b proof.Alias) int { return cmp.Compare(a.GUID, b.GUID) }) {
		fmt.Fprintf(w, " %v", a.GUID)
	}
	fmt.Fprintln(w)
}
