package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

func TestReadLFTs(t *testing.T) {
	const dump = `Unicast lids [0-3] of switch Lid 1 guid 0x0010000100000001 ('leaf1'):
0x0001 000 : (Switch portguid 0x0010000100000001: 'leaf1')
0x0002 007 : (Channel Adapter portguid 0x0020000000000001: 'sm')
2 valid lids dumped
Unicast lids [0-3] of switch Lid 3 guid 0x0010000100000002 ('leaf2'):
0x0003 000 : (Switch portguid 0x0010000100000002: 'leaf2')
1 valid lids dumped
`
	rows, lids, err := readLFTs(bufio.NewScanner(strings.NewReader(dump)))
	if err != nil {
		t.Fatal(err)
	}
	none := ib.NoPort
	if d := cmp.Diff(rows, map[ib.GUID][]ib.PortNum{
		0x0010000100000001: {none, 0, 7}, 0x0010000100000002: {none, none, none, 0},
	}); d != "" {
		t.Errorf("rows (-got +want):\n%s", d)
	}
	if d := cmp.Diff(lids, map[ib.GUID]ib.LID{0x0010000100000001: 1, 0x0020000000000001: 2, 0x0010000100000002: 3}); d != "" {
		t.Errorf("LIDs (-got +want):\n%s", d)
	}
}

// TestBuild: the fabric of a netlist is routed as evenly as the same one built for
// tests.
func TestBuild(t *testing.T) {
	list, err := netlist.FatTree3(netlist.Shape{Hosts: 432, Radix: 12})
	if err != nil {
		t.Fatal(err)
	}
	b := build(list)
	dealLIDs(b, nil)
	worst := func(f *topo.Fabric) int64 {
		c, err := route.First(f, nil, minhop.Engine{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Report.WorstLoad
	}
	if got, want := worst(b.Freeze()), worst(topotest.FatTree3(432, 12).Fabric()); got != want {
		t.Errorf("worst link %d routes, want %d", got, want)
	}
}
