package group_test

import (
	"encoding/binary"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// T65: registrations exhausted. One more than the limit is dropped, without an answer
// and without a trace.
func TestT65OneGroupTooMany(t *testing.T) {
	opts := trust.DefaultOptions()
	r := newRig(t, group.Config{Guard: guard(t, opts), Trust: opts})
	for i := range opts.MaxGroups {
		r.must(r.set(r.making(alice, mgid(byte(i)))))
	}
	a := r.set(r.making(alice, mgid(0xFF)))
	if a.Verdict != trust.TooManyGroups || a.Verdict.Notice() != 1303 || len(a.Save)+len(a.Events)+len(a.Notices) > 0 {
		t.Errorf("one too many: %+v", a)
	}
	r.must(r.set(r.joining(alan, mgid(0)))) // others may
}

// T71: no host learns the members of a group, neither from records nor by naming members.
func TestT71MembersAreNotTold(t *testing.T) {
	r := filled(t)
	for _, port := range []ib.GUID{alan, bob, 0x999} {
		if got := r.ask(r.f.Asker(alice), mad.MCMemberComponentPortGID, mad.MCMemberRecord{PortGID: portGID(port)}); len(got) != 0 {
			t.Errorf("asked for %v: %+v", port, got)
		}
	}
	for s := ib.JoinState(1); s < 16; s++ {
		if got := r.ask(r.f.Asker(alice), mad.MCMemberComponentJoinState, mad.MCMemberRecord{JoinState: s}); len(got) != 0 {
			t.Errorf("asked for state %v: %+v", s, got)
		}
	}
}

// T75, T82: no port ends or changes the membership of another port. A group of the configuration stays when all members
// have left.
func TestT75T82MembershipsOfOthers(t *testing.T) {
	opts := trust.DefaultOptions()
	r := newRig(t, group.Config{Guard: guard(t, opts), Trust: opts})
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
	all := group.Broadcast(tenantA, 2)
	r.must(r.set(r.joining(alice, all)))
	for _, thief := range []ib.GUID{alan, bob, none} {
		q := r.joining(alice, all)
		q.asker = r.f.Asker(thief)
		if a := r.del(q); a.Verdict != trust.Proxy || len(a.Save) > 0 {
			t.Errorf("%v ends the membership of %v: %+v", thief, alice, a)
		}
	}
	r.must(r.del(r.joining(alice, all)))
	if g := r.Now().Group(all); g == nil || g.Len() != 0 {
		t.Errorf("the broadcast group is %+v", g)
	}
	if a := r.del(r.joining(alice, all)); a.Status != invalid {
		t.Errorf("leaving twice: %v", a.Status)
	}
}

// T78: a port joins a group of another partition. It learns as little as of a group
// that there is not.
func TestT78AnothersGroup(t *testing.T) {
	r := newRig(t, group.Config{})
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
	r.must(r.set(r.making(alice, mgid(1))))
	theirs, nobodys := group.Broadcast(tenantA, 2), group.Broadcast(0x8999, 2)
	for _, change := range []func(*request){
		func(*request) {},
		func(q *request) { q.mask, q.rec.PKey = mad.MCMemberCreate, tenantB },
		func(q *request) { q.mask, q.rec.PKey = mad.MCMemberCreate, tenantA },
		func(q *request) { q.mask, q.rec.PKey = mad.MCMemberCreate, 0xFFFF },
	} {
		a, b := r.set(r.joining(bob, theirs).with(change)), r.set(r.joining(bob, nobodys).with(change))
		if a.Status == mad.StatusOK || a.Status != b.Status || a.Verdict != b.Verdict || len(a.Save) > 0 {
			t.Errorf("another's: %v, nobody's: %v", a.Status, b.Status)
		}
		x, y := r.del(r.joining(bob, theirs).with(change)), r.del(r.joining(bob, nobodys).with(change))
		if x.Status != invalid || y.Status != invalid {
			t.Errorf("leaving another's: %v, nobody's: %v", x.Status, y.Status)
		}
	}
	if g := r.Now().Group(mgid(1)); g.Len() != 1 {
		t.Errorf("%d members", g.Len())
	}
}

// T79: groups are made until multicast LIDs run out. A partition gets no more LIDs than are left for others, then its
// groups share its LIDs. The reserve is for groups of the configuration, and no two partitions ever share a LID.
func TestT79NoMoreMulticastLIDs(t *testing.T) {
	r := newRig(t, group.Config{Reserve: 8})
	f := r.f.Clone()
	f.Top = ib.MinMulticastLID + 64
	r.move(f)
	owner := make(map[ib.LID]ib.PKey)
	count := func(i int) ib.GID {
		g := mgid(0)
		binary.BigEndian.PutUint32(g[8:], uint32(i))
		return g
	}
	for i := range 200 {
		rec := r.must(r.set(r.making(alice, count(i))))
		if rec.MLID >= f.Top {
			t.Fatalf("group %d has 0x%04x", i, uint16(rec.MLID))
		}
		owner[rec.MLID] = rec.PKey
	}
	if len(owner) != 28 {
		t.Errorf("200 groups have %d multicast LIDs, want half of all but the reserve of 8", len(owner))
	}
	// A slow group shares nothing with a fast one: its members would hold it up.
	if a := r.set(r.making(slow, mgid(2))); a.Status != mad.StatusNoResources || why(a) != group.NoMLID {
		t.Errorf("a slower group: %v, LID 0x%04x", a.Status, uint16(a.Record.MLID))
	}
	other := func(i int) request {
		return r.making(bob, count(1000+i)).with(rec(func(m *mad.MCMemberRecord) { m.PKey = tenantB }))
	}
	theirs := make(map[ib.LID]bool)
	for i := range 100 {
		rec := r.must(r.set(other(i)))
		if owner[rec.MLID] != 0 {
			t.Fatalf("two partitions share 0x%04x", uint16(rec.MLID))
		}
		theirs[rec.MLID] = true
	}
	if len(theirs) != 14 {
		t.Errorf("the next partition has %d, want half of the rest", len(theirs))
	}
	trusted := r.making(alice, count(5000))
	trusted.asker.Trusted = true
	if got := r.must(r.set(trusted)); owner[got.MLID] != 0 {
		t.Error("who is trusted gets none of its own")
	}
	full := f.Clone()
	full.Top = ib.MinMulticastLID + 44
	r.move(full)
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(0x8003, 0)}))
	if g := r.Now().Group(group.Broadcast(0x8003, 2)); g == nil || owner[g.MLID] != 0 || theirs[g.MLID] {
		t.Fatalf("the broadcast group of a new partition is %+v", g)
	}
	for i := range 200 {
		r.must(r.del(r.joining(alice, count(i))))
	}
	r.must(r.set(r.making(slow, mgid(2))))
	r.told.same(t, r.Input())
}

// T79 again: the quota of a partition.
func TestT79Quota(t *testing.T) {
	r := newRig(t, group.Config{Quota: func(k ib.PKey) int {
		if k == tenantA {
			return 3
		}
		return 0
	}})
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)})) // does not count
	for i := range byte(3) {
		r.must(r.set(r.making(alice, mgid(i))))
	}
	if a := r.set(r.making(alan, mgid(9))); a.Status != mad.StatusNoResources || why(a) != group.PartitionQuota {
		t.Errorf("one more than the quota: %v", a.Status)
	}
	trusted := r.making(alan, mgid(9))
	trusted.asker.Trusted = true
	r.must(r.set(trusted))
	r.must(r.del(r.joining(alice, mgid(0))))
	r.must(r.del(r.joining(alice, mgid(1))))
	r.must(r.set(r.making(alan, mgid(8))))
}

// T80: a host tries to create the broadcast group of IPoIB first, with parameters that break it, or creates a group beside
// it.
func TestT80BroadcastGroup(t *testing.T) {
	r := newRig(t, group.Config{})
	all := group.Broadcast(tenantA, 2)
	bad := r.making(alice, all).with(rec(func(m *mad.MCMemberRecord) { m.QKey = 0x666 }))
	if a := r.set(bad); a.Status != invalid || why(a) != group.NoBroadcast {
		t.Errorf("made before the partition has one: %v for %v", a.Status, why(a))
	}
	r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
	if a := r.set(bad); a.Status != invalid || why(a) != group.ParamsDiffer {
		t.Errorf("made after: %v for %v", a.Status, why(a))
	}
	got := r.must(r.set(r.joining(alice, all)))
	if got.QKey != 0x0B1B || got.MTU != ib.MTU2048 || got.Rate != ib.Rate10 || got.SL != 0 || got.PKey != tenantA || got.HopLimit != 0 {
		t.Errorf("the broadcast group: %+v", got)
	}
	// ff12:401b:8001::16, as IPoIB asks for it.
	v4 := all
	binary.BigEndian.PutUint32(v4[12:], 0x16)
	right := func(m *mad.MCMemberRecord) { m.QKey, m.TClass, m.SL, m.FlowLabel = 0x0B1B, 0, 0, 0 }
	for _, tt := range []struct {
		name   string
		change func(*request)
		want   group.Reason
	}{
		{"Q_Key", rec(func(m *mad.MCMemberRecord) { m.QKey++ }), group.NotAsBroadcast},
		{"TClass", rec(func(m *mad.MCMemberRecord) { m.TClass++ }), group.NotAsBroadcast},
		{"SL", rec(func(m *mad.MCMemberRecord) { m.SL++ }), group.NotAsBroadcast},
		{"FlowLabel", rec(func(m *mad.MCMemberRecord) { m.FlowLabel++ }), group.NotAsBroadcast},
		{"HopLimit", mask(mad.MCMemberComponentHopLimit, func(m *mad.MCMemberRecord) { m.HopLimit++ }), group.NotAsBroadcast},
		{"MTU", mask(mad.MCMemberComponentMTUSelector|mad.MCMemberComponentMTU, func(m *mad.MCMemberRecord) { m.MTUSelector, m.MTU = mad.SelectExactly, ib.MTU256 }), group.NotAsBroadcast},
		{"rate", mask(mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate, func(m *mad.MCMemberRecord) { m.RateSelector, m.Rate = mad.SelectExactly, ib.Rate2_5 }), group.NotAsBroadcast},
		{"P_Key", rec(func(m *mad.MCMemberRecord) { m.MGID[5] = 2 }), group.NotAsBroadcast},
		{"P_Key without its upper bit", rec(func(m *mad.MCMemberRecord) { m.MGID[4] = 0 }), group.NotAsBroadcast},
		{"scope", rec(func(m *mad.MCMemberRecord) { m.MGID[1] = 0x15 }), group.NoBroadcast},
		{"none", rec(func(*mad.MCMemberRecord) {}), group.NoReason},
	} {
		a := r.set(r.making(alice, v4).with(rec(right)).with(tt.change))
		if why(a) != tt.want {
			t.Errorf("%s differs: %v, want %v", tt.name, why(a), tt.want)
		}
	}
	// By default it has MTU and rate of the broadcast group and not of the port.
	if g := r.Now().Group(v4); g == nil || g.MTU != ib.MTU2048 || g.Rate != ib.Rate10 {
		t.Errorf("a group as the broadcast group: %+v", g)
	}
	v4[15]++
	r.move(r.f.With(slow, func(e *portindex.EndPort) { e.LinkRate = ib.Rate2_5 }))
	if a := r.set(r.making(slow, v4).with(rec(right))); a.Status != invalid || why(a) != group.TooSlow {
		t.Errorf("made by a port that is too slow for the broadcast group: %v for %v", a.Status, why(a))
	}
}

// T81: a slow member joins a group, and a member becomes slow. The group does not change.
func TestT81SlowMembers(t *testing.T) {
	r := newRig(t, group.Config{})
	r.must(r.set(r.making(alice, mgid(1))))
	if a := r.set(r.joining(slow, mgid(1))); a.Status != invalid {
		t.Errorf("a slow port joins: %v", a.Status)
	}
	r.must(r.set(r.joining(alan, mgid(1))))
	e := r.move(r.f.With(alan, func(e *portindex.EndPort) { e.LinkRate = ib.Rate2_5 }))
	if len(e.Events) != 1 || e.Events[0].Kind != group.Left || e.Events[0].Reason != group.TooSlow {
		t.Errorf("a member became slow: %v", e.Events)
	}
	if g := r.Now().Group(mgid(1)); g.Rate != ib.Rate100 || g.Len() != 1 {
		t.Errorf("the group is now %+v", g)
	}
}

// T83: IPv6 addresses without end, each with a group of its own.
func TestT83SolicitedNodes(t *testing.T) {
	for _, share := range []bool{false, true} {
		r := newRig(t, group.Config{ShareSNM: share})
		r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
		lids := make(map[ib.LID]bool)
		for i := range 100 {
			snm := ib.GID{0xFF, 0x12, 0x60, 0x1B, 0x80, 0x01, 11: 1, 12: 0xFF, 15: byte(i)}
			port := []ib.GUID{alice, alan}[i%2]
			lids[r.must(r.set(r.making(port, snm).with(rec(func(m *mad.MCMemberRecord) {
				m.QKey, m.TClass, m.SL, m.FlowLabel = 0x0B1B, 0, 0, 0
			})))).MLID] = true
		}
		if want := map[bool]int{false: 100, true: 1}[share]; len(lids) != want {
			t.Errorf("shared %v: 100 groups have %d multicast LIDs, want %d", share, len(lids), want)
		}
		r.told.same(t, r.Input())
	}
}

// FuzzRequests checks that every request is answered or dropped, and that the saved facts restore the state. The Subnet
// Manager knows the same as after a complete input.
func FuzzRequests(f *testing.F) {
	add := func(q request) {
		var b [8 + 52]byte
		binary.BigEndian.PutUint64(b[:], uint64(q.mask))
		if err := mad.Encode(b[8:], &q.rec); err != nil {
			f.Fatal(err)
		}
		f.Add(b[:], uint8(0), false)
	}
	seed := &rig{t: f, f: fabric()}
	add(seed.making(alice, mgid(1)))
	add(seed.joining(alan, mgid(1)))
	add(seed.joining(alice, group.Broadcast(tenantA, 2)))
	f.Fuzz(func(t *testing.T, raw []byte, who uint8, leave bool) {
		r := newRig(t, group.Config{})
		r.take(r.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0)}))
		r.must(r.set(r.making(alice, mgid(1))))
		ports := []ib.GUID{alice, alan, bob, lim, slow, none}
		for len(raw) >= 60 {
			q := request{asker: r.f.Asker(ports[int(who)%len(ports)]), mask: mad.ComponentMask(binary.BigEndian.Uint64(raw))}
			q.asker.Trusted = who&0x80 != 0
			if err := mad.Decode(raw[8:], &q.rec); err != nil {
				t.Fatal(err)
			}
			if leave {
				r.del(q)
			} else {
				r.set(q)
			}
			raw, who, leave = raw[60:], who+1, !leave
		}
		r.judge()
	})
}

// judge compares the registry with one restored from the saved facts, and with the input that the Subnet Manager got.
func (r *rig) judge() {
	r.t.Helper()
	r.told.same(r.t, r.Input())
	fresh := group.New(group.Config{})
	if e := fresh.Restore(values(r.saved)); len(e.Save) > 0 || len(e.Events) > 0 {
		r.t.Fatalf("restoring does %+v", e)
	}
	sameGroups(r.t, r.Now(), fresh.Now())
	r.told.same(r.t, fresh.Input())
}

func values(m map[string]sm.Fact) (all []sm.Fact) {
	for _, f := range m {
		all = append(all, f)
	}
	return all
}

func sameGroups(t testing.TB, a, b group.Snapshot) {
	t.Helper()
	if a.Len() != b.Len() {
		t.Fatalf("%d groups, restored %d", a.Len(), b.Len())
	}
	for mgid, g := range a.All {
		o := b.Group(mgid)
		if o == nil || o.MLID != g.MLID || o.Params != g.Params || o.Fixed != g.Fixed || o.Len() != g.Len() {
			t.Fatalf("group %v: %+v, restored %+v", mgid, g, o)
		}
		for guid, m := range g.Members {
			if n, ok := o.Member(guid); !ok || n != m {
				t.Fatalf("member %+v of %v, restored %+v", m, mgid, n)
			}
		}
	}
}
