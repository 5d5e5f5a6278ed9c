package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// TestAlternatingLiar: a host that shows another GUID in every other answer is honest whenever it is asked a second time.
// It is switched off nevertheless.
func TestAlternatingLiar(t *testing.T) {
	for _, tt := range []struct {
		name string
		lies func(n int) bool // to the n-th question, from 0
		mute func(n int) bool
		off  bool
	}{
		{name: "every other time", lies: func(n int) bool { return n%2 == 0 }, off: true},
		{name: "every third time", lies: func(n int) bool { return n%3 == 0 }, off: true},
		{name: "and is silent when it is asked again", lies: func(n int) bool { return n%8 == 0 }, mute: func(n int) bool { return n%8 < 5 }, off: true},
		{name: "twice in a life", lies: func(n int) bool { return n == 3 || n == 9 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tree(t, 7, 8)
			cfg := under(law(t, l), topospec.Enforce)
			cfg.AuditPeriod = time.Minute
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.want(sm.Intent{Revision: 1})
			e.mustSettle(10 * time.Second)
			bad := hosts(l)[2]
			asked := -1
			e.hostile = map[string]liar{bad.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
				if len(rest) > 0 || r.MAD.Attr() != mad.AttrNodeInfo {
					return mad.MAD{}, false
				}
				asked++
				switch {
				case tt.lies(asked):
					return answer(r, &mad.NodeInfo{
						BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0x6666, PortGUID: 0x6667, PartitionCap: 64, LocalPortNum: 1,
					})
				case tt.mute != nil && tt.mute(asked):
					return mad.MAD{}, true
				default:
					return mad.MAD{}, false
				}
			}}
			e.run(20 * time.Minute)
			if asked < 10 && !tt.off {
				t.Fatalf("it was asked %d times, so nothing is proven", asked)
			}
			if got := e.isOff(&bad); got != tt.off {
				t.Errorf("it is switched off: %v, want %v, after %d questions; %q", got, tt.off, asked, e.problems())
			}
			for _, h := range hosts(l) {
				if h.node != bad.node && e.isOff(&h) {
					t.Errorf("%s is switched off", h.node.Name)
				}
			}
		})
	}
}
