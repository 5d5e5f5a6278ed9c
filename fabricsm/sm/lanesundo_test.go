package sm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	toroidal "portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestLanesAreUndone starts on fabrics whose lanes were programmed for what is
// switched off since: no audit has to find that.
func TestLanesAreUndone(t *testing.T) {
	pairs := []route.Engine{toroidal.Engine{Lanes: 4}}
	for _, tt := range []struct {
		name   string
		o      sim.Options
		before sm.Config
		broken int // Sets of lanes after which the one before was killed, 0: it was not
		after  sm.Config
		alike  bool
	}{
		{name: "tables by pair, then none", before: sm.Config{Engines: pairs}},
		{name: "tables by pair, then none, broken off", before: sm.Config{Engines: pairs}, broken: 100},
		{name: "tables by pair, then quality of service", before: sm.Config{Engines: pairs}, after: sm.Config{QoS: qosOptions(t, oddQoS...)}},
		{name: "tables by pair, then of quality of service that the first and the last are like", before: sm.Config{Engines: pairs}, alike: true},
		{name: "quality of service, then none", before: sm.Config{QoS: qosOptions(t, oddQoS...)}},
		{name: "quality of service by wildcard, then none", o: sim.Options{SLtoVLWildcard: true}, before: sm.Config{QoS: qosOptions(t, oddQoS...)}},
		{name: "quality of service, then none, broken off", before: sm.Config{QoS: qosOptions(t, oddQoS...)}, broken: 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.before.AuditPeriod = -1
			e := torusEnv(t, tt.o, tt.before)
			lanes := func() int { return e.smps["Set SLtoVLMappingTable"] }
			e.start()
			if tt.broken == 0 {
				e.mustSettle(30 * time.Second)
			} else {
				for until := e.now.Add(30 * time.Second); lanes() < tt.broken && e.next(until); {
				}
			}
			if tt.alike {
				tt.after.QoS = qosOptions(t, "qos_sl2vl "+firstAndLast(e))
			}
			guid := e.cfg.PortGUID
			e.cfg = tt.after
			e.cfg.PortGUID, e.cfg.AuditPeriod = guid, -1
			if e.cfg.Engines == nil {
				e.cfg.Engines = []route.Engine{updn.Engine{}}
			}
			e.start()
			e.mustSettle(30 * time.Second)
			judgeSwitchLanes(e)
			for _, asked := range []bool{true, false} {
				sets, reads := e.sets(), e.smps["Get SLtoVLMappingTable"]+e.smps["Get VLArbitration"]
				e.start()
				e.mustSettle(30 * time.Second)
				if n := e.sets() - sets; n != 0 {
					t.Errorf("a restart wrote %d times", n)
				}
				if n := e.smps["Get SLtoVLMappingTable"] + e.smps["Get VLArbitration"] - reads; !asked && !e.cfg.QoS.Enabled && n != 0 {
					t.Errorf("%d tables were read that nothing is wanted of", n)
				}
			}
		})
	}
}

// firstAndLast returns the tables that the first and the last input port of a switch have for an output port, where other
// input ports have other tables.
func firstAndLast(e *env) string {
	e.t.Helper()
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		for out := 1; n.Type == ib.NodeSwitch && out < len(n.Ports); out++ {
			table := func(in int) [16]ib.VL { return e.fab.SLtoVL(n.Name, ib.PortNum(in), ib.PortNum(out)).VL }
			for in := 1; n.Ports[out].Peer != "" && in < len(n.Ports); in++ {
				if first := table(0); table(in) != first && table(len(n.Ports)-1) == first {
					return strings.Trim(strings.ReplaceAll(fmt.Sprint(first), " ", ","), "[]")
				}
			}
		}
	}
	e.t.Fatal("there is no such port")
	return ""
}

// judgeSwitchLanes compares the tables of switches with what the configuration
// says, which is the defaults where quality of service is off.
func judgeSwitchLanes(e *env) {
	e.t.Helper()
	table := e.cfg.QoS.Table(qos.SwitchExternal)
	wrong := map[string]int{}
	eachPair(e.list, func(n *netlist.Node, in, out ib.PortNum, _ bool) {
		if n.Type != ib.NodeSwitch {
			return
		}
		info := e.fab.PortInfo(n.Name, out)
		if d := cmp.Diff(table.Lanes(info.OperationalVLs), e.fab.SLtoVL(n.Name, in, out).VL); d != "" {
			if wrong["SL-to-VL tables"]++; wrong["SL-to-VL tables"] == 1 {
				e.t.Errorf("%s from port %d to %d (-want +got):\n%s", n.Name, in, out, d)
			}
		}
		half := e.fab.VLArbitration(n.Name, out, mad.VLArbLow0)
		for i, want := range table.Half(false, false, 8, info.OperationalVLs) {
			if e.smps["Set VLArbitration"] > 0 && (half.Entry[i].VL != want.VL || half.Entry[i].Weight != want.Weight) {
				wrong[fmt.Sprintf("entries %d of arbitration tables", i)]++
			}
		}
	})
	if len(wrong) > 0 {
		e.t.Errorf("wrong are %v", wrong)
	}
}
