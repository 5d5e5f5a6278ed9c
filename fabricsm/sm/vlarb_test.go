package sm_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestRebootWhileArbitrationIsWritten reboots a switch after each Set of the
// arbitration tables that the first bring-up makes on it. Its ports are in Init
// before and after, so nothing but the tables shows that it did.
func TestRebootWhileArbitrationIsWritten(t *testing.T) {
	const sw = "leaf2"
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Leaves: 2, Spines: 1, Radix: 4})
	shape := list(t, l, err)
	for sets, more := 1, true; more; sets++ {
		e := newEnv(t, shape, sim.Options{}, sm.Config{QoS: qosOptions(t, oddQoS...), AuditPeriod: -1}, 1)
		seen, reboot := 0, false
		e.logSend = func(r *sm.Request) {
			if r.MAD.Method() != mad.MethodSet || r.MAD.Attr() != mad.AttrVLArbitration || !leadsTo(e, &r.MAD, sw) {
				return
			}
			seen++
			reboot = reboot || seen == sets
		}
		e.start()
		for until := e.now.Add(30 * time.Second); !reboot && e.next(until); {
			if e.view != nil && e.view.Settled {
				break
			}
		}
		if more = reboot; !more {
			if sets == 1 {
				t.Fatalf("no arbitration table of %s was written: %v", sw, e.smps)
			}
			break
		}
		if err := e.fab.Reboot(sw); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(3 * time.Second)
		e.mustSettle(time.Minute)
		judgeQoS(e, &e.cfg.QoS)
		for _, p := range e.problems() {
			if strings.Contains(p, "VLArb") || strings.Contains(p, "SLtoVL") {
				t.Errorf("rebooted after %d Sets: %s", sets, p)
			}
		}
	}
}

// leadsTo reports whether m is a request to a node of the netlist.
func leadsTo(e *env, m *mad.MAD, node string) bool {
	e.t.Helper()
	at, hops := "sm", m.Route()
	for i := range hops.Len() {
		p := e.list.Find(at).Ports[hops.At(i)]
		if at = p.Peer; at == "" {
			return false
		}
	}
	return at == node
}
