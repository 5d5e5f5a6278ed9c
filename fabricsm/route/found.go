package route

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Found returns tables from the entries that switches have, which another subnet manager may have written, so that an
// [Engine] keeps the right ones. rows returns the known entries of a switch by LID; it is called for each switch of f.
// Errors are those of [NewGraph].
func Found(f *topo.Fabric, rows func(topo.NodeID) []ib.PortNum) (*Tables, error) {
	g, err := NewGraph(f, nil)
	if err != nil {
		return nil, err
	}
	t := NewTables("", g, nil)
	for _, id := range g.IDs {
		row := t.rows[id].lft
		for l, p := range rows(id) {
			if l < len(t.home) && t.home[l] != topo.None {
				row[l] = p // those of LIDs that are not there any more are left out
			}
		}
	}
	return t, nil
}
