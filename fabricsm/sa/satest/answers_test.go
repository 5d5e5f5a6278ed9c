package satest_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestAnswersAgree sends the same queries to OpenSM and to us, and compares the answers byte by byte.
func TestAnswersAgree(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	l := small(t)
	used := map[string]int{}
	for _, tt := range []struct {
		name       string
		partitions string
		host       string
		key        ib.SAKey
		asks       func(testing.TB, *ibsimlab.Lab, *netlist.Netlist, string, ib.SAKey) []ask
	}{
		{"fabric, trusted, all in one partition", openPartitions, "sm", trusted, ofFabric},
		{"hosts, trusted, all in one partition", openPartitions, "h7", trusted, ofHosts},
		{"hosts, untrusted, all in one partition", openPartitions, "h7", ib.SAKey{}, ofHosts},
		{"hosts, untrusted, in partitions apart", apart(l), "h7", ib.SAKey{}, ofTenants},
		{"hosts, trusted, in partitions apart", apart(l), "h7", trusted, ofTenants},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, ibsimtest.Start(t, text(t, l)), tt.partitions)
			var asks []ask
			var answers [2][]satest.Answer
			s.both(t, func(ours bool) {
				if !ours {
					asks = tt.asks(t, s.lab, l, tt.host, tt.key)
					answers[0] = interview(t, s.lab, asks)
				} else {
					answers[1] = interview(t, s.lab, asks)
				}
			})
			judge(t, asks, answers[0], answers[1], used)
			for i := range asks {
				d := difference{ask: &asks[i], ours: &answers[1][i]}
				oneself := asks[i].host == "h2" && strings.Contains(d.name, "for another") || strings.Contains(d.name, "for a foreign") // a host that acts as another one
				if d.q.Key.IsZero() && !oneself && d.ours.Silent() == untrusted(&d) {
					t.Errorf("%s (from %s): silence %t is not as the table of untrusted requests has it", d.name, d.host, d.ours.Silent())
				}
			}
			t.Logf("%d questions", len(asks))
		})
	}
	for i := range differences {
		if told := differences[i].told; used[told] == 0 {
			t.Errorf("nothing differs any more as docs/understand/sa.md tells: %s", told)
		}
	}
	t.Logf("accepted differences: %v", used)
}
