package ftree

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// checkReverse finds routes between a switch with I/O nodes and another with
// CAs that go down more links than allowed before they go up again.
func (t *tree) checkReverse(tables *route.Tables, most int) error {
	rows := make([][]ib.PortNum, len(t.g.IDs))
	for s, id := range t.g.IDs {
		rows[s] = tables.LFT(id)
	}
	for home, targets := range t.g.Targets {
		for s := range rows {
			if t.g.Hosts[s] == 0 || t.g.Hosts[home] == 0 || t.leaf[s] && t.leaf[home] {
				continue
			}
			for _, target := range targets {
				if n := t.reverse(int32(s), target.LID, rows); n > most {
					return fmt.Errorf("from %s to LID %v, at %s, %d links go down before the route goes up again, and max_reverse_hops allows %d",
						t.name(int32(s)), target.LID, t.name(int32(home)), n, most)
				}
			}
		}
	}
	return nil
}

// reverse returns how many links of a route lead down before its last link up.
func (t *tree) reverse(s int32, lid ib.LID, rows [][]ib.PortNum) int {
	down, reverse := 0, 0
	for range rows {
		e := t.g.EdgeAt(s, rows[s][lid])
		if e < 0 {
			break
		}
		to := t.g.To[e]
		if t.level[to] < t.level[s] {
			down++
		} else {
			reverse = down
		}
		s = to
	}
	return reverse
}
