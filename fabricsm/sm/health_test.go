package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// pull takes a cable out, or puts it back.
func (e *env) pull(h *endPort) {
	e.t.Helper()
	if err := e.fab.Unlink(h.node.Name, h.num); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}

func (e *env) plug(h *endPort) {
	e.t.Helper()
	if err := e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}

// flap pulls a cable and puts it back n times.
func (e *env) flap(h *endPort, n int) {
	e.t.Helper()
	for range n {
		e.pull(h)
		e.run(200 * time.Millisecond)
		e.plug(h)
		e.run(300 * time.Millisecond)
	}
}

func unhealthy(pl ib.Place, cond health.Condition) func(*health.Unhealthy) bool {
	return func(u *health.Unhealthy) bool { return u.Place == pl && u.Condition == cond }
}

func (e *env) linked(pl ib.Place) bool {
	f := e.view.Fabric
	sw := f.NodeByGUID(pl.Switch)
	return sw != topo.None && f.Port(f.PortOf(sw, pl.Port)).Peer != topo.None
}

// TestFlappingHost: a host whose link goes up and down is cut off after so many
// times, for longer each time, and is welcome when it has held still. It does
// not come back by a restart of the subnet manager.
func TestFlappingHost(t *testing.T) {
	for _, action := range []health.Action{health.NoDiscover, health.Isolate, health.Disable} {
		t.Run(action.String(), func(t *testing.T) {
			l := tree(t, 8, 8)
			cfg := sm.Config{AuditPeriod: -1, Health: health.Config{
				Flapping: health.Rule{Count: 5, Window: time.Minute, Action: action}, Recover: 30 * time.Second,
			}}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			h := hosts(l)[3]
			e.start()
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}})
			e.mustSettle(10 * time.Second)
			e.flap(&h, 4)
			if !e.linked(h.place) {
				t.Fatal("cut off after four times, the rule says five")
			}
			e.flap(&h, 1)
			e.run(2 * time.Second)
			if _, ok := find(e.takeEvents(), unhealthy(h.place, health.Flapping)); !ok {
				t.Error("not told")
			}
			if e.linked(h.place) || !slices.ContainsFunc(e.problems(), func(p string) bool { return strings.Contains(p, "flapping") }) {
				t.Errorf("linked %v, want false; problems %q", e.linked(h.place), e.problems())
			}
			pi := e.fab.PortInfo(h.peer, h.pnum)
			switch {
			case action == health.Isolate && pi.PortState > ib.PortInit:
				t.Errorf("the port of the isolated is %v, want Init", pi.PortState)
			case action == health.Disable && pi.PortPhysicalState != ib.PhysDisabled:
				t.Errorf("the port of the disabled is %v, want Disabled", pi.PortPhysicalState)
			}
			e.start()
			e.want(e.intent)
			e.run(10 * time.Second)
			if e.linked(h.place) {
				t.Error("a restart let it in again")
			}
			e.run(40 * time.Second)
			events := e.takeEvents()
			if _, ok := find(events, func(h2 *health.Healthy) bool { return h2.Place == h.place }); !ok || !e.linked(h.place) {
				t.Errorf("not let in again after it held still: told %v, linked %v", ok, e.linked(h.place))
			}
			e.mustSettle(20 * time.Second)
			if s := e.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
				t.Errorf("its port is %v, want Active; problems %q", s, e.problems())
			}
			e.flap(&h, 5)
			e.takeEvents()
			e.run(45 * time.Second)
			if _, ok := find(e.takeEvents(), func(*health.Healthy) bool { return true }); ok {
				t.Error("the second time it was let in as early as the first")
			}
		})
	}
}

// TestFlappingTrunk: a cable between switches that flaps is no longer used, and
// the other one carries all.
func TestFlappingTrunk(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	all := cables(l)
	i := slices.IndexFunc(all, func(c cable) bool {
		return l.Find(c.node).Type == ib.NodeSwitch && l.Find(c.peer).Type == ib.NodeSwitch
	})
	c := all[i]
	for range 14 {
		for _, f := range []func() error{
			func() error { return e.fab.Unlink(c.node, c.num) },
			func() error { return e.fab.Relink(c.node, c.num, c.peer, c.pnum) },
		} {
			if err := f(); err != nil {
				t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
			e.run(400 * time.Millisecond)
		}
	}
	e.mustSettle(10 * time.Second)
	if _, ok := find(e.takeEvents(), func(u *health.Unhealthy) bool { return u.Condition == health.Flapping && u.Action == health.Isolate }); !ok {
		t.Error("not told")
	}
	pl := ib.Place{Switch: l.Find(c.node).GUID, Port: c.num}
	if e.linked(pl) {
		t.Error("the cable is still used")
	}
	for _, h := range hosts(l) {
		if s := e.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
			t.Errorf("%s is %v, want Active", h.node.Name, s)
		}
	}
	e.run(2 * time.Minute)
	e.mustSettle(10 * time.Second)
	if !e.linked(pl) {
		t.Errorf("the cable is not used again after it held still; problems %q", e.problems())
	}
}

// TestHealthMarks checks that an operator's mark goes above the rules, and is remembered.
func TestHealthMarks(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	h, own := hosts(l)[3], l.Find("sm").Ports[1]
	front := ib.Place{Switch: l.Find(own.Peer).GUID, Port: own.PeerPort}
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)

	switches := len(e.view.Fabric.Switches())
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkUnhealthy})
	e.mustSettle(10 * time.Second)
	if e.linked(h.place) {
		t.Error("marked unhealthy and still part of the fabric")
	}
	e.run(10 * time.Minute)
	e.start()
	e.want(e.intent)
	e.mustSettle(10 * time.Second)
	if e.linked(h.place) {
		t.Error("let in although an operator says that it is unhealthy")
	}
	e.step(&sm.HealthMarked{Place: h.place, Mark: health.MarkHealthy})
	e.mustSettle(10 * time.Second)
	if !e.linked(h.place) {
		t.Error("marked healthy and still cut off")
	}
	e.flap(&h, 20)
	e.mustSettle(10 * time.Second)
	if !e.linked(h.place) {
		t.Error("cut off although an operator says that it is healthy")
	}

	for _, pl := range []ib.Place{front, {Switch: front.Switch}} {
		e.step(&sm.HealthMarked{Place: pl, Mark: health.MarkUnhealthy})
		e.mustSettle(10 * time.Second)
		if !e.linked(front) || len(e.view.Fabric.Switches()) != switches {
			t.Errorf("a mark at %v cut off the subnet manager itself", pl)
		}
	}
}

// TestMarkedSwitch: a spine that is marked unhealthy carries nothing.
func TestMarkedSwitch(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	spine := ib.GUID(0)
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeSwitch && !slices.ContainsFunc(hosts(l), func(h endPort) bool { return h.peer == n.Name }) && n.Name != l.Find("sm").Ports[1].Peer {
			spine = n.GUID
		}
	}
	e.step(&sm.HealthMarked{Place: ib.Place{Switch: spine}, Mark: health.MarkUnhealthy})
	e.mustSettle(10 * time.Second)
	if e.view.Fabric.NodeByGUID(spine) != topo.None {
		t.Error("the spine is still part of the fabric")
	}
	for _, h := range hosts(l) {
		if s := e.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
			t.Errorf("%s is %v, want Active", h.node.Name, s)
		}
	}
	e.step(&sm.HealthMarked{Place: ib.Place{Switch: spine}, Mark: health.MarkNone})
	e.run(5 * time.Second) // no pause has to pass
	e.mustSettle(10 * time.Second)
	if e.view.Fabric.NodeByGUID(spine) == topo.None {
		t.Errorf("the spine did not come back; problems %q", e.problems())
	}
}

// TestConditions checks that each condition is counted and reported.
func TestConditions(t *testing.T) {
	silent := func([]ib.PortNum, *sm.Request) (mad.MAD, bool) { return mad.MAD{}, true }
	refuse := func(attr mad.AttrID, method mad.Method) liar {
		return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
			if len(rest) > 0 || r.MAD.Attr() != attr || r.MAD.Method() != method {
				return mad.MAD{}, false
			}
			m := r.MAD
			m.Respond(mad.StatusInvalidField)
			return m, true
		}
	}
	tests := []struct {
		cond health.Condition
		do   func(e *env, h *endPort)
	}{
		{health.Unresponsive, func(e *env, h *endPort) {
			for range 6 {
				e.hostile = map[string]liar{h.node.Name: silent}
				e.trapFrom(e.lidOf(h), mad.TrapLocalChange)
				e.run(3 * time.Second)
				e.hostile = nil
				e.run(20 * time.Second)
			}
		}},
		{health.Noisy, func(e *env, h *endPort) {
			lid := e.lidOf(h)
			for range 700 {
				e.trapFrom(lid, mad.TrapLocalChange)
			}
		}},
		{health.SetErrors, func(e *env, h *endPort) {
			e.hostile = map[string]liar{h.node.Name: refuse(mad.AttrPKeyTable, mad.MethodSet)}
			e.want(sm.Intent{Revision: 2, Grants: []sm.Grant{h.grant(0x8001)}})
			e.run(8 * time.Minute)
		}},
		{health.IllegalAnswer, func(e *env, h *endPort) {
			e.hostile = map[string]liar{h.node.Name: refuse(mad.AttrPortInfo, mad.MethodGet)}
			for range 60 {
				e.trapFrom(e.lidOf(h), mad.TrapLocalChange)
				e.run(5 * time.Second)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.cond.String(), func(t *testing.T) {
			l := tree(t, 8, 8)
			e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
			h := hosts(l)[3]
			e.start()
			e.want(sm.Intent{Revision: 1})
			e.mustSettle(10 * time.Second)
			tt.do(e, &h)
			u, ok := find(e.takeEvents(), unhealthy(h.place, tt.cond))
			if !ok || u.Action != health.Report {
				t.Fatalf("told %v; problems %q", u, e.problems())
			}
			e.hostile = nil
			e.run(30 * time.Minute)
			if _, ok := find(e.takeEvents(), func(x *health.Healthy) bool { return x.Place == h.place }); !ok {
				t.Error("not told that it is healthy again")
			}
		})
	}
}

// TestActionText: actions are read as they are written.
func TestActionText(t *testing.T) {
	for a := health.Report; a <= health.Disable; a++ {
		text, err := a.MarshalText()
		var back health.Action
		if err != nil || back.UnmarshalText(text) != nil || back != a {
			t.Errorf("action %v is read back as %v", a, back)
		}
	}
	var a health.Action
	if err := a.UnmarshalText([]byte("explode")); err == nil || !strings.Contains(err.Error(), "isolate") {
		t.Errorf("error %v, want what is allowed", err)
	}
}
