package sm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

func (h *endPort) aliases(guids ...ib.GUID) sm.AliasGUIDs {
	return sm.AliasGUIDs{GUID: h.node.PortGUID(h.num), Place: h.place, Aliases: guids}
}

// holds checks the GUID table of a host: its own GUID and then these.
func (e *env) holds(what string, h *endPort, aliases ...ib.GUID) {
	e.t.Helper()
	want := append([]ib.GUID{h.node.PortGUID(h.num)}, aliases...)
	for len(want) > 1 && want[len(want)-1] == 0 {
		want = want[:len(want)-1]
	}
	if d := cmp.Diff(want, e.fab.GUIDs(h.node.Name, h.num)); d != "" {
		e.t.Errorf("%s: GUIDs of %s (-want +got):\n%s", what, h.node.Name, d)
	}
}

func guids(from ib.GUID, n int) (out []ib.GUID) {
	for i := range n {
		out = append(out, from+ib.GUID(i))
	}
	return out
}

func TestAliasGUIDs(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: 2 * time.Second}, 1)
	aliased := func(ports ...sm.AliasGUIDs) {
		t.Helper()
		e.step(&sm.AliasesSet{Ports: ports})
		e.mustSettle(10 * time.Second)
	}
	e.start()
	e.mustSettle(10 * time.Second)
	if n := e.smps["Get GUIDInfo"]; n != 0 {
		t.Errorf("%d requests for GUIDInfo although nobody has aliases", n)
	}

	clear(e.smps)
	aliased(hs[0].aliases(0xA1, 0, 0xA3), hs[1].aliases(guids(0xB01, 20)...))
	e.holds("at first", &hs[0], 0xA1, 0, 0xA3)
	e.holds("over three blocks", &hs[1], guids(0xB01, 20)...)
	if n := e.smps["Set GUIDInfo"]; n != 4 {
		t.Errorf("%d Sets of GUIDInfo, want one for each of four blocks that differ: %v", n, e.smps)
	}
	applied := 0
	for _, ev := range e.takeEvents() {
		if _, ok := ev.(*sm.AliasesApplied); ok {
			applied++
		}
	}
	p := e.view.Fabric.PortByGUID(hs[0].node.PortGUID(1))
	if d := cmp.Diff([]ib.GUID{0xA1, 0, 0xA3}, e.view.Aliases(p)); d != "" || applied != 2 {
		t.Errorf("%d ports were told, the view shows (-want +got):\n%s", applied, d)
	}

	clear(e.smps)
	aliased(hs[1].aliases(guids(0xB01, 9)...))
	e.holds("shortened", &hs[1], guids(0xB01, 9)...)
	if n := e.smps["Set GUIDInfo"]; n != 2 {
		t.Errorf("%d Sets of GUIDInfo, want 2", n)
	}

	if err := e.fab.Reboot(hs[0].node.Name); err != nil {
		t.Fatal(err)
	}
	e.run(2 * time.Second)
	e.mustSettle(10 * time.Second)
	e.holds("after a reboot", &hs[0], 0xA1, 0, 0xA3)

	// Another manager writes; the audit repairs it.
	e.write(hs[0].node.Name, func(m *mad.MAD, route *mad.Route) {
		mad.NewSMP(m, mad.Header{Method: mad.MethodSet, TID: 0x7777, Attr: mad.AttrGUIDInfo}, route, ib.MKey{})
		if err := mad.Encode(m.Data(), &mad.GUIDInfo{GUID: [8]ib.GUID{0, 0xBAD}}); err != nil {
			t.Fatal(err)
		}
	})
	e.holds("changed behind our back", &hs[0], 0xBAD)
	e.run(5 * time.Second)
	e.holds("after the audit", &hs[0], 0xA1, 0, 0xA3)

	// A restart knows nothing of them; none are asked for, and they go.
	e.start()
	e.mustSettle(10 * time.Second)
	e.holds("after a restart", &hs[0], 0xA1, 0, 0xA3)
	aliased(hs[0].aliases(0xA1, 0, 0xA3), hs[1].aliases())
	e.holds("asked for again", &hs[0], 0xA1, 0, 0xA3)
	e.holds("taken away", &hs[1])
}

// write sends an SMP of another manager to a host.
func (e *env) write(node string, fill func(*mad.MAD, *mad.Route)) {
	e.t.Helper()
	st, err := e.fab.Station(node, false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	var m mad.MAD
	fill(&m, &mad.Route{})
	if got := st.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil); len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
		e.t.Fatalf("writing to %s: %v", node, got)
	}
}

// TestAliasConflicts: port and alias GUIDs share one space.
func TestAliasConflicts(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	refused := func(want ...string) {
		t.Helper()
		var got []string
		for _, ev := range e.takeEvents() {
			if r, ok := ev.(*sm.AliasRefused); ok {
				got = append(got, r.String())
			}
		}
		slices.Sort(got)
		if len(got) != len(want) {
			t.Errorf("refused %q, want %d", got, len(want))
			return
		}
		for i, w := range want {
			if !strings.Contains(got[i], w) {
				t.Errorf("refused %q, want %q", got[i], w)
			}
		}
	}
	set := func(ports ...sm.AliasGUIDs) {
		t.Helper()
		e.step(&sm.AliasesSet{Ports: ports})
		e.mustSettle(10 * time.Second)
	}
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{{GUID: 0xFEED, PKey: 0x8001, Place: hs[5].place}}})
	e.mustSettle(10 * time.Second)
	e.takeEvents()

	other := hs[4].node.PortGUID(1)
	set(hs[0].aliases(0xA1, other, 0xA1, 0xFEED, ^ib.GUID(0)), hs[1].aliases(0xA1, 0xB2))
	e.holds("what is left", &hs[0], 0xA1)
	e.holds("who came second", &hs[1], 0, 0xB2)
	owner := hs[0].node.PortGUID(1)
	refused(
		fmt.Sprintf("port %v does not get the alias GUID 0x00000000000000a1: it stands twice", owner),
		fmt.Sprintf("port %v does not get the alias GUID 0x000000000000feed: it is a port GUID that memberships", owner),
		fmt.Sprintf("port %v does not get the alias GUID %v: it is the port GUID of node", owner, other),
		fmt.Sprintf("port %v does not get the alias GUID 0xffffffffffffffff: it is no GUID", owner),
		fmt.Sprintf("alias GUID 0x00000000000000a1: it belongs to port %v", owner),
	)
	// Once removed, it goes to the port that waits for it.
	set(hs[0].aliases())
	e.holds("given back", &hs[0])
	e.holds("its turn", &hs[1], 0xA1, 0xB2)

	// Wrong place: nothing is given, and what is there goes.
	wrong := hs[1].aliases(0xA1, 0xB2)
	wrong.Place = hs[2].place
	e.takeEvents()
	set(wrong)
	e.holds("wrong place", &hs[1])
	refused("wrong place: the port is seen at " + hs[1].place.String())
	if len(e.problems()) == 0 || !slices.ContainsFunc(e.problems(), func(p string) bool { return strings.Contains(p, "wrong place") }) {
		t.Errorf("problems %q do not name the wrong place", e.problems())
	}
	set(hs[1].aliases(0xA1, 0xB2))
	e.holds("right place", &hs[1], 0xA1, 0xB2)

	// More than the device has room for.
	set(hs[3].aliases(guids(0xC00, 40)...))
	e.holds("as far as there is room", &hs[3], guids(0xC00, 31)...)
	refused("it has room for 32 GUIDs, and 41 are wanted")
}

// TestAliasAgainstNewcomer checks that a port that shows the alias of another as its port GUID stays out, unless a grant
// names it there.
func TestAliasAgainstNewcomer(t *testing.T) {
	for _, entitled := range []bool{false, true} {
		t.Run(fmt.Sprintf("entitled %v", entitled), func(t *testing.T) {
			l := tree(t, 8, 8)
			hs := hosts(l)
			e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
			newcomer := hs[6]
			guid := newcomer.node.PortGUID(1)
			if err := e.fab.Unlink(newcomer.node.Name, 1); err != nil {
				t.Fatal(err)
			}
			e.start()
			e.mustSettle(10 * time.Second)
			e.step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{hs[0].aliases(guid)}})
			e.mustSettle(10 * time.Second)
			e.holds("before", &hs[0], guid)
			if entitled {
				e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{newcomer.grant(0x8001)}})
			}
			if err := e.fab.Relink(newcomer.node.Name, 1, newcomer.peer, newcomer.pnum); err != nil {
				t.Fatal(err)
			}
			e.run(3 * time.Second)
			e.settle(3 * time.Second)
			state := e.fab.PortInfo(newcomer.peer, newcomer.pnum).PortState
			if entitled {
				e.holds("after", &hs[0])
				if state != ib.PortActive {
					t.Errorf("the port of who is entitled is %v", state)
				}
				return
			}
			e.holds("after", &hs[0], guid)
			if state > ib.PortInit {
				t.Errorf("the port of the newcomer is %v", state)
			}
			if _, ok := find(e.takeEvents(), func(d *sm.DuplicateGUID) bool { return d.GUID == guid && d.First == hs[0].place }); !ok {
				t.Error("the conflict is not told")
			}
		})
	}
}

// TestAliasesOfAStubbornDevice checks that a device that answers without an error and keeps nothing is reported and left
// alone.
func TestAliasesOfAStubbornDevice(t *testing.T) {
	l := tree(t, 4, 4)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	e.meddle = func(set bool, m *mad.MAD) {
		if !set && m.Attr() == mad.AttrGUIDInfo {
			clear(m.Data()[8:])
		}
	}
	e.step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{hs[0].aliases(0xA1)}})
	e.run(10 * time.Minute)
	if n := e.smps["Set GUIDInfo"]; n < 2 || n > 100 {
		t.Errorf("%d Sets in ten minutes, want a few", n)
	}
	events := e.takeEvents()
	told := 0
	for _, ev := range events {
		if r, ok := ev.(*sm.AliasRefused); ok && strings.Contains(r.Reason, "changes nothing") {
			told++
		}
	}
	if told != 1 || !slices.ContainsFunc(e.problems(), func(p string) bool { return strings.Contains(p, "changes nothing") }) {
		t.Errorf("told %d times, problems %q", told, e.problems())
	}
	if _, ok := find(events, func(*sm.AliasesApplied) bool { return true }); ok {
		t.Error("told that they are applied")
	}
}

// TestAliasChangesItsOwner: it is taken from the one before the other gets it, so
// that at no moment two ports answer to it.
func TestAliasChangesItsOwner(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.bad = chaos{lose: 0.1, delay: 0.2}
	e.start()
	e.mustSettle(time.Minute)
	e.onStep = func() {
		holders := map[ib.GUID]string{}
		for _, h := range hs {
			for _, g := range e.fab.GUIDs(h.node.Name, 1) {
				if other, twice := holders[g]; twice && g != 0 {
					t.Fatalf("%v and %s both hold %v", h.node.Name, other, g)
				}
				holders[g] = h.node.Name
			}
		}
	}
	for turn := range len(hs) {
		var wishes []sm.AliasGUIDs
		for i := range hs {
			k := ib.GUID(0xA000 + 16*((i+turn)%len(hs)))
			wishes = append(wishes, hs[i].aliases(k+1, k+2, k+3))
		}
		e.step(&sm.AliasesSet{Ports: wishes})
		e.run(30 * time.Second)
		e.mustSettle(time.Minute)
		for i := range hs {
			k := ib.GUID(0xA000 + 16*((i+turn)%len(hs)))
			e.holds(fmt.Sprintf("turn %d", turn), &hs[i], k+1, k+2, k+3)
		}
	}
}

// TestRandomAliases changes aliases at random while hosts move, reboot and lose their cables, packets are lost and the
// subnet manager restarts. In the end every port holds the aliases that are wanted.
func TestRandomAliases(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := newSchedule(t, 3*seed+1000)
			rnd := rand.New(rand.NewPCG(seed, 9))
			wish := func() (in sm.AliasesSet) {
				for i := range s.w.hosts {
					w := s.w.hosts[i].aliases()
					for range rnd.IntN(12) {
						w.Aliases = append(w.Aliases, ib.GUID(rnd.IntN(20))) // some twice, some none
					}
					in.Ports = append(in.Ports, w)
				}
				return in
			}
			last := wish()
			s.start()
			s.step(&last)
			for range 10 {
				s.env.run(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
				s.changed = change{true, true}
				switch rnd.IntN(5) {
				case 0:
					s.toggle(rnd.IntN(len(s.all)))
				case 1:
					s.reboot()
				case 2:
					s.swap()
				case 3:
					s.start()
					s.step(&last)
				default:
					last = wish()
					s.step(&last)
				}
			}
			for i := range s.w.hosts {
				last.Ports[i] = s.w.hosts[i].aliases(guids(ib.GUID(0xA000+16*i), 1+i%12)...)
			}
			s.step(&last)
			s.putBack()
			s.env.run(3 * time.Minute)
			s.mustSettle(2 * time.Minute)
			for i := range s.w.hosts {
				s.holds("in the end", &s.w.hosts[i], last.Ports[i].Aliases...)
			}
		})
	}
}

// A host shows aliases of others in its own table, whatever is written to it, or
// answers nothing but that. Their owner gets them all the same, after a while.
func TestAliasesShownByLiar(t *testing.T) {
	for _, how := range []string{"keeps nothing", "refuses"} {
		l := tree(t, 8, 8)
		hs := hosts(l)
		owner, thief := hs[0], hs[1]
		e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: 2 * time.Second}, 1)
		e.hostile = map[string]liar{thief.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
			if len(rest) > 0 || r.MAD.Attr() != mad.AttrGUIDInfo {
				return mad.MAD{}, false
			}
			if how == "refuses" && r.MAD.Method() == mad.MethodSet {
				m := r.MAD
				m.Respond(mad.StatusInvalidField)
				return m, true
			}
			return answer(r, &mad.GUIDInfo{GUID: [8]ib.GUID{thief.node.PortGUID(1), 0xA1}})
		}}
		e.start()
		e.step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{thief.aliases(0xB1)}})
		e.run(5 * time.Second)
		e.step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{owner.aliases(0xA1)}})
		e.run(time.Minute)
		e.holds(how, &owner, 0xA1)
	}
}
