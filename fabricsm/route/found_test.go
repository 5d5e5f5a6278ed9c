package route_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestFoundTablesStay: an engine that gets its earlier tables, read back from switches, makes the same. Entries of LIDs
// that are gone are left out, and wrong ones are corrected.
func TestFoundTablesStay(t *testing.T) {
	f := topotest.FatTree2(16, 8).Fabric()
	first, err := route.First(f, nil, minhop.Engine{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		spoil func(row []ib.PortNum)
	}{
		{"as it was", func([]ib.PortNum) {}},
		{"with a LID that is gone", func(row []ib.PortNum) { row[len(row)-1] = 1 }},
		{"with a port that does not exist", func(row []ib.PortNum) { row[1] = 200 }},
		{"with a hole", func(row []ib.PortNum) { row[2] = ib.NoPort }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := route.Found(f, func(id topo.NodeID) []ib.PortNum {
				row := append([]ib.PortNum(nil), first.Tables.LFT(id)...)
				tt.spoil(row)
				return row
			})
			if err != nil {
				t.Fatal(err)
			}
			again, err := route.First(f, found, minhop.Engine{})
			if err != nil || len(again.Refused) > 0 {
				t.Fatalf("%v, refused %v", err, again.Refused)
			}
			moved := 0
			for _, id := range f.Switches() {
				was, is := first.Tables.LFT(id), again.Tables.LFT(id)
				for l := range was {
					if was[l] != is[l] {
						moved++
					}
				}
			}
			if tt.name == "as it was" && moved > 0 || moved > 2*len(f.Switches()) {
				t.Errorf("%d entries moved", moved)
			}
		})
	}
}
