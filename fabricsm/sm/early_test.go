package sm_test

import (
	"maps"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestAnswersBeforeTablesAreRead: a manager that takes over has routes to answer from before it asks for a forwarding table,
// and leaves LIDs, routes and memberships as they are. It has none where routes use several lanes, or where it does not know
// the LIDs.
func TestAnswersBeforeTablesAreRead(t *testing.T) {
	const window = 64 // requests that are out at once
	for name, test := range map[string]struct {
		change func(*env)
		early  bool
		lanes  bool
	}{
		"takeover":         {change: func(e *env) { e.cfg.AnswersEarly = true }, early: true},
		"not asked for":    {change: func(*env) {}},
		"LIDs are unknown": {change: func(e *env) { e.cfg.AnswersEarly, e.facts = true, nil }},
		"several lanes":    {change: func(e *env) { e.cfg.AnswersEarly = true }, lanes: true},
		"answers are late": {change: func(e *env) { e.cfg.AnswersEarly, e.bad = true, chaos{lose: 0.02, delay: 0.05, twice: 0.1} }, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, cfg := tree(t, 96, 16), sm.Config{AuditPeriod: -1, IntentWait: time.Second}
			if test.lanes {
				circles, err := netlist.Parse("torus", []byte(torus(4, 4)))
				l, cfg.Engines = list(t, circles, err), []route.Engine{dor.Engine{Lanes: 4}}
			}
			e := newEnv(t, l, sim.Options{}, cfg, 1)
			e.start()
			in := sm.Intent{Revision: 1}
			for i, h := range hosts(l) {
				in.Grants = append(in.Grants, h.grant(ib.PKey(0x8001+i%2)))
			}
			e.want(in)
			e.mustSettle(10 * time.Second)
			lids, was := e.shownLIDs(l), e.view.Tables
			test.change(e)
			before := maps.Clone(e.smps)
			since := func(what string) int { return e.smps[what] - before[what] }
			early := 0
			e.onStep = func() {
				v := e.view
				if v == nil || v.Early == nil {
					return
				}
				// The first requests for tables may leave in the step that shows the early ones.
				if early++; early == 1 && since("Get LinearForwardingTable") > window {
					t.Errorf("%d blocks of forwarding tables were asked for before there were early ones", since("Get LinearForwardingTable"))
				}
				if v.Tables != nil || v.State != ib.SMMaster || v.Settled || v.Early.MaxLID != was.MaxLID {
					t.Errorf("early tables up to LID %d in state %v, settled %v, beside other tables: %v", v.Early.MaxLID, v.State, v.Settled, v.Tables != nil)
				}
			}
			e.start()
			e.want(in)
			e.mustSettle(time.Minute)
			if (early > 0) != test.early {
				t.Errorf("%d views have early tables, want some: %v", early, test.early)
			}
			if since("Get LinearForwardingTable") < len(e.view.Fabric.Switches()) {
				t.Errorf("%d forwarding tables were read of %d switches", since("Get LinearForwardingTable"), len(e.view.Fabric.Switches()))
			}
			for _, what := range []string{"LinearForwardingTable", "P_KeyTable", "MulticastForwardingTable", "SwitchInfo"} {
				if n := since("Set " + what); n > 0 {
					t.Errorf("%d Sets of %s, want none", n, what)
				}
			}
			if !maps.Equal(lids, e.shownLIDs(l)) {
				t.Error("LIDs are others now")
			}
			if e.view.Early != nil || e.view.Tables == nil {
				t.Errorf("settled with early tables %v, and tables: %v", e.view.Early != nil, e.view.Tables != nil)
			}
		})
	}
}
