package sm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/transport"
)

// local has root on a host change its own adapter by an SMP that takes no link.
func (e *env) local(h *endPort, attr mad.AttrID, mod uint32, change func(data []byte)) {
	e.t.Helper()
	st, err := e.fab.Station(h.node.Name, false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	ask := func(method mad.Method, data []byte) []byte {
		p := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, Mod: mod, TID: 5}, &mad.Route{}, ib.MKey{})
		copy(p.MAD.Data(), data)
		got := st.Exchange([]transport.Packet{p}, nil)
		if len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
			e.t.Fatalf("%v %v of its own adapter: %d answers", method, attr, len(got))
		}
		return slices.Clone(got[0].MAD.Data())
	}
	data := ask(mad.MethodGet, nil)
	change(data)
	ask(mad.MethodSet, data)
	e.arrive(e.st.Take(nil))
}

// writes has root on a host change PortInfo of its adapter.
func (e *env) writes(h *endPort, change func(*mad.PortInfo)) {
	e.t.Helper()
	e.local(h, mad.AttrPortInfo, 0, func(data []byte) {
		var pi mad.PortInfo
		if err := mad.Decode(data, &pi); err != nil {
			e.t.Fatal(err)
		}
		pi.PortState, pi.PortPhysicalState, pi.LinkSpeedEnabled = ib.PortNop, ib.PhysNop, 0
		pi.LinkWidthEnabled, pi.LinkSpeedExtEnabled = 0, 0
		pi.MKey = e.fab.PortInfo(h.node.Name, h.num).MKey
		change(&pi)
		if err := mad.Encode(data, &pi); err != nil {
			e.t.Fatal(err)
		}
	})
}

// TestHostWrites: each field that a host writes into its own adapter is reported with its
// place, and put back.
func TestHostWrites(t *testing.T) {
	type try struct {
		name   string
		do     func(e *env, h, other *endPort)
		detail string
		victim bool
		within time.Duration
		right  func(e *env, h *endPort) bool // as it was left
	}
	info := func(e *env, h *endPort) mad.PortInfo { return e.fab.PortInfo(h.node.Name, h.num) }
	for _, tt := range []try{
		{"the LID of another tenant's host", func(e *env, h, other *endPort) {
			e.writes(h, func(pi *mad.PortInfo) { pi.LID = e.lidOf(other) })
		}, "LID", true, 3 * time.Second, nil},
		{"the LID of the subnet manager", func(e *env, h, _ *endPort) {
			e.writes(h, func(pi *mad.PortInfo) { pi.LID = e.view.LID })
		}, "LID", false, 3 * time.Second, nil},
		{"an LMC", func(e *env, h, _ *endPort) {
			e.writes(h, func(pi *mad.PortInfo) { pi.LMC = 3 })
		}, "LMC", false, 3 * time.Second, func(e *env, h *endPort) bool { return info(e, h).LMC == 0 }},
		{"another subnet manager", func(e *env, h, other *endPort) {
			e.writes(h, func(pi *mad.PortInfo) { pi.MasterSMLID = e.lidOf(other) })
		}, "MasterSMLID", false, 3 * time.Second, func(e *env, h *endPort) bool { return info(e, h).MasterSMLID == e.view.LID }},
		{"no M_Key", func(e *env, h, _ *endPort) {
			e.writes(h, func(pi *mad.PortInfo) { pi.MKey, pi.MKeyProtectBits = ib.MKey{}, 0 })
		}, "M_Key", false, 3 * time.Second, func(e *env, h *endPort) bool { return !info(e, h).MKey.IsZero() }},
		{"a P_Key", func(e *env, h, _ *endPort) {
			e.local(h, mad.AttrPKeyTable, 0, func(data []byte) { data[20], data[21] = 0x80, 0x02 })
		}, "P_Key table", false, 30 * time.Second, func(e *env, h *endPort) bool {
			return !slices.Contains(e.fab.PKeys(h.node.Name, h.num), 0x8002)
		}},
		{"an alias GUID that is another's", func(e *env, h, other *endPort) {
			e.local(h, mad.AttrGUIDInfo, 0, func(data []byte) {
				g := other.node.PortGUID(other.num)
				for i := range 8 {
					data[8+i] = byte(g >> (56 - 8*i))
				}
			})
		}, "alias GUID", true, 2 * time.Minute, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tree(t, 8, 8)
			cfg := keyed(t)
			cfg.AuditPeriod = 20 * time.Second
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			hs := hosts(l)
			e.start()
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8002)}, Hosts: places(hs)})
			e.mustSettle(time.Minute)
			e.run(45 * time.Second)
			e.takeEvents()
			if rows := e.listed(violation.HostWrote); len(rows) != 0 {
				t.Fatalf("told before anything was written: %+v", rows)
			}
			h, other := &hs[0], &hs[1]
			lid := e.lidOf(h)
			tt.do(e, h, other)
			e.run(tt.within)
			rows := e.listed(violation.HostWrote)
			if len(rows) != 1 || rows[0].Detail != tt.detail || rows[0].Place != h.place || rows[0].GUID != h.node.PortGUID(h.num) || rows[0].By != violation.ByPort || rows[0].Verdict != violation.Confirmed {
				t.Fatalf("rows %+v, want one of %q at %v", rows, tt.detail, h.place)
			}
			if want := other.node.PortGUID(other.num); tt.victim && rows[0].Victim != want {
				t.Errorf("the victim is %v, want %v", rows[0].Victim, want)
			}
			if told := loud(e.takeEvents(), violation.HostWrote); len(told) == 0 {
				t.Error("no event told of it")
			}
			if e.lidOf(h) != lid || tt.right != nil && !tt.right(e, h) {
				t.Errorf("it was not put back: LID %v, was %v", e.lidOf(h), lid)
			}
			if got := e.fab.GUIDs(h.node.Name, h.num); slices.Contains(got[1:], other.node.PortGUID(other.num)) {
				t.Errorf("the alias is still there: %v", got)
			}
			for i := range hs {
				if e.fab.PortInfo(hs[i].peer, hs[i].pnum).PortState != ib.PortActive {
					t.Errorf("the port of %s is not Active", hs[i].node.Name)
				}
			}
		})
	}
}

// TestRestartIsNoHostWrite: an adapter that is restarted, and so loses what it was given,
// is not said to have been written to.
func TestRestartIsNoHostWrite(t *testing.T) {
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.AuditPeriod = time.Second
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001)}, Hosts: places(hs)})
	e.mustSettle(time.Minute)
	for i := range 40 {
		e.run(time.Duration(37*i) * time.Millisecond)
		if err := e.fab.Reboot(hs[0].node.Name); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(3 * time.Second)
	}
	if rows := e.listed(violation.HostWrote); len(rows) != 0 {
		t.Errorf("told: %v", &rows[0])
	}
	for _, p := range e.problems() {
		if strings.Contains(p, "closed until it answers") {
			t.Error(p)
		}
	}
}

// settledReading is settledKeyed with LIDs read as by default.
func settledReading(t *testing.T) (*env, []endPort) {
	t.Helper()
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.LIDPeriod = 2 * time.Second
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(time.Minute)
	e.takeEvents()
	return e, hs
}

// refuse sets the adapter of a host to a LID and an M_Key of its own.
func (e *env) refuse(h *endPort, lid ib.LID, level uint8) {
	e.writes(h, func(pi *mad.PortInfo) {
		pi.LID, pi.MKey, pi.MKeyProtectBits = lid, ib.NewMKey(offered), level
	})
}

// state is that of the switch port in front of a host.
func (e *env) state(h *endPort) ib.PortState { return e.fab.PortInfo(h.peer, h.pnum).PortState }

// TestShownForeignKeyCloses: a host sets its adapter to another tenant's LID and an M_Key that
// the adapter shows, or hides. Its switch port is closed, without a count of packets.
func TestShownForeignKeyCloses(t *testing.T) {
	for _, level := range []uint8{0, 1} {
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			e, hs := settledReading(t)
			h, other := &hs[0], &hs[1]
			e.refuse(h, e.lidOf(other), level)
			e.run(3 * time.Second)
			if s := e.state(h); s != ib.PortInit {
				t.Errorf("its switch port is %v, want Init; problems %q", s, e.problems())
			}
			if _, told := find(e.takeEvents(), func(r *sm.MKeyRefused) bool { return r.Place == h.place && !r.Open }); !told {
				t.Error("not told")
			}
			if s := e.state(other); s != ib.PortActive {
				t.Errorf("the switch port of the victim is %v", s)
			}
			if err := e.fab.Reboot(h.node.Name); err != nil {
				t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
			e.run(3 * time.Second)
			if s := e.state(h); s != ib.PortActive || len(e.problems()) != 0 {
				t.Errorf("after a restart its switch port is %v; problems %q", s, e.problems())
			}
		})
	}
}

// TestSilenceClosesNothing: an adapter that falls silent, or that refuses its key and
// sends nothing, or whose packets are not counted, keeps its switch port.
func TestSilenceClosesNothing(t *testing.T) {
	for name, do := range map[string]func(e *env, h, other *endPort){
		"silent": func(e *env, h, _ *endPort) {
			if err := e.fab.SetFault(h.node.Name, sim.Fault{Silent: true}); err != nil {
				e.t.Fatal(err)
			}
		},
		"refuses": func(e *env, h, other *endPort) { e.refuse(h, e.lidOf(other), 2) },
	} {
		t.Run(name, func(t *testing.T) {
			e, hs := settledReading(t)
			h := &hs[0]
			do(e, h, &hs[1])
			guid := h.node.PortGUID(h.num)
			for range 20 {
				e.run(time.Second)
				e.step(&sm.PortCounted{GUID: guid, Packets: 77}) // it does not grow
			}
			if s := e.state(h); s != ib.PortActive {
				t.Errorf("its switch port is %v", s)
			}
			if len(e.view.Refusing) == 0 {
				t.Error("nobody is asked to count its packets, so nothing is proven")
			}
			e.step(&sm.PortCounted{GUID: guid, Packets: 5}) // reset
			e.step(&sm.PortCounted{GUID: guid, Packets: 6})
			e.run(time.Second)
			if s := e.state(h); s != ib.PortActive {
				t.Errorf("after a reset its switch port is %v", s)
			}
			e.step(&sm.PortCounted{GUID: guid, Packets: 7})
			e.run(time.Second)
			if s := e.state(h); s != ib.PortInit {
				t.Errorf("although it sends, its switch port is %v", s)
			}
		})
	}
}

// TestManyThatRefuse: where many adapters refuse their keys at once, only some are closed,
// and the others are reported.
func TestManyThatRefuse(t *testing.T) {
	e, hs := settledReading(t)
	for i := range hs {
		e.refuse(&hs[i], e.lidOf(&hs[i]), 0)
	}
	e.run(5 * time.Second)
	open := 0
	for i := range hs {
		if e.state(&hs[i]) == ib.PortActive {
			open++
		}
	}
	if open != len(hs)-4 {
		t.Errorf("%d of %d are open, want all but 4", open, len(hs))
	}
	told := 0
	for _, ev := range e.takeEvents() {
		if r, ok := ev.(*sm.MKeyRefused); ok && r.Open {
			told++
		}
	}
	if told != open {
		t.Errorf("%d are told to be left open, want %d", told, open)
	}
}

// TestRefusesAgainAndAgain: an adapter that refuses its key after each restart is isolated
// as unhealthy.
func TestRefusesAgainAndAgain(t *testing.T) {
	e, hs := settledReading(t)
	h := &hs[0]
	for range 3 {
		e.refuse(h, e.lidOf(&hs[1]), 0)
		e.run(3 * time.Second)
		if err := e.fab.Reboot(h.node.Name); err != nil {
			t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
		e.run(3 * time.Second)
	}
	u, told := find(e.takeEvents(), func(u *health.Unhealthy) bool { return u.Condition == health.RefusesKey && u.Place == h.place })
	if !told || u.Action != health.Isolate || e.state(h) != ib.PortInit {
		t.Fatalf("told %v; its switch port is %v", u, e.state(h))
	}
	e.run(2 * time.Minute)
	if s := e.state(h); s != ib.PortActive {
		t.Errorf("after two minutes its switch port is %v; problems %q", s, e.problems())
	}
}
