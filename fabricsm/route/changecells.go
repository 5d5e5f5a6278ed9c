package route

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// cell is one entry.
type cell struct {
	lid ib.LID
	sw  int32
}

// findCells finds what differs, and reports whether it is little.
func (c *change) findCells() bool {
	for s, row := range c.rows {
		o := c.was[s]
		if o < 0 {
			for l, port := range row {
				if l < len(c.home) && c.home[l] >= 0 {
					c.cells = append(c.cells, cell{ib.LID(l), int32(s)})
				} else if port != ib.NoPort {
					return false
				}
			}
			continue
		}
		if was := c.old.rows[o]; &was[0] != &row[0] && !c.compare(int32(s), was, row) {
			return false
		}
		for e := c.old.g.Row[o]; e < c.old.g.Row[o+1]; e++ {
			if c.edge[e] < 0 && slices.Contains(row, c.old.g.Port[e]) {
				return false
			}
		}
	}
	slices.SortFunc(c.cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.lid, b.lid), cmp.Compare(a.sw, b.sw)) })
	for l := range c.home {
		if h := c.home[l]; c.out[l] == c.old.out[l] && (h < 0 && c.old.home[l] < 0 || h >= 0 && c.was[h] >= 0 && c.was[h] == c.old.home[l]) {
			continue
		}
		c.moved = append(c.moved, ib.LID(l))
		if c.home[l] < 0 && slices.ContainsFunc(c.rows, func(row []ib.PortNum) bool { return row[l] != ib.NoPort }) {
			return false
		}
	}
	return len(c.moved) <= len(c.home)/4 && len(c.cells) <= len(c.home)*len(c.g.IDs)/4
}

// compare notes where two rows differ; false: beyond the LIDs that there are.
func (c *change) compare(s int32, was, is []ib.PortNum) bool {
	for from := 0; from < len(is); from += BlockSize { // rows are whole blocks
		to := from + BlockSize
		if string(is[from:to]) == string(was[from:to]) { // many bytes at a time
			continue
		}
		for l := from; l < to; l++ {
			if is[l] == was[l] {
				continue
			}
			if l >= len(c.home) {
				return false
			}
			c.cells = append(c.cells, cell{ib.LID(l), s})
		}
	}
	return true
}

// findWalks finds the depths of new switches, and the LIDs that are to be walked; it
// reports whether they are few.
func (c *change) findWalks() bool {
	c.walk, c.relaid = make([]bool, len(c.home)), make([]bool, len(c.g.IDs))
	c.takeDepths()
	for _, l := range c.moved {
		c.walk[l] = true
		if h := c.home[l]; h >= 0 && c.was[h] < 0 {
			c.relaid[h] = true
		}
	}
	n := len(c.g.IDs)
	for _, x := range c.cells {
		h := c.home[x.lid]
		if h < 0 || c.walk[x.lid] || c.relaid[h] {
			continue
		}
		port, depth := c.rows[x.sw][x.lid], c.depth[int(x.sw)*n+int(h)]
		e := c.g.EdgeAt(x.sw, port)
		switch {
		case x.sw == h: // its last hop differs, though the LID is where it was
			return false
		case e < 0:
			c.relaid[h] = c.relaid[h] || port != ib.NoPort || depth != farDepth || c.was[x.sw] >= 0
		case depth == farDepth || c.depth[int(c.g.To[e])*n+int(h)]+1 != depth:
			c.relaid[h] = true
		}
	}
	walks := 0
	for h, relaid := range c.relaid {
		for _, t := range c.g.Targets[h] {
			c.walk[t.LID] = c.walk[t.LID] || relaid
			if c.walk[t.LID] {
				walks++
			}
		}
	}
	return walks <= len(c.home)/4
}
