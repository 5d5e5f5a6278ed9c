package group_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry/registrytest"
	"portcullis/fabricsm/sm"
)

// joined is a registry with a group of alice and alan, and one of alice's alias.
func joined(t testing.TB) *rig {
	r := newRig(t, group.Config{})
	r.must(r.set(r.making(alan, mgid(1))))
	r.must(r.set(r.joining(alice, mgid(1))))
	alias := r.making(alice, mgid(2))
	alias.rec.PortGID = portGID(vport)
	r.must(r.set(alias))
	return r
}

func (r *rig) isMember(port ib.GUID, g byte) bool {
	x := r.Now().Group(mgid(g))
	if x == nil {
		return false
	}
	_, ok := x.Member(port)
	return ok
}

func TestMembersLeaveWithTheirPort(t *testing.T) {
	keyless := func(e *portindex.EndPort) { e.PKeys = []ib.PKey{0x7fff} }
	for _, tt := range []struct {
		name        string
		f           func(*registrytest.Fabric) *registrytest.Fabric
		port, alias bool // still members
		then        bool // port is when all is known
		why         group.Reason
	}{
		{"nothing", func(f *registrytest.Fabric) *registrytest.Fabric { return f.Clone() }, true, true, true, group.NoReason},
		{"the port goes", func(f *registrytest.Fabric) *registrytest.Fabric { return f.Without(alice) }, false, false, false, group.PortGone},
		{"its P_Key goes", func(f *registrytest.Fabric) *registrytest.Fabric { return f.With(alice, keyless) }, false, false, false, group.NotInPartition},
		{"its P_Key is not seen while tables are read", func(f *registrytest.Fabric) *registrytest.Fabric {
			n := f.With(alice, keyless)
			n.Busy, n.Doubt[alice] = true, true
			return n
		}, true, true, false, group.NoReason},
		{"its P_Key is surely gone while others' are read", func(f *registrytest.Fabric) *registrytest.Fabric {
			n := f.With(alice, keyless)
			n.Busy = true
			return n
		}, false, false, false, group.NotInPartition},
		{"it becomes a limited member", func(f *registrytest.Fabric) *registrytest.Fabric {
			return f.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{tenantA.Limited()} })
		}, true, true, true, group.NoReason},
		{"its link is down for a moment", func(f *registrytest.Fabric) *registrytest.Fabric {
			return f.With(alice, func(e *portindex.EndPort) { e.Home, e.LinkRate, e.LinkMTU = -1, ib.Rate2_5, ib.MTU256 })
		}, true, true, true, group.NoReason},
		{"its MTU shrinks", func(f *registrytest.Fabric) *registrytest.Fabric {
			return f.With(alice, func(e *portindex.EndPort) { e.LinkMTU = ib.MTU256 })
		}, false, false, false, group.SmallMTU},
		{"its alias is another's", func(f *registrytest.Fabric) *registrytest.Fabric {
			n := f.With(alice, func(e *portindex.EndPort) { e.Aliases = nil })
			return n.With(bob, func(e *portindex.EndPort) { e.Aliases = []ib.GUID{vport} })
		}, true, false, true, group.PortGone},
		{"its alias is not seen", func(f *registrytest.Fabric) *registrytest.Fabric {
			n := f.With(alice, func(e *portindex.EndPort) { e.Aliases = nil })
			n.Busy = true
			return n
		}, true, true, true, group.NoReason},
		{"its alias is gone", func(f *registrytest.Fabric) *registrytest.Fabric {
			return f.With(alice, func(e *portindex.EndPort) { e.Aliases = nil })
		}, true, false, true, group.PortGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := joined(t)
			e := r.move(tt.f(r.f))
			if got, alias := r.isMember(alice, 1), r.isMember(vport, 2); got != tt.port || alias != tt.alias {
				t.Errorf("a member %v, its alias %v, want %v, %v", got, alias, tt.port, tt.alias)
			}
			if len(e.Events) > 0 != (tt.why != group.NoReason) || len(e.Events) > 0 && e.Events[0].Reason != tt.why {
				t.Errorf("told %v, want %v", e.Events, tt.why)
			}
			r.judge()
			done := r.f.Clone()
			done.Busy = false
			r.move(done)
			if got := r.isMember(alice, 1); got != tt.then {
				t.Errorf("a member when all is known: %v", got)
			}
			if !r.isMember(alan, 1) {
				t.Error("another member left, too")
			}
			r.judge()
		})
	}
}

// TestMembersComeBack: a port that was away joins again like any other. After a restart
// members are kept until the fabric is known.
func TestMembersComeBack(t *testing.T) {
	r := joined(t)
	with := r.f
	r.move(r.f.Without(alice))
	r.move(with.Clone())
	if r.isMember(alice, 1) {
		t.Error("a member again without having joined")
	}
	r.must(r.set(r.joining(alice, mgid(1))))

	again := group.New(group.Config{})
	again.Restore(values(r.saved))
	finding := registrytest.New() // nothing but the Subnet Manager is found yet
	finding.Busy = true
	again.Follow(finding)
	sameGroups(t, r.Now(), again.Now())
	some := with.Without(alan).With(alice, func(e *portindex.EndPort) { e.Aliases, e.PKeys = nil, nil })
	some.Busy, some.Doubt[alice] = true, true
	again.Follow(some)
	sameGroups(t, r.Now(), again.Now())
	done := with.Without(alan)
	e := again.Follow(done)
	if len(e.Events) != 1 || e.Events[0].Port != alan || e.Events[0].Reason != group.PortGone {
		t.Errorf("when the fabric is known: %v", e.Events)
	}
	if g := again.Now().Group(mgid(1)); g.Len() != 1 {
		t.Errorf("%d members", g.Len())
	}
}

func TestUnusableFacts(t *testing.T) {
	r := joined(t)
	good := values(r.saved)
	bad := []sm.Fact{
		{Kind: sm.FactSAGroup, Name: "zz", Body: "01"},
		{Kind: sm.FactSAGroup, Name: "ff12a01c0000000000000000000000aa", Body: "02"},
		{Kind: sm.FactSAGroup, Name: "fe12a01c0000000000000000000000aa", Body: "0100c005800100000007040a12010300000000009"},
		{Kind: sm.FactSAMember, Name: "ff12a01c0000000000000000000000aa.0000000000000101", Body: "0101000000000000000101000000000000010100"},
		{Kind: sm.FactSAMember, Name: "ff12a01c", Body: "01"},
	}
	fresh := group.New(group.Config{})
	e := fresh.Restore(append(append([]sm.Fact{{Kind: sm.FactLID, GUID: 1}}, good...), bad...))
	if len(e.Save) != len(bad) || len(e.Events) != len(bad) {
		t.Errorf("%d facts of %d taken back, %d told", len(e.Save), len(bad), len(e.Events))
	}
	for i := range e.Save {
		if !e.Save[i].TakesBack() {
			t.Errorf("saved %+v", e.Save[i])
		}
	}
	sameGroups(t, r.Now(), fresh.Now())

	// Two groups of different partitions on one multicast LID would mix tenants.
	r.must(r.set(r.making(bob, mgid(3)).with(rec(func(m *mad.MCMemberRecord) { m.PKey = tenantB }))))
	mixed := maps.Clone(r.saved)
	of := func(i byte) string {
		for k := range mixed {
			if f := mixed[k]; f.Kind == sm.FactSAGroup && f.Name[30:] == string("0123456789"[0])+string("0123456789"[i]) {
				return k
			}
		}
		t.Fatal("no such group")
		return ""
	}
	a, b := mixed[of(1)], mixed[of(3)]
	b.Body = b.Body[:4] + a.Body[4:8] + b.Body[8:]
	mixed[of(3)] = b
	fresh = group.New(group.Config{})
	if e := fresh.Restore(values(mixed)); len(e.Events) != 2 || fresh.Now().Len() != 2 {
		t.Errorf("mixed tenants: %v, %d groups", e.Events, fresh.Now().Len())
	}
}

// TestFixedGroups: groups of the configuration change with it.
func TestFixedGroups(t *testing.T) {
	r := newRig(t, group.Config{})
	a, b := group.IPoIB(tenantA, 0), group.IPoIB(tenantB, 5)
	if b.MGID[1] != 0x15 || b.HopLimit != 0xFF {
		t.Errorf("site-local: %+v", b)
	}
	e := r.take(r.SetFixed([]group.Fixed{a, b, a}))
	if len(e.Notices) != 2 || r.Now().Len() != 2 {
		t.Fatalf("%d notices, %d groups", len(e.Notices), r.Now().Len())
	}
	if again := r.take(r.SetFixed([]group.Fixed{b, a})); len(again.Save)+len(again.Events)+len(again.Notices) > 0 || again.Groups != nil {
		t.Errorf("the same again does %+v", again)
	}
	r.must(r.set(r.joining(alice, a.MGID)))
	r.must(r.set(r.joining(slow, a.MGID)))
	lid := r.Now().Group(a.MGID).MLID
	a.MTU, a.Rate = ib.MTU4096, ib.Rate56
	e = r.take(r.SetFixed([]group.Fixed{a, b}))
	if g := r.Now().Group(a.MGID); g.MTU != ib.MTU4096 || g.MLID != lid || g.Len() != 1 {
		t.Errorf("changed: %+v, members %d", g, g.Len())
	}
	if len(e.Events) != 1 || e.Events[0].Port != slow || e.Events[0].Reason != group.SmallMTU {
		t.Errorf("told %v", e.Events)
	}
	r.judge()
	r.take(r.SetFixed(nil))
	if r.Now().Len() != 1 || r.Now().Group(a.MGID) == nil {
		t.Errorf("%d groups go on", r.Now().Len())
	}
	r.judge()
	r.must(r.del(r.joining(alice, a.MGID)))
	if r.Now().Len() != 0 || len(r.saved) != 0 {
		t.Error("what nobody keeps alive stays")
	}
}

// TestServiceLevelOfTrees: where groups must have a certain service level, they get it, regardless of the request.
func TestServiceLevelOfTrees(t *testing.T) {
	r := newRig(t, group.Config{})
	f := r.f.Clone()
	f.SL, f.Must = 5, true
	r.move(f)
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
	if got := r.must(r.set(r.joining(alice, group.Broadcast(tenantA, 2)))); got.SL != 5 {
		t.Errorf("broadcast group: SL %v", got.SL)
	}
	if got := r.must(r.set(r.making(alice, mgid(1)))); got.SL != 5 {
		t.Errorf("a group that asks for 1: SL %v", got.SL)
	}
	r.must(r.set(r.making(alan, mgid(1)))) // asks for 1, too
}

// TestCeilingFalls: a switch comes that has no room for a group that there is.
func TestCeilingFalls(t *testing.T) {
	r := joined(t)
	f := r.f.Clone()
	f.Top = ib.MinMulticastLID + 1
	e := r.move(f)
	if len(e.Events) != 1 || e.Events[0].Reason != group.CeilingTooLow || e.Events[0].MLID != 0xC001 {
		t.Errorf("told %v", e.Events)
	}
	if e := r.move(f.Clone()); len(e.Events) != 0 {
		t.Errorf("told again: %v", e.Events)
	}
}

// TestRandomly joins, leaves, creates groups, loses ports and keys, changes the configuration and restarts. It checks the
// invariants after each step.
func TestRandomly(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 4))
		cfg := group.Config{ShareSNM: seed%2 == 0, Reserve: 2}
		r := newRig(t, cfg)
		whole := r.f
		whole.Top = ib.MinMulticastLID + 12
		r.move(whole.Clone())
		ports := []ib.GUID{alice, alan, bob, lim, lim2, slow, none}
		for range 1500 {
			port := ports[rng.IntN(len(ports))]
			switch rng.IntN(20) {
			case 0:
				r.move(r.f.Without(port))
			case 1, 2:
				r.move(whole.Clone())
			case 3:
				if r.f.Ports[port] != nil {
					r.move(r.f.With(port, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{tenantB} }))
				}
			case 4:
				if r.f.Ports[port] != nil {
					r.move(r.f.With(port, func(e *portindex.EndPort) { e.LinkRate = ib.Rate10 }))
				}
			case 5:
				var fixed []group.Fixed
				for _, k := range []ib.PKey{tenantA, tenantB} {
					if rng.IntN(3) > 0 {
						f := group.IPoIB(k, 2)
						f.MTU = ib.MTU(2 + rng.IntN(3))
						fixed = append(fixed, f)
					}
				}
				r.take(r.SetFixed(fixed))
			case 6: // a crash
				saved, f := r.saved, r.f
				again := &rig{t: t, Registry: group.New(cfg), f: f, saved: saved, told: newMirror()}
				again.take(again.Restore(values(saved)))
				sameGroups(t, r.Now(), again.Now())
				again.told.same(t, &sm.GroupsSet{})
				in := again.Input()
				again.told.take(t, &sm.GroupsChanged{Made: in.MLIDs, Joins: in.Joins})
				if e := again.move(f); len(e.Events) > 0 {
					t.Fatalf("a restart tells %v", e.Events)
				}
				r = again
			default:
				if r.f.Ports[port] == nil {
					continue
				}
				g := mgid(byte(rng.IntN(16)))
				if rng.IntN(4) == 0 {
					g = ib.GID{0xFF, 0x12, 0x60, 0x1B, 0x80, byte(1 + rng.IntN(2)), 11: 1, 12: 0xFF, 15: byte(rng.IntN(9))}
				}
				q := r.making(port, g)
				q.rec.JoinState = ib.JoinState(1 + rng.IntN(15))
				if q.rec.PKey = []ib.PKey{tenantA, tenantB}[rng.IntN(2)]; g[3] == 0x1B {
					q.rec.QKey, q.rec.TClass, q.rec.SL, q.rec.FlowLabel = 0x0B1B, 0, 0, 0
				}
				if rng.IntN(3) == 0 {
					r.del(q)
				} else {
					r.set(q)
				}
			}
			r.hold()
		}
		r.judge()
	}
}

// hold checks the invariants.
func (r *rig) hold() {
	r.t.Helper()
	r.told.same(r.t, r.Input())
	owner := make(map[ib.LID]ib.PKey)
	for mgid, g := range r.Now().All {
		if k, ok := owner[g.MLID]; ok && k.Base() != g.PKey.Base() {
			r.t.Fatalf("LID 0x%04x is of the partitions %v and %v", uint16(g.MLID), k, g.PKey)
		}
		owner[g.MLID] = g.PKey
		alive := g.Fixed
		for guid, m := range g.Members {
			e := r.f.ByGUID(guid)
			if e == nil || e.GUID != m.Port {
				r.t.Fatalf("member %v of %v is not there", guid, mgid)
			}
			if !slices.ContainsFunc(e.PKeys, func(k ib.PKey) bool { return k.Matches(g.PKey) }) || e.LinkRate.Compare(g.Rate) < 0 || e.LinkMTU < g.MTU {
				r.t.Fatalf("member %v cannot be one of %+v", e, g.Params)
			}
			alive = alive || m.State&(ib.FullMember|ib.SendOnlyFullMember) != 0
		}
		if !alive {
			r.t.Fatalf("nobody keeps %v alive", mgid)
		}
	}
}

// TestFixedGroupMoves: a group of the configuration shares its multicast LID and then changes its parameters. It gets its
// own LID, and a notice makes the members ask for it.
func TestFixedGroupMoves(t *testing.T) {
	r := newRig(t, group.Config{ShareSNM: true, Reserve: 1})
	snm := func(last byte) group.Fixed {
		f := group.IPoIB(tenantA, 0)
		f.MGID = ib.GID{0xFF, 0x12, 0x60, 0x1B, 0x80, 0x01, 11: 1, 12: 0xFF, 15: last}
		return f
	}
	a, b := snm(1), snm(2)
	r.take(r.SetFixed([]group.Fixed{a, b}))
	r.must(r.set(r.joining(alice, a.MGID)))
	r.must(r.set(r.joining(alan, b.MGID)))
	lid := func(f group.Fixed) ib.LID { return r.Now().Group(f.MGID).MLID }
	if lid(a) != lid(b) {
		t.Fatal("they do not share")
	}
	a.MTU = ib.MTU4096
	e := r.take(r.SetFixed([]group.Fixed{a, b}))
	if lid(a) == lid(b) || r.Now().Group(a.MGID).Len() != 1 {
		t.Errorf("0x%04x and 0x%04x", uint16(lid(a)), uint16(lid(b)))
	}
	if len(e.Notices) != 2 || e.Notices[0].Report.TrapNumber != mad.TrapMulticastDeleted || e.Notices[1].Report.TrapNumber != mad.TrapMulticastCreated {
		t.Errorf("notices %+v", e.Notices)
	}
	r.judge()
	// Without room for another LID it does not change, and that is reported.
	full := r.f.Clone()
	full.Top = ib.MinMulticastLID + 2
	r.move(full)
	a.MTU = ib.MTU2048
	r.take(r.SetFixed([]group.Fixed{a, b})) // its own multicast LID changes with it
	c := snm(3)
	r.take(r.SetFixed([]group.Fixed{a, b, c}))
	r.judge()
	c.MTU = ib.MTU1024
	e = r.take(r.SetFixed([]group.Fixed{a, b, c}))
	if len(e.Events) != 1 || e.Events[0].Reason != group.NoMLID || r.Now().Group(c.MGID).MTU != ib.MTU2048 {
		t.Errorf("told %v, the group is %+v", e.Events, r.Now().Group(c.MGID).Params)
	}
	r.judge()
	other := group.IPoIB(tenantB, 0)
	e = r.take(r.SetFixed([]group.Fixed{a, b, c, other}))
	if r.Now().Group(other.MGID) != nil || !slices.ContainsFunc(e.Events, func(e group.Event) bool { return e.Reason == group.NoMLID && e.MGID == other.MGID }) {
		t.Errorf("no multicast LID is left, told %v", e.Events)
	}
}
