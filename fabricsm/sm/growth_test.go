package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// endless is a host that shows a tree of switches without end behind its port. Each switch has fan ports, every one with a
// link. With fresh a switch returns other GUIDs each time that it is asked for its identity.
type endless struct {
	fan   uint8
	fresh bool
	asked int
	guids map[string]ib.GUID
	info  map[string]mad.SwitchInfo
	state map[string]map[ib.PortNum]*mad.PortInfo
}

func (l *endless) answer(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
	l.asked++
	at := fmt.Sprintf("%d", rest)
	switch r.MAD.Attr() {
	case mad.AttrNodeInfo:
		if _, ok := l.guids[at]; !ok || l.fresh {
			l.guids[at] = ib.GUID(0xbad00000 + l.asked)
		}
		g := l.guids[at]
		return answer(r, &mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: l.fan,
			NodeGUID: g, PortGUID: g, PartitionCap: 32, LocalPortNum: 1,
		})
	case mad.AttrSwitchInfo:
		if r.MAD.Method() == mad.MethodSet {
			var si mad.SwitchInfo
			if err := mad.Decode(r.MAD.Data(), &si); err != nil {
				panic(err)
			}
			l.info[at] = si
		}
		si := l.info[at]
		si.LinearFDBCap, si.PortStateChange = 49152, false
		return answer(r, &si)
	case mad.AttrPortInfo:
		if l.state[at] == nil {
			l.state[at] = map[ib.PortNum]*mad.PortInfo{}
		}
		num := ib.PortNum(r.MAD.Mod())
		if l.state[at][num] == nil && num != 0 {
			l.state[at][num] = &mad.PortInfo{PortState: ib.PortInit, MTUCap: ib.MTU4096, VLCap: 4, LinkWidthActive: 2, LinkSpeedActive: 4}
		}
		return poserPort(l.state[at], r)
	default:
		m := r.MAD
		m.Respond(mad.StatusOK)
		return m, true
	}
}

// A host that shows a fabric without end neither keeps the honest part from
// settling nor fills the memory, whether it is there at the start or comes later.
func TestEndlessFabric(t *testing.T) {
	const ceiling, entry = 400, 100
	for _, c := range []struct {
		name  string
		fan   uint8
		fresh bool
		late  bool

		longer time.Duration
	}{
		{name: "tree at the start", fan: 16, longer: 30 * time.Minute},
		{name: "binary tree at the start", fan: 3, longer: 2 * time.Minute},
		{name: "wide switches at the start", fan: 254, longer: 30 * time.Minute},
		{name: "ever new GUIDs at the start", fan: 8, fresh: true, longer: 30 * time.Minute},
		{name: "tree later", fan: 16, late: true, longer: 30 * time.Minute},
		{name: "chain later", fan: 2, late: true, longer: 30 * time.Minute},
		{name: "wide switches later, ever new GUIDs", fan: 254, fresh: true, late: true, longer: 30 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := tree(t, 16, 8)
			cfg := sm.Config{AuditPeriod: -1, Growth: sm.GrowthConfig{Ceiling: ceiling, Entry: entry}}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			bad := hosts(l)[3]
			forger := &endless{
				fan: c.fan, fresh: c.fresh, guids: map[string]ib.GUID{}, info: map[string]mad.SwitchInfo{},
				state: map[string]map[ib.PortNum]*mad.PortInfo{},
			}
			if !c.late {
				e.hostile = map[string]liar{bad.node.Name: forger.answer}
			}
			most := e.weighViews()
			e.start()
			e.want(sm.Intent{Revision: 1})
			if c.late {
				e.mustSettle(20 * time.Second)
				turnInto(e, &bad, forger.answer)
				e.run(50 * time.Millisecond)
			}
			e.mustSettle(20 * time.Second)
			for _, h := range hosts(l) {
				if pi := e.fab.PortInfo(h.node.Name, h.num); h.node != bad.node && pi.PortState != ib.PortActive {
					t.Errorf("%s is %v, want Active", h.node.Name, pi.PortState)
				}
			}
			if !slices.ContainsFunc(e.view.Faults, func(f fault.Fault) bool { return f.Kind == fault.TooManyNodes }) && c.fan > 2 {
				t.Errorf("nothing is told: %q", e.problems())
			}
			if asked := 100 * ceiling; forger.asked > asked {
				t.Errorf("the forger was asked %d times, want at most %d", forger.asked, asked)
			}
			before := forger.asked
			e.run(c.longer)
			if asked := 500 * ceiling; forger.asked-before > asked {
				t.Errorf("the forger was asked %d times in %v, want at most %d", forger.asked-before, c.longer, asked)
			}
			if slots := 20 * ceiling; e.view.Fabric.NumNodes() > slots {
				t.Errorf("%d slots for nodes, want at most %d", e.view.Fabric.NumNodes(), slots)
			}
			if *most > ceiling {
				t.Errorf("the fabric grew to the size of %d, want at most %d", *most, ceiling)
			}
		})
	}
}

// TestHeldEntryIsReleased checks that nodes behind a port that an operator marks healthy are let in, up to the ceiling. A
// held link stays held over a restart.
func TestHeldEntryIsReleased(t *testing.T) {
	const ceiling = 300
	l := tree(t, 16, 8)
	cfg := sm.Config{AuditPeriod: -1, Growth: sm.GrowthConfig{Ceiling: ceiling, Entry: 60}}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	bad := hosts(l)[3]
	forger := &endless{
		fan: 8, guids: map[string]ib.GUID{}, info: map[string]mad.SwitchInfo{}, state: map[string]map[ib.PortNum]*mad.PortInfo{},
	}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(20 * time.Second)
	turnInto(e, &bad, forger.answer)
	e.run(time.Second)
	held, ok := find(e.takeEvents(), func(u *health.Unhealthy) bool { return u.Condition == health.Overgrown })
	if !ok || held.Place != bad.place || e.linked(bad.place) {
		t.Fatalf("held %v, want %v; problems %q", held, bad.place, e.problems())
	}

	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(20 * time.Second)
	if e.linked(bad.place) {
		t.Error("the place is let in after a restart")
	}

	e.step(&sm.HealthMarked{Place: bad.place, Mark: health.MarkHealthy})
	e.run(3 * time.Second)
	e.mustSettle(20 * time.Second)
	if size := weigh(e.view.Fabric); !e.linked(bad.place) || size > ceiling {
		t.Errorf("linked %v, size %d, want at most %d; problems %q", e.linked(bad.place), size, ceiling, e.problems())
	}
}

// weighViews returns the size of the largest fabric that a view will show from now on. A view is weighed once: it does not
// change.
func (e *env) weighViews() *int {
	most, last := new(int), (*sm.View)(nil)
	e.onStep = func() {
		if e.view != nil && e.view != last {
			last, *most = e.view, max(*most, weigh(e.view.Fabric))
		}
	}
	return most
}

// weigh returns the size of a fabric as GrowthConfig counts it.
func weigh(f *topo.Fabric) (n int) {
	for i := range f.Nodes() {
		if tn := f.Node(i); tn.Type != 0 {
			n += 1 + int(tn.NumPorts)/16
		}
	}
	return n
}
