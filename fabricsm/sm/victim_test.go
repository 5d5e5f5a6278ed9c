package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestVictimLosesNoPacket: whatever others do, traffic between two hosts of a
// tenant goes on. A packet each way follows every Set that a device takes.
func TestVictimLosesNoPacket(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(e *env)
	}{
		{"a forger takes a victim's GUIDs", func(e *env) { bounce(e, "h5", e.list.Find("h1").GUID) }},
		{"a forger takes a leaf's GUID", func(e *env) { bounce(e, "h5", e.list.Find("leaf1").GUID) }},
		{"a host claims to be master", func(e *env) {
			if err := e.fab.RogueSM("h5", &mad.SMInfo{GUID: 0x66, Priority: 15, SMState: ib.SMMaster}); err != nil {
				e.t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
		}},
		{"other hosts come and go", func(e *env) {
			for range 3 {
				bounce(e, "h5", e.list.Find("h5").GUID)
			}
		}},
		{"another tenant comes and goes", func(e *env) {
			in := e.intent
			in.Revision++
			for _, h := range hosts(e.list) {
				if h.node.Name == "h5" || h.node.Name == "h6" {
					in.Grants = append(in.Grants[:len(in.Grants):len(in.Grants)], h.grant(0x8002))
				}
			}
			before := e.intent
			e.wantChanged(in)
			e.mustSettle(10 * time.Second)
			before.Revision = in.Revision + 1
			e.wantChanged(before)
		}},
		{"the subnet manager starts again", func(e *env) {
			in := e.intent
			e.start()
			e.want(in)
		}},
	} {
		for name, cfg := range map[string]sm.Config{tt.name: {AuditPeriod: -1}, tt.name + ", with M_Keys": keyed(t)} {
			t.Run(name, func(t *testing.T) { loseNoPacket(t, cfg, tt.do) })
		}
	}
}

func loseNoPacket(t *testing.T, cfg sm.Config, do func(*env)) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, cfg, 1)
	e.start()
	in := sm.Intent{Revision: 1}
	for _, h := range hosts(l) {
		if h.node.Name == "h1" || h.node.Name == "h7" {
			in.Grants = append(in.Grants, h.grant(0x8001))
		}
	}
	e.want(in)
	e.mustSettle(10 * time.Second)
	flows := victims(e, sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h7", Port: 1}, 0x8001)
	sets := e.sets()
	do(e)
	e.run(3 * time.Second)
	for _, f := range flows {
		if n := f.Counts(); n.Lost+n.Strayed > 0 || n.Sent == 0 {
			t.Errorf("the victim's packets: %+v", n)
		}
	}
	t.Logf("%d Sets, %+v", e.sets()-sets, flows[0].Counts())
}

// victims starts traffic both ways.
func victims(e *env, a, b sim.Endpoint, key ib.PKey) (flows []*sim.Flow) {
	e.t.Helper()
	for _, ends := range [][2]sim.Endpoint{{a, b}, {b, a}} {
		f, err := e.fab.Flow(ends[0], ends[1], key, sim.FlowOptions{EachSet: true})
		if err != nil {
			e.t.Fatal(err)
		}
		flows = append(flows, f)
	}
	return flows
}
