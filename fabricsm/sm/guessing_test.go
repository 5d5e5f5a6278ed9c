package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topospec"
)

// guarded is a settled fabric with M_Keys and a declared topology, which is only
// observed, whose devices queue what they notice. tune changes the configuration.
func guarded(t *testing.T, notices int, tune func(*sm.Config)) (*env, []endPort) {
	t.Helper()
	l := tree(t, 8, 8)
	cfg := keyed(t)
	cfg.MKey.Places = keyplace.Declared
	cfg.Topology = sm.TopologyConfig{Spec: law(t, l), Mode: topospec.Observe}
	cfg.SMKey = rightKey
	cfg.Health.Guessing = health.Rule{Count: 10, Window: 10 * time.Minute, Action: health.Disable}
	if tune != nil {
		tune(&cfg)
	}
	e := newEnv(t, l, sim.Options{LoseSilently: true, Device: sim.Device{NoticeQueue: 8}}, cfg, 1)
	if notices == 0 {
		e = newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	}
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8001)}, Hosts: places(hs)})
	e.mustSettle(time.Minute)
	e.run(time.Second)
	e.takeEvents()
	return e, hs
}

// guess has a host try M_Keys on its leaf switch.
func (e *env) guess(h *endPort, n int, as func(i int, m *sim.Forged)) {
	way := mad.MakeRoute(h.num)
	for i := range n {
		m := smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
		m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
		m.MAD.SetTID(ib.TID(i))
		if as != nil {
			as(i, m)
		}
		e.forge(h.node.Name, m)
		e.run(20 * time.Millisecond)
	}
	e.run(time.Second)
}

// isOff reports whether a switch port is switched off.
func (e *env) isOff(h *endPort) bool {
	return e.fab.PortInfo(h.peer, h.pnum).PortPhysicalState == ib.PhysDisabled
}

// acted returns the first action that was taken for guessing.
func acted(events []sm.Event) *health.Unhealthy {
	u, _ := find(events, func(u *health.Unhealthy) bool { return u.Condition == health.Guessing && u.Action != health.Report })
	return u
}

// wantOn fails the test if a port other than one was switched off.
func (e *env) wantOn(but *endPort, hs []endPort) {
	e.t.Helper()
	for i := range hs {
		if h := &hs[i]; h != but && e.isOff(h) {
			e.t.Errorf("the port of %s is switched off", h.node.Name)
		}
	}
}

// TestGuessingIsCutOff checks that a host that tries M_Keys is switched off after the tenth proven try, for ever longer,
// until an operator releases it. No other host is affected.
func TestGuessingIsCutOff(t *testing.T) {
	e, hs := guarded(t, 8, nil)
	bad := &hs[0]
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		e.guess(bad, 40, nil)
		events := e.takeEvents()
		noSecrets(t, events)
		if u := acted(events); u == nil || u.Place != bad.place || u.Action != health.Disable || u.Count != 10 || !e.isOff(bad) {
			t.Fatalf("after 40 guesses: %v, switched off: %v; problems %q", u, e.isOff(bad), e.problems())
		}
		e.wantOn(bad, hs)
		e.run(pause - 10*time.Second)
		if !e.isOff(bad) {
			t.Fatalf("it is on again before %v", pause)
		}
		e.run(30 * time.Second)
		if e.isOff(bad) {
			t.Fatalf("it is off after %v", pause)
		}
		e.mustSettle(time.Minute)
	}
	e.guess(bad, 40, nil)
	e.start() // what was found lasts over a restart
	e.want(e.intent)
	e.mustSettle(time.Minute)
	if !e.isOff(bad) {
		t.Error("a restart switched it on")
	}
	e.step(&sm.HealthMarked{Place: bad.place})
	e.run(5 * time.Second)
	if e.isOff(bad) {
		t.Error("it is off although a person let it go")
	}
}

// TestGuessingBlamesNobodyElse: a host tries keys and sees to it that the reports
// name another one. That one is not acted upon, whatever the host does.
func TestGuessingBlamesNobodyElse(t *testing.T) {
	for _, tt := range []struct {
		name      string
		notices   int
		cut       bool // the real sender can be proven
		byDefault bool // under the default rule, which trusts no way
		as        func(e *env, victim *endPort) func(i int, m *sim.Forged)
	}{
		{
			name: "by LID, under the LID of the victim", notices: 8,
			as: func(e *env, victim *endPort) func(int, *sim.Forged) {
				return func(i int, m *sim.Forged) {
					*m = *smp(mad.MethodGet, mad.AttrPortInfo, nil, e.fab.PortInfo(victim.peer, 0).LID)
					m.SLID = e.lidOf(victim)
					m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
				}
			},
		},
		{
			name: "with hops that are said to be over", notices: 8, cut: true,
			as: func(_ *env, victim *endPort) func(int, *sim.Forged) {
				return func(i int, m *sim.Forged) {
					way := mad.MakeRoute(1, 1, 1)
					*m = *smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
					m.MAD.SetHopPointer(3)
					m.MAD.ReturnPath()[1], m.MAD.ReturnPath()[2] = byte(victim.pnum), byte(victim.num)
					m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
				}
			},
		},
		{
			name: "with a path that is said to be over", notices: 8, byDefault: true,
			as: func(_ *env, victim *endPort) func(int, *sim.Forged) {
				return func(i int, m *sim.Forged) {
					way := mad.MakeRoute(1)
					*m = *smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
					m.MAD.SetHopPointer(2)
					m.MAD.ReturnPath()[1] = byte(victim.pnum)
					m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
				}
			},
		},
		{
			name: "and forges a trap for each that names the victim", notices: 0,
			as: func(e *env, victim *endPort) func(int, *sim.Forged) {
				leaf := e.fab.PortInfo(victim.peer, 0).LID
				return func(i int, m *sim.Forged) {
					lid := smp(mad.MethodGet, mad.AttrPortInfo, nil, leaf)
					lid.SLID = e.lidOf(victim)
					lid.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
					e.forge(hosts(e.list)[0].node.Name, lid)
					*m = *notice(e.t, leaf, e.view.LID, ib.TID(0x4000+i), &mad.Trap256{
						NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, IssuerLID: leaf},
						LID:          ib.PermissiveLID, DrSLID: ib.PermissiveLID, Method: mad.MethodGet, AttributeID: mad.AttrPortInfo,
						DRNotice: true, DRHopCount: 1, DRReturnPath: [30]ib.PortNum{1: victim.pnum}, MKey: ib.NewMKey(offered + uint64(i)),
					})
				}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, hs := guarded(t, tt.notices, func(c *sm.Config) {
				if tt.byDefault {
					c.Health.Guessing = health.Rule{}
				}
			})
			bad, victim := &hs[0], &hs[1]
			if bad.peer != victim.peer {
				t.Fatalf("%s and %s are at two switches", bad.node.Name, victim.node.Name)
			}
			e.guess(bad, 60, tt.as(e, victim))
			e.run(20 * time.Second)
			events := e.takeEvents()
			if _, ok := find(events, func(g *violation.KeyGuessing) bool { return g.Count >= 10 }); !ok {
				t.Error("nobody is told that keys are guessed")
			}
			u := acted(events)
			if (u != nil) != tt.cut || tt.cut && u.Place != bad.place {
				t.Errorf("acted: %v; want that: %v", u, tt.cut)
			}
			if tt.cut != e.isOff(bad) {
				t.Errorf("it is switched off: %v, want %v", e.isOff(bad), tt.cut)
			}
			e.wantOn(bad, hs)
			if tt.byDefault && e.fab.PortInfo(victim.peer, 0).MKeyViolations == 0 {
				t.Error("the switch discarded what says that its path is over, so nothing is proven")
			}
		})
	}
}

// TestAdaptersProveNothing: the notices of an adapter that is in the hands of its
// host accuse another one.
func TestAdaptersProveNothing(t *testing.T) {
	e, hs := guarded(t, 8, nil)
	bad, victim := &hs[0], &hs[1]
	shown := uint64(0)
	e.hostile = map[string]liar{bad.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 || r.MAD.Attr() != mad.AttrNotice {
			return mad.MAD{}, false
		}
		shown++
		return answer(r, &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, Count: 9, Toggle: shown%2 == 0},
			LID:          ib.PermissiveLID, DrSLID: ib.PermissiveLID, DRNotice: true, DRHopCount: 2, DRReturnPath: [30]ib.PortNum{1: victim.pnum, 2: 1}, MKey: ib.NewMKey(offered + shown),
		})
	}}
	e.guess(victim, 60, func(i int, m *sim.Forged) { // it has its own adapter count
		way := mad.MakeRoute(1, bad.pnum)
		*m = *smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
		m.MAD.SetMKey(ib.NewMKey(offered)) // the victim has one wrong key, which is no guess
		m.MAD.SetTID(ib.TID(i))
	})
	if u := acted(e.takeEvents()); u != nil || shown > 0 {
		t.Errorf("acted: %v; an adapter was asked for its notices %d times", u, shown)
	}
	e.wantOn(nil, hs)
}

// TestToolsDoNotGuess checks that a tool that maps the fabric without a key, or with one old key for each device, does not
// count as guessing.
func TestToolsDoNotGuess(t *testing.T) {
	for name, key := range map[string]ib.MKey{"no key": {}, "one old key": ib.NewMKey(offered)} {
		t.Run(name, func(t *testing.T) {
			e, hs := guarded(t, 8, nil)
			e.guess(&hs[0], 60, func(_ int, m *sim.Forged) { m.MAD.SetMKey(key) })
			events := e.takeEvents()
			if u := acted(events); u != nil {
				t.Errorf("acted: %v", u)
			}
			if e.smps["Get Notice"] == 0 {
				t.Error("no notices were read, so nothing is proven")
			}
			e.wantOn(nil, hs)
		})
	}
}

// TestNoticesCostLittle: a host that has a switch notice things for ever, in a way
// that proves nothing, costs a bounded number of requests, and unsettles nothing.
func TestNoticesCostLittle(t *testing.T) {
	e, hs := guarded(t, 8, nil)
	before := e.smps["Get Notice"] + e.smps["Set Notice"]
	leaf := e.fab.PortInfo(hs[0].peer, 0).LID
	e.guess(&hs[0], 500, func(i int, m *sim.Forged) {
		*m = *smp(mad.MethodGet, mad.AttrPortInfo, nil, leaf)
		m.SLID = e.lidOf(&hs[1])
		m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
		if i > 100 && !e.view.Settled {
			t.Fatal("the fabric is not settled")
		}
	})
	if n := e.smps["Get Notice"] + e.smps["Set Notice"] - before; n == 0 || n > 1500 {
		t.Errorf("%d requests for notices in 10 s", n)
	}
}

// TestGuessingSMKeys checks that a host that sends commands with one SM_Key after the other is switched off. A host that
// sends them under another's LID, or an allowed subnet manager with an old key, causes no port to be switched off.
func TestGuessingSMKeys(t *testing.T) {
	for _, tt := range []struct {
		name     string
		directed bool
		key      func(i int) uint64
		cut      bool
	}{
		{"one after the other", true, func(i int) uint64 { return offered + uint64(i) }, true},
		{"the same again and again", true, func(int) uint64 { return offered }, false},
		{"by LID, under another's", false, func(i int) uint64 { return offered + uint64(i) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// With M_Keys our own port lets no host through that has to guess.
			e, hs := guarded(t, 0, func(c *sm.Config) { c.MKey = mkeys.Config{} })
			bad := &hs[0]
			way := e.routeToSM(bad)
			for i := range 40 {
				f := &sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID}
				route := &way
				if !tt.directed {
					f.SLID, f.DLID, route = e.lidOf(&hs[1]), e.view.LID, nil
				}
				mad.NewSMP(&f.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrSMInfo, TID: ib.TID(i + 1), Mod: uint32(mad.SMInfoHandover)}, route, ib.MKey{})
				if err := mad.Encode(f.MAD.Data(), &mad.SMInfo{GUID: bad.node.PortGUID(bad.num), SMKey: ib.NewSMKey(tt.key(i)), Priority: 15, SMState: ib.SMMaster}); err != nil {
					t.Fatal(err)
				}
				e.forge(bad.node.Name, f)
				e.run(20 * time.Millisecond)
			}
			e.run(5 * time.Second)
			events := e.takeEvents()
			noSecrets(t, events)
			if u := acted(events); (u != nil) != tt.cut || tt.cut && u.Place != bad.place {
				t.Errorf("acted: %v, want that %v", u, tt.cut)
			}
			if e.isOff(bad) != tt.cut {
				t.Errorf("it is switched off: %v, want %v", e.isOff(bad), tt.cut)
			}
			e.wantOn(bad, hs)
			if e.view.State != ib.SMMaster {
				t.Errorf("we are %v", e.view.State)
			}
		})
	}
}

// routeToSM returns a directed route from a host to the subnet manager.
func (e *env) routeToSM(h *endPort) mad.Route {
	e.t.Helper()
	type step struct {
		node string
		way  mad.Route
	}
	first, _ := (mad.Route{}).Append(h.num)
	seen := map[string]bool{h.peer: true}
	for queue := []step{{h.peer, first}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.node == "sm" {
			return at.way
		}
		n := e.list.Find(at.node)
		if n.Type != ib.NodeSwitch {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if peer := n.Ports[num].Peer; peer != "" && !seen[peer] {
				seen[peer] = true
				way, _ := at.way.Append(ib.PortNum(num))
				queue = append(queue, step{peer, way})
			}
		}
	}
	e.t.Fatalf("no way from %s to the subnet manager", h.node.Name)
	return mad.Route{}
}

// TestMixedRoutesTraceNobody: a host sends SMPs whose last part is routed by LID. The path that the device reports ends at
// another switch, where the port of the same number may belong to any host. No host is traced by it, nor acted upon.
func TestMixedRoutesTraceNobody(t *testing.T) {
	e, hs := guarded(t, 8, nil)
	bad := &hs[0]
	var victim *endPort // at another leaf, behind the port of the same number
	for i := range hs {
		if hs[i].peer != bad.peer && hs[i].pnum == bad.pnum {
			victim = &hs[i]
		}
	}
	if victim == nil {
		t.Fatal("no host is behind the port of the same number of another leaf")
	}
	leaf := e.fab.PortInfo(victim.peer, 0)
	way := mad.MakeRoute(bad.num)
	e.guess(bad, 60, func(i int, m *sim.Forged) {
		*m = *smp(mad.MethodGet, mad.AttrPortInfo, &way, 0)
		m.MAD.SetDrDLID(leaf.LID)
		m.MAD.SetMKey(ib.NewMKey(offered + uint64(i)))
		m.MAD.SetTID(ib.TID(i))
	})
	e.run(10 * time.Second)
	if n := e.fab.PortInfo(victim.peer, 0).MKeyViolations - leaf.MKeyViolations; n != 60 {
		t.Fatalf("the other leaf counted %d, so nothing is proven", n)
	}
	for _, v := range e.listed(violation.BadMKey) {
		if v.By != violation.ByWay || v.Place != bad.place {
			t.Errorf("accused: %v", &v)
		}
	}
	if u := acted(e.takeEvents()); u != nil {
		t.Errorf("acted: %v", u)
	}
	e.wantOn(nil, hs)
}

// TestGuessingClassKeys checks that wrong keys of a class that a device has counted are reported as guessing, too, by kind
// of key.
func TestGuessingClassKeys(t *testing.T) {
	e, hs := settledKeyed(t)
	guid := hs[0].node.PortGUID(hs[0].num)
	for range 3 {
		e.step(&sm.ClassTrapJudged{Kind: keys.CCKey, GUID: guid, Counted: 8})
		e.run(time.Second)
	}
	var counts []uint64
	for _, ev := range e.takeEvents() {
		if g, ok := ev.(*violation.KeyGuessing); ok && g.Kind == keys.CCKey && g.GUID == guid && g.Place == hs[0].place {
			counts = append(counts, g.Count)
		}
	}
	if !slices.Equal(counts, []uint64{16, 24}) {
		t.Errorf("told with counts %v, want 16 and 24", counts)
	}
}
