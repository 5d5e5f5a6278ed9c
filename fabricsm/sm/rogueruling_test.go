package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestSlowHostsDoNotKeepUsFromRuling: a manager that takes over a fabric waits for late answers. But any number of hosts
// that answer late, with errors or not at all cannot make it wait without end.
func TestSlowHostsDoNotKeepUsFromRuling(t *testing.T) {
	busy := func(r *sm.Request) (mad.MAD, bool) {
		m := r.MAD
		m.Respond(mad.StatusBusy)
		return m, true
	}
	nothing := func(r *sm.Request) (mad.MAD, bool) {
		m := r.MAD
		m.SetTID(m.TID() ^ 1<<40)
		return m, true
	}
	honest := func(*sm.Request) (mad.MAD, bool) { return mad.MAD{}, false }
	for name, acts := range map[string][]func(*sm.Request) (mad.MAD, bool){
		"busy":           {busy},
		"silent":         {nothing},
		"now and then":   {nothing, nothing, honest},
		"busy or honest": {busy, honest},
		"busy or silent": {busy, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			l := tree(t, 48, 16)
			e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
			e.start()
			e.mustSettle(10 * time.Second)
			e.hostile = map[string]liar{}
			for i, h := range hosts(l)[:40] {
				n := i
				e.hostile[h.node.Name] = func(_ []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
					if r.MAD.Attr() == mad.AttrNodeInfo {
						return mad.MAD{}, false
					}
					n++
					return acts[n%len(acts)](r)
				}
			}
			e.facts, e.view = nil, nil
			e.start()
			began := e.now
			for e.view == nil || e.view.State != ib.SMMaster {
				if !e.next(began.Add(20 * time.Second)) {
					t.Fatalf("not master after %v: %d requests out", e.now.Sub(began), len(e.out))
				}
			}
			t.Log(e.now.Sub(began))
		})
	}
}
