package nexthop

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// chunk is how many LIDs are read or written together: tables lie in memory by
// switch, and the LIDs of one switch and the next are mostly neighbours.
const chunk = 128

// batch is decisions on their way into tables.
type batch struct {
	lids  []route.Target
	ports []ib.PortNum // by position in lids, then switch
	n     int          // switches
}

func newBatch(switches int) *batch {
	return &batch{lids: make([]route.Target, 0, chunk), ports: make([]ib.PortNum, chunk*switches), n: switches}
}

// column returns the entries for the k-th LID, by switch.
func (b *batch) column(k int) []ib.PortNum { return b.ports[k*b.n : (k+1)*b.n] }

// write puts the entries into all tables and empties the batch.
func (b *batch) write(g *route.Graph, t, prev *route.Tables) {
	for sw, id := range g.IDs {
		if prev == nil {
			row, column := t.LFT(id), b.ports[sw:]
			for k, target := range b.lids {
				row[target.LID] = column[k*b.n]
			}
			continue
		}
		row, own := t.LFT(id), false
		for k, target := range b.lids {
			port := b.ports[k*b.n+sw]
			if row[target.LID] == port {
				continue
			}
			if !own {
				row, own = t.Writable(prev, id), true
			}
			row[target.LID] = port
		}
	}
	b.lids = b.lids[:0]
}
