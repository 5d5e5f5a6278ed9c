package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// standing is a fabric that a sibling has settled, and that the core of another node has
// read along for a minute.
func standing(t *testing.T, wait time.Duration, wanted func(hs []endPort) sm.Intent) (e *env, l *netlist.Netlist, hs []endPort) {
	t.Helper()
	return standingBy(t, sm.Config{IntentWait: wait}, nil, wanted)
}

// standingBy is standing with a configuration, and a fabric that is changed before it is read.
func standingBy(t *testing.T, cfg sm.Config, change func(e *env, hs []endPort), wanted func(hs []endPort) sm.Intent) (e *env, l *netlist.Netlist, hs []endPort) {
	t.Helper()
	l = tree(t, 16, 8)
	hs = hosts(l)
	first, second := hs[0].node.Name, hs[9].node.Name
	wait := cfg.IntentWait
	cfg.Followed, cfg.Siblings, cfg.IntentWait = true, []sm.Sibling{siblingAt(l, first), siblingAt(l, second)}, 0
	e = newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	e.managedBy(second, cfg.Siblings...)
	e.managedBy(first, cfg.Siblings...)
	e.want(wanted(hs))
	e.mustSettle(10 * time.Second)
	e.run(time.Minute)
	if change != nil {
		change(e, hs)
	}

	e.st.Close()
	var err error
	if e.st, err = e.fab.Station(second, true); err != nil {
		t.Fatal(err)
	}
	e.cfg.PortGUID, e.cfg.IntentWait, e.node = e.st.GUID(), wait, second
	before, saved := e.sets(), len(e.facts)
	e.start()
	e.step(&sm.Mandate{})
	e.run(time.Minute)
	if !e.core.Overlooks() || e.sets() != before || len(e.facts) != saved {
		t.Fatalf("the fabric is read: %v; %d Sets and %d facts of one that stands by", e.core.Overlooks(), e.sets()-before, len(e.facts)-saved)
	}
	return e, l, hs
}

// TestStandbyTakesOver: with a mandate, a core that has read along writes where the Subnet
// Manager is before it reads anything again, and nothing else, and looks at every port again
// within two minutes.
func TestStandbyTakesOver(t *testing.T) {
	wanted := func(hs []endPort) sm.Intent {
		return sm.Intent{Revision: 1, Grants: []sm.Grant{hs[3].grant(0x8001), hs[5].grant(0x8001)}}
	}
	e, l, hs := standing(t, 30*time.Second, wanted)
	asked, lids := countRenewals(e), e.shownLIDs(l)
	inherited := false
	e.onStep = func() {
		if v := e.view; v.Inherited && !inherited {
			inherited = true
			if v.Settled || v.State != ib.SMMaster || v.Tables == nil {
				t.Errorf("a view of what was inherited: %v, settled %v, tables %v", v.State, v.Settled, v.Tables != nil)
			}
			for _, h := range hs {
				id := v.Fabric.PortByGUID(h.node.PortGUID(h.num))
				if keys, _ := v.PKeys(id); v.Fabric.Port(id).LID != lids[h.node.Name] || len(keys) != len(e.fab.PKeys(h.node.Name, h.num)) {
					t.Errorf("%s is shown with LID %v and P_Keys %v", h.node.Name, v.Fabric.Port(id).LID, keys)
				}
			}
		}
	}
	before := make(map[string]int)
	for kind, n := range e.smps {
		before[kind] = n
	}
	e.step(&sm.Mandate{Held: true})
	e.want(wanted(hs))
	e.mustSettle(10 * time.Second)
	if e.onStep = nil; !inherited {
		t.Error("what was inherited is not shown before the fabric is settled")
	}
	for kind, n := range e.smps {
		d := n - before[kind]
		if strings.HasPrefix(kind, "Set ") && kind != "Set PortInfo" && d > 0 {
			t.Errorf("%d times %s, want only PortInfo, which says where the SM is", d, kind)
		}
		if kind == "Get LinearForwardingTable" && d > 0 || kind == "Set PortInfo" && (d == 0 || d > len(l.Nodes)) {
			t.Errorf("%d times %s for %d nodes", d, kind, len(l.Nodes))
		}
	}
	for name, lid := range e.shownLIDs(l) {
		if lid != lids[name] {
			t.Errorf("the LID of %s went from %d to %d", name, lids[name], lid)
		}
	}
	if len(asked) > 0 {
		t.Errorf("clients were asked to register again: %v", asked)
	}
	gets := e.smps["Get PortInfo"]
	e.run(2 * time.Minute)
	if n := e.smps["Get PortInfo"] - gets; n < len(hs) {
		t.Errorf("%d Gets of PortInfo in two minutes, want each port looked at again", n)
	}
	wantServed(t, e, hs, wanted(hs).Grants)
}

// TestStandbyAwaitsIntent: for a core that stood by longer than it would wait for an intent,
// that time begins with its mandate. P_Keys stay until then.
func TestStandbyAwaitsIntent(t *testing.T) {
	wanted := func(hs []endPort) sm.Intent {
		return sm.Intent{Revision: 1, Grants: []sm.Grant{hs[3].grant(0x8001)}}
	}
	e, _, hs := standing(t, 61*time.Second, wanted)
	e.step(&sm.Mandate{Held: true})
	e.run(58 * time.Second)
	if !slices.Contains(e.fab.PKeys(hs[3].node.Name, 1), 0x8001) {
		t.Error("a P_Key was taken away before the store had time to say what is wanted")
	}
	e.run(10 * time.Second)
	if slices.Contains(e.fab.PKeys(hs[3].node.Name, 1), 0x8001) {
		t.Error("a P_Key stays although nothing is wanted")
	}
}

// TestStandbyOfReleased: the state that was read grants nothing. A host that was released since keeps no P_Key, and a new
// P_Key follows from the intent alone.
func TestStandbyOfReleased(t *testing.T) {
	e, _, hs := standing(t, 30*time.Second, func(hs []endPort) sm.Intent {
		return sm.Intent{Revision: 1, Grants: []sm.Grant{hs[3].grant(0x8001), hs[5].grant(0x8001)}}
	})
	e.step(&sm.Mandate{Held: true})
	e.want(sm.Intent{Revision: 2, Grants: []sm.Grant{hs[5].grant(0x8001)}, Absent: []sm.Grant{hs[3].grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	for range 3 {
		if slices.Contains(e.fab.PKeys(hs[3].node.Name, 1), 0x8001) || slices.Contains(e.fab.PKeys(hs[3].peer, hs[3].pnum), 0x8001) {
			t.Fatal("the host that was released has its P_Key")
		}
		e.run(time.Minute)
	}
	wantServed(t, e, hs, []sm.Grant{hs[5].grant(0x8001)})
}

// TestStandbyOfOtherFabric: the fabric is not the one that was read, and no trap reports it: a host has moved, another one
// is at its place, a switch is off. These changes are found at once, without an audit, and a grant stays with its place.
func TestStandbyOfOtherFabric(t *testing.T) {
	const key = ib.PKey(0x8001)
	for name, tt := range map[string]struct {
		change func(e *env, a, b *endPort)
		judge  func(e *env, a, b *endPort)
	}{
		"a host moved to a place of another, which is gone": {
			func(e *env, a, b *endPort) {
				e.try(e.fab.Unlink(b.node.Name, 1))
				e.try(e.fab.Unlink(a.node.Name, 1))
				e.try(e.fab.Relink(a.node.Name, 1, b.peer, b.pnum))
			},
			func(e *env, a, b *endPort) {
				if slices.Contains(e.fab.PKeys(b.peer, b.pnum), key) {
					e.t.Error("the P_Key moved along to a place that nothing is granted at")
				}
			},
		},
		"another host at the place of one": {
			func(e *env, a, b *endPort) {
				e.try(e.fab.Unlink(b.node.Name, 1))
				e.try(e.fab.Unlink(a.node.Name, 1))
				e.try(e.fab.Relink(b.node.Name, 1, a.peer, a.pnum))
			},
			func(e *env, a, b *endPort) {
				if slices.Contains(e.fab.PKeys(b.node.Name, 1), key) {
					e.t.Error("a host has the P_Key of the one whose place it is at")
				}
				lids := e.shownLIDs(e.list)
				if lids[b.node.Name] == lids[a.node.Name] {
					e.t.Errorf("two hosts have LID %d", lids[b.node.Name])
				}
				if s := e.fab.PortInfo(b.node.Name, 1).PortState; s != ib.PortActive {
					e.t.Errorf("the host that is there is %v, want Active", s)
				}
			},
		},
		"a switch is off": {
			func(e *env, a, _ *endPort) { e.try(e.fab.PowerOff(a.peer)) },
			func(e *env, a, _ *endPort) {
				if id := e.view.Fabric.NodeByGUID(a.node.GUID); id >= 0 {
					e.t.Errorf("%s is still shown behind a switch that is off", a.node.Name)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := func(hs []endPort) sm.Intent {
				return sm.Intent{Revision: 1, Grants: []sm.Grant{hs[3].grant(key)}}
			}
			e, _, hs := standingBy(t, sm.Config{IntentWait: 30 * time.Second, AuditPeriod: -1}, nil, wanted)
			tt.change(e, &hs[3], &hs[13])
			e.st.Take(nil) // traps go to the master that was
			e.step(&sm.Mandate{Held: true})
			e.want(wanted(hs))
			e.mustSettle(10 * time.Second)
			tt.judge(e, &hs[3], &hs[13])
		})
	}
}

// TestStandbyRests: a core that has read the fabric asks for its own port alone, for days.
func TestStandbyRests(t *testing.T) {
	e, _, _ := standing(t, 0, func([]endPort) sm.Intent { return sm.Intent{Revision: 1} })
	all := func() (n int) {
		for _, k := range e.smps {
			n += k
		}
		return n
	}
	before, began := all(), e.now
	e.run(time.Hour)
	if n, most := all()-before, int(e.now.Sub(began)/time.Second)+1; n > most {
		t.Errorf("%d requests in an hour, want at most one a second", n)
	}
}

// TestStandbyFindsThief: while no instance led, a host was pulled out, and something that
// reads all and answers nothing was put in its place. The key that it may have seen is
// replaced once the host is back.
func TestStandbyFindsThief(t *testing.T) {
	cfg := keyed(t)
	e, _, hs := standingBy(t, cfg, nil, func(hs []endPort) sm.Intent { return sm.Intent{Revision: 1} })
	h := &hs[3]
	was := e.keyNow(h)
	e.try(e.fab.Unlink(h.node.Name, h.num))
	shown := e.listens(h, func(*sm.Request) bool { return false })
	e.try(e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum))
	e.st.Take(nil)
	wrote := false
	e.logSend = func(r *sm.Request) {
		wrote = wrote || r.MAD.Method() == mad.MethodSet && e.reached(&r.MAD) == h.node.Name
	}
	e.step(&sm.Mandate{Held: true})
	e.want(sm.Intent{Revision: 1})
	e.run(10 * time.Second)
	if wrote {
		t.Error("what is at the place of a host is written to as if it was the host")
	}
	e.hostile, e.logSend = nil, nil
	e.run(2 * time.Minute)
	e.mustSettle(time.Minute)
	if now := e.keyNow(h); now.IsZero() || shown[was] && now == was {
		t.Errorf("the key was shown: %v; the host has it still: %v", shown[was], now == was)
	}
}

// TestFollowedKeyOfLostLink: a sibling may have shown a key at any time. So where siblings read
// along, a device whose link was lost gets another key, however long ago this instance asked it.
func TestFollowedKeyOfLostLink(t *testing.T) {
	for _, followed := range []bool{false, true} {
		l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 6})
		cfg := keyed(t)
		cfg.Followed = followed
		e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, cfg, 1)
		e.start()
		e.mustSettle(time.Minute)
		e.run(10 * time.Second)
		h := &hosts(l)[0]
		was := e.keyNow(h)
		for _, change := range []func() error{
			func() error { return e.fab.Unlink(h.node.Name, h.num) },
			func() error { return e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum) },
		} {
			e.try(change())
			e.arrive(e.st.Take(nil))
			e.run(10 * time.Second)
		}
		e.mustSettle(time.Minute)
		e.checkKeys()
		if changed := e.keyNow(h) != was; changed != followed {
			t.Errorf("followed by siblings: %v; the key was changed: %v", followed, changed)
		}
	}
}

// TestSiblingsDoNotGuess: a sibling that still has the keys of before shows them while new ones
// are given out. Its port stays on, and that of a host which does the same does not.
func TestSiblingsDoNotGuess(t *testing.T) {
	for _, sibling := range []bool{false, true} {
		e, hs := guarded(t, 8, nil)
		if sibling {
			e.cfg.Siblings = []sm.Sibling{{GUID: hs[0].node.PortGUID(hs[0].num), Place: hs[0].place}}
			e.start()
			e.want(sm.Intent{Revision: 1, Hosts: places(hs)})
			e.mustSettle(time.Minute)
			e.run(time.Second)
		}
		e.guess(&hs[0], 40, nil)
		if off := e.isOff(&hs[0]); off == sibling {
			t.Errorf("sibling: %v; the port is switched off: %v", sibling, off)
		}
	}
}

// TestStandbyTellsProblems: a problem that exists while a core stands by is reported when it becomes master, and one that
// was solved before is not.
func TestStandbyTellsProblems(t *testing.T) {
	e, _, hs := standingBy(t, sm.Config{}, func(e *env, hs []endPort) {
		e.hostile = map[string]liar{
			hs[5].node.Name: func([]ib.PortNum, *sm.Request) (mad.MAD, bool) { return mad.MAD{}, true },
		}
	}, func([]endPort) sm.Intent { return sm.Intent{Revision: 1} })
	silent := func() (places []ib.Place) {
		for _, u := range told[*sm.NodeUnreachable](e) {
			places = append(places, u.Place)
		}
		return places
	}
	e.takeEvents()
	e.run(time.Second)
	if got := silent(); len(got) > 0 {
		t.Fatalf("told while standing by: %v", got)
	}
	e.step(&sm.Mandate{Held: true})
	if got := silent(); !slices.Equal(got, []ib.Place{hs[5].place}) {
		t.Errorf("unreachable as the reign begins: %v, want %v", got, hs[5].place)
	}
}

// TestWorkOfOthers: before a master leaves the fabric to another subnet manager it saves that earlier reads no longer
// count.
func TestWorkOfOthers(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 6, Radix: 8})
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{
		Followed: true, Priority: 5, SMKey: rightKey, AuditPeriod: -1,
		Election: sm.ElectionConfig{Allowed: []sm.AllowedSM{{GUID: l.Find("h1").PortGUID(1), Place: placeOf(l, "h1")}}},
	}, 1)
	other := e.addRogue("h1", mad.SMInfo{SMKey: rightKey, Priority: 3, SMState: ib.SMStandby})
	e.start()
	e.mustSettle(10 * time.Second)
	other.says.Priority, other.says.SMState = 9, ib.SMMaster
	sent, saved := false, false
	e.logSend = func(r *sm.Request) {
		if r.MAD.Attr() == mad.AttrSMInfo && r.MAD.Method() == mad.MethodSet {
			sent, saved = true, slices.Contains(works(e.facts), "writes 2")
		}
	}
	e.run(10 * time.Second)
	if e.view.State != ib.SMStandby || !sent || !saved {
		t.Errorf("%v, handed over: %v, saved before: %v; saved %q", e.view.State, sent, saved, works(e.facts))
	}
}

// TestInheritsSettledAlone: hosts see the state that a core has read before at once only if the master before had settled
// it.
func TestInheritsSettledAlone(t *testing.T) {
	for _, last := range []string{"settled 1", "writes 2", ""} {
		l := tree(t, 16, 8)
		e := newEnv(t, l, sim.Options{}, sm.Config{Followed: true}, 1)
		e.start()
		e.mustSettle(10 * time.Second)
		if e.facts = slices.DeleteFunc(e.facts, func(f sm.Fact) bool { return f.Kind == sm.FactWork }); last != "" {
			e.facts = append(e.facts, sm.Fact{Kind: sm.FactWork, Mark: last})
		}
		e.st.Close()
		var err error
		if e.st, err = e.fab.Station(hosts(l)[9].node.Name, true); err != nil {
			t.Fatal(err)
		}
		e.cfg.PortGUID = e.st.GUID()
		e.start()
		e.step(&sm.Mandate{})
		e.run(time.Minute)
		inherited := false
		e.onStep = func() { inherited = inherited || e.view != nil && e.view.Inherited }
		e.step(&sm.Mandate{Held: true})
		e.mustSettle(10 * time.Second)
		if want := last == "settled 1"; inherited != want || e.view.Inherited {
			t.Errorf("after %q it inherits: %v, and once it is settled: %v", last, inherited, e.view.Inherited)
		}
	}
}
