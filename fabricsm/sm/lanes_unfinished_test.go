package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// lanesEnv returns a settled fabric with quality of service, and the name and the number of ports of the switch behind the
// subnet manager.
func lanesEnv(t *testing.T) (e *env, sw string, ports ib.PortNum) {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
	e = newEnv(t, list(t, l, err), sim.Options{}, sm.Config{QoS: qosOptions(t, oddQoS...), AuditPeriod: 20 * time.Second}, 1)
	e.start()
	e.mustSettle(30 * time.Second)
	for i := range e.list.Nodes {
		if n := &e.list.Nodes[i]; slices.ContainsFunc(n.Ports, func(p netlist.Port) bool { return p.Peer == "sm" }) {
			return e, n.Name, ib.PortNum(len(n.Ports) - 1)
		}
	}
	t.Fatal("the subnet manager is behind no switch")
	return nil, "", 0
}

// spoilLanes sets pairs of ports of the switch behind the subnet manager to the tables that it powers on with.
func spoilLanes(e *env, out ib.PortNum, in ...ib.PortNum) {
	e.t.Helper()
	var found mad.SLtoVLMappingTable
	for sl := range found.VL {
		found.VL[sl] = ib.VL(sl % 8)
	}
	for _, in := range in {
		behind(e, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(in, out), func(b []byte) error { return mad.Encode(b, &found) }, 1)
	}
}

// TestAdapterResetWhileInInit: an adapter is reset after it got its SL-to-VL table and
// before its link is armed. Without an audit, it has the table soon after.
func TestAdapterResetWhileInInit(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
	cfg := keyed(t) // an adapter with a key is read first, so its lanes come before PortInfo
	cfg.QoS = qosOptions(t, oddQoS...)
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, cfg, 1)
	hs := hosts(e.list)
	bad, good := hs[2], hs[3]
	e.start()
	e.mustSettle(30 * time.Second)
	e.fab.Unlink(bad.node.Name, bad.num)
	e.run(5 * time.Second)
	resets := 0
	e.logSend = func(r *sm.Request) {
		var pi mad.PortInfo
		if resets > 0 || r.MAD.Method() != mad.MethodSet || r.MAD.Attr() != mad.AttrPortInfo {
			return
		}
		if at := e.reached(&r.MAD); at != bad.node.Name && (at != bad.peer || ib.PortNum(r.MAD.Mod()&0xFF) != bad.pnum) {
			return
		}
		if mad.Decode(r.MAD.Data(), &pi) == nil && pi.PortState == ib.PortArmed {
			resets++
			if err := e.fab.Reboot(bad.node.Name); err != nil {
				t.Error(err)
			}
		}
	}
	if err := e.fab.Relink(bad.node.Name, bad.num, bad.peer, bad.pnum); err != nil {
		t.Fatal(err)
	}
	e.run(10 * time.Second)
	want := e.fab.SLtoVL(good.node.Name, 0, good.num)
	if got := e.fab.SLtoVL(bad.node.Name, 0, bad.num); got != want || resets != 1 {
		t.Errorf("after %d resets its table is %v, want %v", resets, got, want)
	}
}

// TestUnfinishedLanes crashes the subnet manager after each Set of those that repair SL-to-VL tables. The next subnet
// manager has to see that the repair is unfinished, after any number of crashes. It has no other memory than the tables.
func TestUnfinishedLanes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wrong  []ib.PortNum // input ports whose tables are wrong
		audit  bool         // that finds it, not a restart
		failed int          // restarts after as many Sets
	}{
		{name: "the switch rebooted before the last was written", wrong: []ib.PortNum{1, 2, 3, 4, 5, 6, 7, 8}, failed: 1},
		{name: "some, twice", wrong: []ib.PortNum{2, 4, 5, 8}, failed: 2},
		{name: "only the first", wrong: []ib.PortNum{0}, failed: 1},
		{name: "some that the audit finds", wrong: []ib.PortNum{2, 4, 6}, audit: true, failed: 1},
	} {
		for sets := 1; sets <= len(tt.wrong)+2; sets++ {
			t.Run(fmt.Sprintf("%s, broken off after %d", tt.name, sets), func(t *testing.T) {
				t.Parallel()
				e, sw, _ := lanesEnv(t)
				out := ib.PortNum(slices.IndexFunc(e.list.Find(sw).Ports, func(p netlist.Port) bool { return p.Peer != "" && p.Peer != "sm" }))
				spoilLanes(e, out, tt.wrong...)
				written := func() int { return e.smps["Set SLtoVLMappingTable"] }
				before := written()
				for i := range tt.failed {
					if !tt.audit || i > 0 {
						e.start()
					}
					for from, until := written(), e.now.Add(3*time.Minute); written()-from < sets && e.next(until); {
						if !tt.audit && e.view != nil && e.view.Settled {
							break
						}
					}
				}
				e.start()
				e.mustSettle(30 * time.Second)
				judgeQoS(e, &e.cfg.QoS)
				if written() == before {
					t.Error("nothing was written")
				}
				before = e.sets()
				e.start()
				e.mustSettle(30 * time.Second)
				if n := e.sets() - before; n != 0 {
					t.Errorf("a restart wrote %d times", n)
				}
			})
		}
	}
}

// TestLanesThatASwitchDoesNotTake holds that what a switch itself sends keeps its
// lanes when the switch refuses tables that are repaired.
func TestLanesThatASwitchDoesNotTake(t *testing.T) {
	e, sw, ports := lanesEnv(t)
	out := ib.PortNum(slices.IndexFunc(e.list.Find(sw).Ports, func(p netlist.Port) bool { return p.Peer != "" && p.Peer != "sm" }))
	spoilLanes(e, out, ports)
	e.meddle = func(set bool, m *mad.MAD) {
		if m.Attr() == mad.AttrSLtoVLMappingTable && set && m.Mod() == mad.SLtoVLMod(ports, out) {
			m.SetStatus(mad.StatusInvalidField)
		}
	}
	e.start()
	e.mustSettle(30 * time.Second)
	if !slices.ContainsFunc(e.takeEvents(), func(ev sm.Event) bool { _, bad := ev.(*sm.BadAnswer); return bad }) {
		t.Error("nothing is told")
	}
	table := e.cfg.QoS.Table(qos.SwitchExternal)
	want, got := table.Lanes(e.fab.PortInfo(sw, out).OperationalVLs), e.fab.SLtoVL(sw, 0, out).VL
	if got != want {
		t.Errorf("lanes of what the switch sends: %v, want %v", got, want)
	}
}
