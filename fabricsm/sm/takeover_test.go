package sm_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// shownLIDs are those that devices have, by node name.
func (e *env) shownLIDs(l *netlist.Netlist) map[string]ib.LID {
	out := make(map[string]ib.LID)
	for i := range l.Nodes {
		num := ib.PortNum(1)
		if l.Nodes[i].Type == ib.NodeSwitch {
			num = 0
		}
		out[l.Nodes[i].Name] = e.fab.PortInfo(l.Nodes[i].Name, num).LID
	}
	return out
}

// TestTakesOverLIDsWhereAnswersAreLate: a manager that takes over a fabric of which it knows nothing leaves every LID and
// every route as it is. This also holds where answers come late, twice or not at all, while no device is silent to three
// requests in turn. Otherwise connections all over the fabric would break because one packet was lost.
func TestTakesOverLIDsWhereAnswersAreLate(t *testing.T) {
	for name, bad := range map[string]chaos{
		"late":          {delay: 0.05},
		"lost":          {lose: 0.03},
		"late and lost": {lose: 0.02, delay: 0.05, twice: 0.1},
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				l := tree(t, 96, 16)
				e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, seed)
				e.start()
				e.mustSettle(10 * time.Second)
				// LIDs of another order than ours would be.
				shuffled := make([]sm.PreferredLID, 0, len(l.Nodes))
				top := ib.LID(0)
				for _, lid := range owners(t, e.facts) {
					top = max(top, lid)
				}
				for guid, lid := range owners(t, e.facts) {
					shuffled = append(shuffled, sm.PreferredLID{GUID: guid, LID: top + 1 - lid})
				}
				e.facts, e.cfg.LIDs.Preferred = nil, shuffled
				e.start()
				e.mustSettle(10 * time.Second)
				before := e.shownLIDs(l)
				e.facts, e.cfg.LIDs.Preferred, e.bad = nil, nil, bad
				sets := e.smps["Set LinearForwardingTable"]
				e.start()
				e.mustSettle(time.Minute)
				if after := e.shownLIDs(l); !maps.Equal(before, after) {
					n := 0
					for node := range before {
						if before[node] != after[node] {
							n++
						}
					}
					t.Errorf("%d of %d LIDs are others now", n, len(before))
				}
				if n := e.smps["Set LinearForwardingTable"] - sets; n > 0 {
					t.Errorf("%d blocks of forwarding tables were written", n)
				}
			})
		}
	}
}
