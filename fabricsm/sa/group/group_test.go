package group_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry/registrytest"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
)

// Ports of the tests: those of registrytest.Tenants, another limited member of the
// first tenant, a slow one and one that is in no tenant's partition.
const (
	alice = registrytest.Alice
	alan  = registrytest.Alan
	bob   = registrytest.Bob
	lim   = registrytest.Lim
	vport = registrytest.VPort

	lim2 ib.GUID = 0x302 // as lim
	slow ib.GUID = 0x401
	none ib.GUID = 0x501
	twin ib.GUID = 0x1112 // another alias of alice

	tenantA = registrytest.TenantA
	tenantB = registrytest.TenantB
)

func fabric() *registrytest.Fabric {
	f := registrytest.Tenants()
	f.Ports[alice].Aliases = []ib.GUID{vport, 0, twin}
	f.Add(lim2, tenantA.Limited(), 0x7fff)
	e := f.Add(slow, tenantA, 0x7fff)
	e.LinkRate, e.LinkMTU = ib.Rate10, ib.MTU2048
	f.Add(none, 0x7fff)
	return f
}

// rig is a registry with a fabric and its saved facts.
type rig struct {
	t testing.TB
	*group.Registry
	f     *registrytest.Fabric
	saved registrytest.Saved
	told  *mirror
}

func newRig(t testing.TB, cfg group.Config) *rig {
	r := &rig{t: t, Registry: group.New(cfg), f: fabric(), saved: make(registrytest.Saved), told: newMirror()}
	r.take(r.Follow(r.f))
	return r
}

// take applies the effects of a request.
func (r *rig) take(e group.Effects) group.Effects {
	r.t.Helper()
	r.saved.Take(e.Save)
	r.told.take(r.t, e.Groups)
	return e
}

func (r *rig) move(f *registrytest.Fabric) group.Effects {
	r.t.Helper()
	r.f = f
	return r.take(r.Follow(f))
}

func mgid(last byte) ib.GID { return ib.GID{0: 0xFF, 1: 0x12, 2: 0xA0, 3: 0x1C, 15: last} }

func portGID(g ib.GUID) ib.GID { return ib.MakeGID(ib.DefaultPrefix, g) }

// request is a Set by a port for itself.
type request struct {
	asker portindex.Asker
	rec   mad.MCMemberRecord
	mask  mad.ComponentMask
}

// making is one that makes a group of the first tenant.
func (r *rig) making(port ib.GUID, g ib.GID) request {
	return request{r.f.Asker(port), mad.MCMemberRecord{
		MGID: g, PortGID: portGID(port), QKey: 7, PKey: tenantA, TClass: 3, SL: 1, FlowLabel: 9, JoinState: ib.FullMember,
	}, mad.MCMemberCreate}
}

// joining is one for a group that is there.
func (r *rig) joining(port ib.GUID, g ib.GID) request {
	return request{r.f.Asker(port), mad.MCMemberRecord{MGID: g, PortGID: portGID(port), JoinState: ib.FullMember}, mad.MCMemberJoin}
}

func (q request) with(change func(*request)) request { change(&q); return q }

func (r *rig) set(q request) group.Answer {
	r.t.Helper()
	a := r.Set(q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) del(q request) group.Answer {
	r.t.Helper()
	a := r.Delete(q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) must(a group.Answer) mad.MCMemberRecord {
	r.t.Helper()
	if a.Status != mad.StatusOK || a.Verdict != trust.OK {
		r.t.Fatalf("status %v, verdict %v, %v", a.Status, a.Verdict, a.Events)
	}
	return a.Record
}

// why returns the reason of a refusal.
func why(a group.Answer) group.Reason {
	for _, e := range a.Events {
		if e.Kind == group.Refused {
			return e.Reason
		}
	}
	return group.NoReason
}

const (
	give    = mad.StatusOK
	invalid = mad.StatusInvalidRequest
	missing = mad.StatusInsufficientComponents
)

func mask(c mad.ComponentMask, change func(*mad.MCMemberRecord)) func(*request) {
	return func(q *request) { q.mask |= c; change(&q.rec) }
}

func without(c mad.ComponentMask) func(*request) { return func(q *request) { q.mask &^= c } }

func rec(change func(*mad.MCMemberRecord)) func(*request) { return mask(0, change) }

// TestMakeRules makes one group each.
func TestMakeRules(t *testing.T) {
	const (
		mtu  = mad.MCMemberComponentMTUSelector | mad.MCMemberComponentMTU
		rate = mad.MCMemberComponentRateSelector | mad.MCMemberComponentRate
		life = mad.MCMemberComponentPacketLifeTimeSelector | mad.MCMemberComponentPacketLifeTime
	)
	wantMTU := func(m ib.MTU) func(*mad.MCMemberRecord) bool {
		return func(r *mad.MCMemberRecord) bool { return r.MTU == m && r.MTUSelector == mad.SelectExactly }
	}
	wantRate := func(m ib.Rate) func(*mad.MCMemberRecord) bool {
		return func(r *mad.MCMemberRecord) bool { return r.Rate == m && r.RateSelector == mad.SelectExactly }
	}
	wantLife := func(m ib.ExpTime) func(*mad.MCMemberRecord) bool {
		return func(r *mad.MCMemberRecord) bool { return r.PacketLifeTime == m }
	}
	sel := func(c mad.ComponentMask, s mad.Selector, v uint8) func(*request) {
		return mask(c, func(r *mad.MCMemberRecord) {
			switch {
			case c&mtu != 0:
				r.MTUSelector, r.MTU = s, ib.MTU(v)
			case c&rate != 0:
				r.RateSelector, r.Rate = s, ib.Rate(v)
			default:
				r.PacketLifeTimeSelector, r.PacketLifeTime = s, ib.ExpTime(v)
			}
		})
	}
	both := func(one, other func(*request)) func(*request) {
		return func(q *request) { one(q); other(q) }
	}
	for _, tt := range []struct {
		name   string
		change func(*request)
		want   mad.Status
		why    group.Reason
		holds  func(*mad.MCMemberRecord) bool
	}{
		{"as it is", rec(func(*mad.MCMemberRecord) {}), give, 0, func(r *mad.MCMemberRecord) bool {
			return r.MLID == 0xC000 && r.MTU == ib.MTU4096 && r.Rate == ib.Rate100 && r.PacketLifeTime == 18 && r.JoinState == 1 && r.Scope == 2 &&
				r.PortGID == portGID(alice) && r.QKey == 7 && r.TClass == 3 && r.SL == 1 && r.FlowLabel == 9 && !r.ProxyJoin
		}},
		{"no Q_Key", without(mad.MCMemberComponentQKey), missing, group.MissingComponents, nil},
		{"no P_Key", without(mad.MCMemberComponentPKey), missing, group.MissingComponents, nil},
		{"no TClass", without(mad.MCMemberComponentTClass), missing, group.MissingComponents, nil},
		{"no SL", without(mad.MCMemberComponentSL), missing, group.MissingComponents, nil},
		{"no FlowLabel", without(mad.MCMemberComponentFlowLabel), missing, group.MissingComponents, nil},
		{"no MGID", without(mad.MCMemberComponentMGID), missing, group.MissingComponents, nil},
		{"no PortGID", without(mad.MCMemberComponentPortGID), missing, group.MissingComponents, nil},
		{"no JoinState", without(mad.MCMemberComponentJoinState), missing, group.MissingComponents, nil},
		{"JoinState 0", rec(func(r *mad.MCMemberRecord) { r.JoinState = 0 }), invalid, group.NoJoinState, nil},
		{"non-member", rec(func(r *mad.MCMemberRecord) { r.JoinState = ib.NonMember }), invalid, group.NotFull, nil},
		{"send-only non-member", rec(func(r *mad.MCMemberRecord) { r.JoinState = ib.SendOnlyNonMember }), invalid, group.NotFull, nil},
		{"send-only full member", rec(func(r *mad.MCMemberRecord) { r.JoinState = ib.SendOnlyFullMember }), give, 0, func(r *mad.MCMemberRecord) bool { return r.JoinState == 8 }},
		{"foreign prefix", rec(func(r *mad.MCMemberRecord) { r.PortGID[0] = 1 }), mad.StatusInvalidGID, group.ForeignPrefix, nil},
		{"P_Key 0", rec(func(r *mad.MCMemberRecord) { r.PKey = 0x8000 }), invalid, group.InvalidPKey, nil},
		{"P_Key of another tenant", rec(func(r *mad.MCMemberRecord) { r.PKey = tenantB }), invalid, group.NotInPartition, nil},
		{"limited P_Key, full port", rec(func(r *mad.MCMemberRecord) { r.PKey = tenantA.Limited() }), give, 0, func(r *mad.MCMemberRecord) bool { return r.PKey == tenantA.Limited() }},
		{"both limited", rec(func(r *mad.MCMemberRecord) { r.PKey = 0x7fff }), invalid, group.BothLimited, nil},
		{"MGID chosen", rec(func(r *mad.MCMemberRecord) { r.MGID = ib.GID{} }), give, 0, func(r *mad.MCMemberRecord) bool {
			return r.MGID == ib.GID{0: 0xFF, 1: 0x12, 2: 0xA0, 3: 0x1B, 4: 0xFE, 5: 0x80, 15: 1}
		}},
		{"MGID chosen, site-local", mask(mad.MCMemberComponentScope, func(r *mad.MCMemberRecord) { r.MGID, r.Scope = ib.GID{}, 5 }), give, 0, func(r *mad.MCMemberRecord) bool {
			return r.MGID[1] == 0x15 && r.Scope == 5
		}},
		{"MGID chosen, reserved scope", mask(mad.MCMemberComponentScope, func(r *mad.MCMemberRecord) { r.MGID, r.Scope = ib.GID{}, 0xF }), invalid, group.InvalidMGID, nil},
		{"scope of the MGID", mask(mad.MCMemberComponentScope, func(r *mad.MCMemberRecord) { r.Scope = 2 }), give, 0, nil},
		{"another scope", mask(mad.MCMemberComponentScope, func(r *mad.MCMemberRecord) { r.Scope = 5 }), give, 0, func(r *mad.MCMemberRecord) bool { return r.Scope == 2 }},
		{"MGID of a reserved scope", rec(func(r *mad.MCMemberRecord) { r.MGID[1] = 0x1F }), give, 0, nil},
		{"unicast MGID", rec(func(r *mad.MCMemberRecord) { r.MGID[0] = 0xFA }), invalid, group.InvalidMGID, nil},
		{"flags of an MGID", rec(func(r *mad.MCMemberRecord) { r.MGID[1] = 0x72 }), invalid, group.InvalidMGID, nil},
		{"permanent MGID", rec(func(r *mad.MCMemberRecord) { r.MGID[1] = 0x02 }), give, 0, nil},
		{"signature of the SA, link-local", rec(func(r *mad.MCMemberRecord) { r.MGID[3] = 0x1B }), invalid, group.InvalidMGID, nil},
		{"signature of the SA, global", rec(func(r *mad.MCMemberRecord) { r.MGID[3], r.MGID[1] = 0x1B, 0x1E }), give, 0, nil},
		{"MLID asked for", mask(mad.MCMemberComponentMLID, func(r *mad.MCMemberRecord) { r.MLID = 0xC123 }), give, 0, func(r *mad.MCMemberRecord) bool { return r.MLID == 0xC123 }},
		{"MLID too high", mask(mad.MCMemberComponentMLID, func(r *mad.MCMemberRecord) { r.MLID = 0xC400 }), give, 0, func(r *mad.MCMemberRecord) bool { return r.MLID == 0xC000 }},
		{"unicast MLID", mask(mad.MCMemberComponentMLID, func(r *mad.MCMemberRecord) { r.MLID = 12 }), give, 0, func(r *mad.MCMemberRecord) bool { return r.MLID == 0xC000 }},
		{"HopLimit", mask(mad.MCMemberComponentHopLimit, func(r *mad.MCMemberRecord) { r.HopLimit = 64 }), give, 0, func(r *mad.MCMemberRecord) bool { return r.HopLimit == 64 }},
		{"MTU exactly", sel(mtu, mad.SelectExactly, 3), give, 0, wantMTU(ib.MTU1024)},
		{"MTU less", sel(mtu, mad.SelectLess, 4), give, 0, wantMTU(ib.MTU1024)},
		{"MTU less than the least", sel(mtu, mad.SelectLess, 1), invalid, group.Unrealizable, nil},
		{"MTU greater", sel(mtu, mad.SelectGreater, 4), give, 0, wantMTU(ib.MTU4096)},
		{"MTU greater than there is", sel(mtu, mad.SelectGreater, 5), invalid, group.Unrealizable, nil},
		{"any MTU, as greater than 0", sel(mtu, mad.SelectGreater, 0), give, 0, wantMTU(ib.MTU4096)},
		{"MTU less than 0", sel(mtu, mad.SelectLess, 0), invalid, group.Unrealizable, nil},
		{"MTU of exactly 0", sel(mtu, mad.SelectExactly, 0), invalid, group.Unrealizable, nil},
		{"MTU greater than no code", sel(mtu, mad.SelectGreater, 6), invalid, group.Unrealizable, nil},
		{"largest MTU", sel(mtu, mad.SelectBest, 0), give, 0, wantMTU(ib.MTU4096)},
		{"MTU that there is none of", sel(mtu, mad.SelectExactly, 6), invalid, group.Unrealizable, nil},
		{"MTU without a selector", sel(mad.MCMemberComponentMTU, 0, 2), give, 0, wantMTU(ib.MTU4096)},
		{"rate exactly", sel(rate, mad.SelectExactly, uint8(ib.Rate20)), give, 0, wantRate(ib.Rate20)},
		{"rate above the port's", sel(rate, mad.SelectExactly, uint8(ib.Rate200)), invalid, group.Unrealizable, nil},
		{"rate less", sel(rate, mad.SelectLess, uint8(ib.Rate100)), give, 0, wantRate(ib.Rate80)},
		{"rate greater, by speed and not by code", sel(rate, mad.SelectGreater, uint8(ib.Rate56)), give, 0, wantRate(ib.Rate100)},
		{"rate greater than the port's", sel(rate, mad.SelectGreater, uint8(ib.Rate100)), invalid, group.Unrealizable, nil},
		{"rate of no code", sel(rate, mad.SelectLess, 63), invalid, group.Unrealizable, nil},
		{"any rate, as greater than 0", sel(rate, mad.SelectGreater, 0), give, 0, wantRate(ib.Rate100)},
		{"rate of exactly 0", sel(rate, mad.SelectExactly, 0), invalid, group.Unrealizable, nil},
		{"any MTU and rate", both(sel(mtu, mad.SelectGreater, 0), sel(rate, mad.SelectGreater, 0)), give, 0, func(r *mad.MCMemberRecord) bool {
			return r.MTU == ib.MTU4096 && r.Rate == ib.Rate100
		}},
		{"lifetime exactly", sel(life, mad.SelectExactly, 14), give, 0, wantLife(14)},
		{"lifetime greater", sel(life, mad.SelectGreater, 20), give, 0, wantLife(21)},
		{"lifetime less", sel(life, mad.SelectLess, 18), give, 0, wantLife(17)},
		{"lifetime less than the usual by far", sel(life, mad.SelectLess, 0), invalid, group.Unrealizable, nil},
		{"longer than there is", sel(life, mad.SelectGreater, 0x3F), invalid, group.Unrealizable, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, group.Config{})
			q := r.making(alice, mgid(1)).with(tt.change)
			a := r.set(q)
			if a.Verdict != trust.OK || a.Status != tt.want || why(a) != tt.why {
				t.Fatalf("verdict %v, status %v for %v, want %v for %v", a.Verdict, a.Status, why(a), tt.want, tt.why)
			}
			if a.Status != give {
				if len(a.Save) > 0 || a.Groups != nil || len(a.Notices) > 0 || r.Now().Len() != 0 {
					t.Errorf("a refusal left something: %+v", a.Effects)
				}
				return
			}
			if tt.holds != nil && !tt.holds(&a.Record) {
				t.Errorf("answered %+v", a.Record)
			}
			if len(a.Notices) != 1 || a.Notices[0].Report.TrapNumber != mad.TrapMulticastCreated || a.Notices[0].GIDOf() != a.Record.MGID {
				t.Errorf("notices %+v", a.Notices)
			}
			want := &sm.GroupsChanged{Made: []ib.LID{a.Record.MLID}, Joins: []multicast.Join{{MLID: a.Record.MLID, GUID: alice, State: q.rec.JoinState}}}
			if d := cmp.Diff(want, a.Groups); d != "" {
				t.Errorf("the Subnet Manager is told (-want +got):\n%s", d)
			}
		})
	}
}

// TestJoinRules joins a group of the first tenant: 2048 bytes, 20 Gb/s.
func TestJoinRules(t *testing.T) {
	eq := func(c mad.ComponentMask, change func(*mad.MCMemberRecord)) func(*request) { return mask(c, change) }
	for _, tt := range []struct {
		name   string
		port   ib.GUID
		change func(*request)
		want   mad.Status
		why    group.Reason
	}{
		{"as it is", alan, nil, give, 0},
		{"same Q_Key", alan, eq(mad.MCMemberComponentQKey, func(r *mad.MCMemberRecord) { r.QKey = 7 }), give, 0},
		{"another Q_Key", alan, eq(mad.MCMemberComponentQKey, func(r *mad.MCMemberRecord) { r.QKey = 8 }), invalid, group.ParamsDiffer},
		{"another TClass", alan, eq(mad.MCMemberComponentTClass, func(r *mad.MCMemberRecord) { r.TClass = 8 }), invalid, group.ParamsDiffer},
		{"another SL", alan, eq(mad.MCMemberComponentSL, func(r *mad.MCMemberRecord) { r.SL = 8 }), invalid, group.ParamsDiffer},
		{"another FlowLabel", alan, eq(mad.MCMemberComponentFlowLabel, func(r *mad.MCMemberRecord) { r.FlowLabel = 8 }), invalid, group.ParamsDiffer},
		{"another HopLimit", alan, eq(mad.MCMemberComponentHopLimit, func(r *mad.MCMemberRecord) { r.HopLimit = 8 }), invalid, group.ParamsDiffer},
		{"another scope", alan, eq(mad.MCMemberComponentScope, func(r *mad.MCMemberRecord) { r.Scope = 8 }), give, 0},
		{"same P_Key, limited", alan, eq(mad.MCMemberComponentPKey, func(r *mad.MCMemberRecord) { r.PKey = tenantA.Limited() }), give, 0},
		{"another P_Key", alan, eq(mad.MCMemberComponentPKey, func(r *mad.MCMemberRecord) { r.PKey = 0x7fff }), invalid, group.ParamsDiffer},
		{"P_Key 0", alan, eq(mad.MCMemberComponentPKey, func(r *mad.MCMemberRecord) { r.PKey = 0 }), invalid, group.InvalidPKey},
		{"MTU as it is", alan, eq(mad.MCMemberComponentMTU|mad.MCMemberComponentMTUSelector, func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = mad.SelectExactly, 4 }), give, 0},
		{"greater MTU", alan, eq(mad.MCMemberComponentMTU|mad.MCMemberComponentMTUSelector, func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = mad.SelectGreater, 4 }), invalid, group.ParamsDiffer},
		{"lower rate", alan, eq(mad.MCMemberComponentRate|mad.MCMemberComponentRateSelector, func(r *mad.MCMemberRecord) { r.RateSelector, r.Rate = mad.SelectLess, ib.Rate20 }), invalid, group.ParamsDiffer},
		{"shorter lifetime", alan, eq(mad.MCMemberComponentPacketLifeTime|mad.MCMemberComponentPacketLifeTimeSelector, func(r *mad.MCMemberRecord) { r.PacketLifeTimeSelector, r.PacketLifeTime = mad.SelectLess, 18 }), invalid, group.ParamsDiffer},
		{"limited member", lim, nil, give, 0},
		{"slow", slow, nil, invalid, group.TooSlow},
		{"non-member", alan, rec(func(r *mad.MCMemberRecord) { r.JoinState = ib.NonMember }), give, 0},
		{"all states", alan, rec(func(r *mad.MCMemberRecord) { r.JoinState = 0xF }), give, 0},
		{"no state", alan, rec(func(r *mad.MCMemberRecord) { r.JoinState = 0 }), invalid, group.NoJoinState},
		// A requester without a right to the group gets the same answer as one that names no existing group.
		{"another tenant", bob, nil, missing, group.MissingComponents},
		{"another tenant, its P_Key", bob, eq(mad.MCMemberCreate, func(r *mad.MCMemberRecord) { r.PKey = tenantA }), invalid, group.NotInPartition},
		{"trusted, from nowhere", none, func(q *request) { q.asker.Trusted = true }, invalid, group.NotInPartition},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, group.Config{})
			r.must(r.set(r.making(alice, mgid(1)).with(mask(
				mad.MCMemberComponentMTU|mad.MCMemberComponentMTUSelector|mad.MCMemberComponentRate|mad.MCMemberComponentRateSelector,
				func(r *mad.MCMemberRecord) {
					r.MTUSelector, r.MTU, r.RateSelector, r.Rate = mad.SelectExactly, ib.MTU2048, mad.SelectExactly, ib.Rate20
				},
			))))
			q := r.joining(tt.port, mgid(1))
			if tt.change != nil {
				tt.change(&q)
			}
			a := r.set(q)
			if a.Status != tt.want || why(a) != tt.why {
				t.Fatalf("status %v for %v, want %v for %v", a.Status, why(a), tt.want, tt.why)
			}
			if _, in := r.Now().Group(mgid(1)).Member(tt.port); in != (tt.want == give) {
				t.Errorf("a member: %v", in)
			}
			if len(a.Notices) != 0 {
				t.Errorf("a join raises %+v", a.Notices)
			}
		})
	}
	t.Run("without validation", func(t *testing.T) {
		r := newRig(t, group.Config{NoJoinValidation: true})
		r.must(r.set(r.making(alice, mgid(1))))
		r.must(r.set(r.joining(alan, mgid(1)).with(mask(mad.MCMemberComponentQKey, func(r *mad.MCMemberRecord) { r.QKey = 99 }))))
		if a := r.set(r.joining(slow, mgid(1))); why(a) != group.SmallMTU {
			t.Errorf("MTU and rate count always; told %v", why(a))
		}
	})
}

// TestStates: states are added by joins and taken by leaves, and the group goes with
// its last full member.
func TestStates(t *testing.T) {
	r := newRig(t, group.Config{})
	state := func(s ib.JoinState) func(*request) { return rec(func(m *mad.MCMemberRecord) { m.JoinState = s }) }
	r.must(r.set(r.making(alice, mgid(1))))
	if got := r.must(r.set(r.joining(alice, mgid(1)).with(state(ib.NonMember)))); got.JoinState != 3 {
		t.Errorf("state after a second join %v", got.JoinState)
	}
	again := r.set(r.joining(alice, mgid(1)))
	if r.must(again).JoinState != 3 || len(again.Save) > 0 || again.Groups != nil {
		t.Errorf("the same join again: %+v", again)
	}
	r.must(r.set(r.joining(alan, mgid(1)).with(state(ib.SendOnlyNonMember))))
	if a := r.del(r.joining(alice, mgid(1)).with(state(ib.SendOnlyNonMember))); a.Status != invalid || why(a) != group.NotMember {
		t.Errorf("leaving what one is not in: %v", a.Status)
	}
	if a := r.del(r.joining(bob, mgid(1))); a.Status != invalid {
		t.Errorf("leaving as somebody else: %v", a.Status)
	}
	if a := r.del(r.joining(alice, mgid(2))); a.Status != invalid {
		t.Errorf("leaving no group: %v", a.Status)
	}
	if a := r.del(r.joining(alice, mgid(1)).with(without(mad.MCMemberComponentJoinState))); a.Status != missing {
		t.Errorf("leaving without a state: %v", a.Status)
	}
	if got := r.must(r.del(r.joining(alice, mgid(1)).with(state(ib.NonMember)))); got.JoinState != 1 {
		t.Errorf("state after giving up one: %v", got.JoinState)
	}
	last := r.del(r.joining(alice, mgid(1)))
	if r.must(last).JoinState != 0 {
		t.Errorf("state after all: %v", last.Record.JoinState)
	}
	if r.Now().Len() != 0 || len(r.saved) != 0 {
		t.Errorf("%d groups and %d facts are left", r.Now().Len(), len(r.saved))
	}
	if len(last.Notices) != 1 || last.Notices[0].Report.TrapNumber != mad.TrapMulticastDeleted || last.Notices[0].PKeys[0] != tenantA {
		t.Errorf("notices %+v", last.Notices)
	}
	if d := cmp.Diff(&sm.GroupsChanged{Gone: []ib.LID{0xC000}}, last.Groups); d != "" {
		t.Errorf("the Subnet Manager is told (-want +got):\n%s", d)
	}
}

// TestProxies checks which requester may act for which port.
func TestProxies(t *testing.T) {
	loose := trust.DefaultOptions()
	loose.ProxyUntrusted = true
	for _, tt := range []struct {
		name    string
		opts    trust.Options
		asker   func(r *rig) portindex.Asker
		port    ib.GUID
		want    mad.Status
		verdict trust.Verdict
		proxy   bool
	}{
		{"for another", trust.DefaultOptions(), func(r *rig) portindex.Asker { return r.f.Asker(alan) }, alice, give, trust.Proxy, false},
		{"for nobody", trust.DefaultOptions(), func(r *rig) portindex.Asker { return r.f.Asker(alan) }, 0x999, give, trust.Proxy, false},
		{"for another, allowed", loose, func(r *rig) portindex.Asker { return r.f.Asker(alan) }, alice, give, trust.OK, true},
		{"for another, without a partition", loose, func(r *rig) portindex.Asker { return r.f.Asker(bob) }, alice, invalid, trust.OK, false},
		{"for nobody, allowed", loose, func(r *rig) portindex.Asker { return r.f.Asker(alan) }, 0x999, invalid, trust.OK, false},
		{"trusted", trust.DefaultOptions(), func(r *rig) portindex.Asker { return r.f.Trusted(alan) }, alice, give, trust.OK, true},
		{"for its alias", trust.DefaultOptions(), func(r *rig) portindex.Asker { return r.f.Asker(alice) }, vport, give, trust.OK, false},
		{"as its alias", trust.DefaultOptions(), func(r *rig) portindex.Asker { a := r.f.Asker(alice); a.As = vport; return a }, vport, give, trust.OK, false},
		{"alias for its sibling", trust.DefaultOptions(), func(r *rig) portindex.Asker { a := r.f.Asker(alice); a.As = vport; return a }, twin, give, trust.Sibling, false},
		{"alias for its port", trust.DefaultOptions(), func(r *rig) portindex.Asker { a := r.f.Asker(alice); a.As = vport; return a }, alice, give, trust.Sibling, false},
		{"nobody", trust.DefaultOptions(), func(*rig) portindex.Asker { return portindex.Asker{Port: -1} }, alice, give, trust.UnknownSource, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := guard(t, tt.opts)
			r := newRig(t, group.Config{Guard: g, Limits: trust.NewLimits(), Trust: tt.opts})
			q := r.making(alice, mgid(1))
			q.asker, q.rec.PortGID = tt.asker(r), portGID(tt.port)
			a := r.set(q)
			if a.Status != tt.want || a.Verdict != tt.verdict {
				t.Fatalf("status %v, verdict %v, want %v, %v", a.Status, a.Verdict, tt.want, tt.verdict)
			}
			if a.Status == give && a.Verdict == trust.OK {
				m, _ := r.Now().Group(mgid(1)).Member(tt.port)
				if m.Proxy != tt.proxy || a.Record.ProxyJoin != tt.proxy || m.Port != alice {
					t.Errorf("member %+v", m)
				}
			}
		})
	}
}

func guard(t testing.TB, o trust.Options) *trust.Guard {
	t.Helper()
	k, err := trust.NewKeys(trust.KeyState{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := trust.NewGuard(o, ib.DefaultPrefix, k)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestProxyMembership: a membership that was made for a port can be ended by its creator or by the port. One that the port
// made can be ended only by the port.
func TestProxyMembership(t *testing.T) {
	opts := trust.DefaultOptions()
	opts.ProxyUntrusted = true
	r := newRig(t, group.Config{Guard: guard(t, opts), Trust: opts})
	for _, g := range []byte{1, 2, 3} {
		q := r.making(alice, mgid(g))
		q.asker = r.f.Asker(alan)
		r.must(r.set(q))
	}
	own := r.making(alice, mgid(4))
	r.must(r.set(own))
	by := func(port ib.GUID, g byte) request {
		q := r.joining(alice, mgid(g))
		q.asker = r.f.Asker(port)
		return q
	}
	if a := r.del(by(slow, 1)); why(a) != group.NotYours {
		t.Errorf("a third ends it: %v", why(a))
	}
	if a := r.set(by(slow, 1)); why(a) != group.NotYours {
		t.Errorf("a third joins for it again: %v", why(a))
	}
	r.must(r.del(by(alan, 1)))
	r.must(r.del(by(alice, 2)))
	if a := r.del(by(alan, 4)); why(a) != group.NotYours {
		t.Errorf("a proxy ends what the port made: %v", why(a))
	}
	if a := r.set(by(alan, 4)); why(a) != group.NotYours {
		t.Errorf("a proxy joins where the port is: %v", why(a))
	}
	if got := r.must(r.set(by(alice, 3))); got.ProxyJoin {
		t.Error("the port joined itself and is a proxy's still")
	}
	if a := r.del(by(alan, 3)); why(a) != group.NotYours {
		t.Errorf("a proxy ends what the port took over: %v", why(a))
	}
	r.must(r.del(by(alice, 3)))
	end := by(none, 4)
	end.asker = r.f.Trusted(registrytest.SM)
	end.rec.PortGID = portGID(alice)
	r.must(r.del(end))
}

// TestLimitOfAPort: the limit counts the memberships of a port, also those that another port requested. A request above the
// limit gets no answer.
func TestLimitOfAPort(t *testing.T) {
	opts := trust.DefaultOptions()
	opts.MaxGroups = 2
	lims := trust.NewLimits()
	r := newRig(t, group.Config{Guard: guard(t, opts), Limits: lims, Trust: opts})
	r.must(r.set(r.making(alice, mgid(1))))
	trusted := r.making(alice, mgid(2))
	trusted.asker = r.f.Trusted(alan)
	r.must(r.set(trusted))
	a := r.set(r.making(alice, mgid(3)))
	if a.Verdict != trust.TooManyGroups || r.Now().Len() != 2 || len(a.Save) > 0 {
		t.Fatalf("a third group: %+v", a)
	}
	r.must(r.set(r.joining(alice, mgid(1)))) // it is in already
	alias := r.making(alice, mgid(3))
	alias.rec.PortGID = portGID(vport) // counts for itself
	r.must(r.set(alias))
	r.must(r.del(r.joining(alice, mgid(1))))
	r.must(r.set(r.making(alice, mgid(4))))
	if n := lims.Count(trust.Groups, alice); n != 2 {
		t.Errorf("alice counts %d", n)
	}
}

func TestEventsSayWhat(t *testing.T) {
	for k := group.NoReason; k <= group.UnusableFact; k++ {
		if s := k.String(); s == "" || slices.Contains([]string{"none"}, s) != (k == group.NoReason) {
			t.Errorf("reason %d reads %q", k, s)
		}
	}
	r := newRig(t, group.Config{})
	a := r.set(r.making(bob, mgid(1)))
	const want = "multicast group ff12:a01c::1 (P_Key 0x8001, LID 0x0000) refused, port 0x0000000000000201, asked by LID 513: the port does not have the P_Key of the group"
	if len(a.Events) != 1 || a.Events[0].String() != want {
		t.Errorf("told %v, want %s", a.Events, want)
	}
}
