package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestSwitchRebootsDuringBringUp reboots a switch after each Set that a bring-up makes on it. While all its links are in
// Init, only the lost state shows that. Without an audit, nothing may be missing once the fabric is settled, and no
// membership may be reported as applied before (the watcher checks that).
func TestSwitchRebootsDuringBringUp(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Leaves: 2, Spines: 1, Radix: 4})
	shape := list(t, l, err)
	for _, sw := range []string{"leaf1", "leaf2", "spine1"} {
		for name, cfg := range map[string]sm.Config{
			"plain": {AuditPeriod: -1},
			"lanes": {AuditPeriod: -1, QoS: qosOptions(t, oddQoS...)},
			"keys":  keyed(t),
		} {
			t.Run(sw+", "+name, func(t *testing.T) {
				sets := 1
				for ; rebootAt(t, shape, cfg, sw, sets); sets++ {
				}
				if sets < 12 {
					t.Errorf("a bring-up with %d Sets on the switch, want more", sets)
				}
			})
		}
	}
}

// rebootAt brings a fabric up, with the switch rebooted after so many Sets on it,
// and reports whether it came to that.
func rebootAt(t *testing.T, shape *netlist.Netlist, cfg sm.Config, sw string, sets int) bool {
	t.Helper()
	e := newEnv(t, shape, sim.Options{}, cfg, 1)
	w := watch(e)
	seen, last := 0, ""
	e.logSend = func(r *sm.Request) {
		if m := &r.MAD; m.Method() == mad.MethodSet && leadsTo(e, m, sw) {
			if seen++; seen == sets {
				last = fmt.Sprintf("Set %d, of %v %#x", seen, m.Attr(), m.Mod())
			}
		}
	}
	in := sm.Intent{Revision: 1}
	for i := range w.hosts {
		in.Grants = append(in.Grants, w.hosts[i].grant(0x8001))
	}
	e.start()
	e.want(in)
	for seen < sets && (e.view == nil || !e.view.Settled) {
		if !e.next(e.now.Add(time.Second)) {
			t.Fatal("the bring-up came to a standstill")
		}
	}
	if seen < sets {
		return false
	}
	armed := false
	for num := 1; num < len(shape.Find(sw).Ports); num++ {
		armed = armed || e.fab.PortInfo(sw, ib.PortNum(num)).PortState >= ib.PortArmed
	}
	if err := e.fab.Reboot(sw); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	for i, h := range w.hosts {
		if h.peer != sw {
			continue
		}
		w.lost[i] = true // unseen as yet
		if armed {
			w.rebooted[h.node.PortGUID(h.num)] = e.now // its links show it; events on their way are still reported
		}
	}
	if armed {
		w.shaken = e.now
	}
	e.mustSettle(time.Minute)
	e.run(3 * time.Second) // traps report what links that were up show
	e.mustSettle(time.Minute)
	w.checkEnd()
	if cfg.QoS.Enabled {
		judgeQoS(e, &e.cfg.QoS)
	}
	for _, a := range w.hosts {
		for _, b := range w.hosts {
			from, to := e.fab.PortInfo(a.node.Name, a.num).LID, e.fab.PortInfo(b.node.Name, b.num).LID
			if _, err := e.fab.Route(from, to); err != nil {
				t.Errorf("rebooted after %s: %v", last, err)
			}
		}
	}
	return true
}
