package group_test

import (
	"bytes"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry/registrytest"
)

// ask returns the records that answer a query.
func (r *rig) ask(a portindex.Asker, m mad.ComponentMask, want mad.MCMemberRecord) (all []mad.MCMemberRecord) {
	r.t.Helper()
	q := r.Now().Query(a, r.f.EndPort(a.Port), ib.DefaultPrefix, &want, m)
	buf := make([]byte, mad.RecordSize(mad.AttrMCMemberRecord))
	for {
		for i := range buf {
			buf[i] = 0xEE
		}
		n, ok := registrytest.Next(&q, buf)
		if !ok {
			return all
		}
		var got mad.MCMemberRecord
		if err := mad.Decode(buf[:n], &got); err != nil || n != len(buf) {
			r.t.Fatalf("record of %d bytes: %v", n, err)
		}
		if pad := buf[52:]; !bytes.Equal(pad, make([]byte, 4)) {
			r.t.Fatalf("padding %x", pad)
		}
		all = append(all, got)
	}
}

// filled has two groups of the first tenant, with two members and one, and one of the
// second.
func filled(t testing.TB) *rig {
	r := newRig(t, group.Config{})
	r.must(r.set(r.making(alice, mgid(1))))
	r.must(r.set(r.joining(alan, mgid(1)).with(rec(func(m *mad.MCMemberRecord) { m.JoinState = ib.NonMember }))))
	r.must(r.set(r.making(alan, mgid(2)).with(mask(mad.MCMemberComponentMTU|mad.MCMemberComponentMTUSelector, func(m *mad.MCMemberRecord) {
		m.MTUSelector, m.MTU = mad.SelectExactly, ib.MTU1024
	}))))
	r.must(r.set(r.making(bob, mgid(3)).with(rec(func(m *mad.MCMemberRecord) { m.PKey = tenantB }))))
	return r
}

func TestQueries(t *testing.T) {
	r := filled(t)
	const (
		byMGID  = mad.MCMemberComponentMGID
		byPort  = mad.MCMemberComponentPortGID
		byState = mad.MCMemberComponentJoinState
		byProxy = mad.MCMemberComponentProxyJoin
		byMTU   = mad.MCMemberComponentMTU | mad.MCMemberComponentMTUSelector
	)
	for _, tt := range []struct {
		name  string
		asker portindex.Asker
		mask  mad.ComponentMask
		rec   mad.MCMemberRecord
		want  []byte // last bytes of the MGIDs
	}{
		{"all", r.f.Asker(alice), 0, mad.MCMemberRecord{}, []byte{1, 2}},
		{"all of another tenant", r.f.Asker(bob), 0, mad.MCMemberRecord{}, []byte{3}},
		{"all of nobody's", r.f.Asker(none), 0, mad.MCMemberRecord{}, nil},
		{"by MGID", r.f.Asker(alice), byMGID, mad.MCMemberRecord{MGID: mgid(2)}, []byte{2}},
		{"by another's MGID", r.f.Asker(alice), byMGID, mad.MCMemberRecord{MGID: mgid(3)}, nil},
		{"by MLID", r.f.Asker(alice), mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: 0xC001}, []byte{2}},
		{"by another's MLID", r.f.Asker(alice), mad.MCMemberComponentMLID, mad.MCMemberRecord{MLID: 0xC002}, nil},
		{"by P_Key", r.f.Asker(alice), mad.MCMemberComponentPKey, mad.MCMemberRecord{PKey: tenantA}, []byte{1, 2}},
		{"by Q_Key", r.f.Asker(alice), mad.MCMemberComponentQKey, mad.MCMemberRecord{QKey: 7}, []byte{1, 2}},
		{"by another Q_Key", r.f.Asker(alice), mad.MCMemberComponentQKey, mad.MCMemberRecord{QKey: 8}, nil},
		{"by MTU", r.f.Asker(alice), byMTU, mad.MCMemberRecord{MTUSelector: mad.SelectGreater, MTU: 3}, []byte{1}},
		{"by MTU alone", r.f.Asker(alice), mad.MCMemberComponentMTU, mad.MCMemberRecord{MTU: 1}, []byte{1, 2}},
		{"by rate", r.f.Asker(alice), mad.MCMemberComponentRate | mad.MCMemberComponentRateSelector, mad.MCMemberRecord{Rate: ib.Rate100, RateSelector: mad.SelectLess}, nil},
		{"by scope", r.f.Asker(alice), mad.MCMemberComponentScope, mad.MCMemberRecord{Scope: 2}, []byte{1, 2}},
		{"by TClass", r.f.Asker(alice), mad.MCMemberComponentTClass, mad.MCMemberRecord{TClass: 4}, nil},
		{"by SL", r.f.Asker(alice), mad.MCMemberComponentSL, mad.MCMemberRecord{SL: 1}, []byte{1, 2}},
		{"by FlowLabel", r.f.Asker(alice), mad.MCMemberComponentFlowLabel, mad.MCMemberRecord{FlowLabel: 1}, nil},
		{"by HopLimit", r.f.Asker(alice), mad.MCMemberComponentHopLimit, mad.MCMemberRecord{HopLimit: 1}, nil},
		{"own", r.f.Asker(alice), byPort, mad.MCMemberRecord{PortGID: portGID(alice)}, []byte{1}},
		{"own, foreign prefix", r.f.Asker(alice), byPort, mad.MCMemberRecord{PortGID: ib.MakeGID(7, alice)}, nil},
		{"trusted", r.f.Trusted(alice), 0, mad.MCMemberRecord{}, []byte{1, 1, 2, 3}},
		{"trusted, of another tenant", r.f.Trusted(bob), 0, mad.MCMemberRecord{}, []byte{1, 1, 2, 3}},
		{"trusted, a member", r.f.Trusted(alice), byPort, mad.MCMemberRecord{PortGID: portGID(alan)}, []byte{1, 2}},
		{"trusted, a member of a group", r.f.Trusted(alice), byPort | byMGID, mad.MCMemberRecord{PortGID: portGID(alan), MGID: mgid(2)}, []byte{2}},
		{"trusted, by state", r.f.Trusted(alice), byState, mad.MCMemberRecord{JoinState: ib.NonMember}, []byte{1}},
		{"trusted, by proxy", r.f.Trusted(alice), byProxy, mad.MCMemberRecord{ProxyJoin: true}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.ask(tt.asker, tt.mask, tt.rec)
			if len(got) != len(tt.want) {
				t.Fatalf("%d records, want %d: %+v", len(got), len(tt.want), got)
			}
			for i := range got {
				if got[i].MGID != mgid(tt.want[i]) {
					t.Errorf("record %d is of %v, want %v", i, got[i].MGID, mgid(tt.want[i]))
				}
				if shown := got[i].PortGID != (ib.GID{}) || got[i].JoinState != 0 || got[i].ProxyJoin; shown != tt.asker.Trusted {
					t.Errorf("record %d shows its member: %v", i, shown)
				}
			}
		})
	}
}

// TestSnapshotsStay: a query goes on over the groups there were when it began.
func TestSnapshotsStay(t *testing.T) {
	r := filled(t)
	q := r.Now().Query(r.f.Trusted(alice), r.f.Ports[alice], ib.DefaultPrefix, &mad.MCMemberRecord{}, 0)
	buf := make([]byte, 56)
	n := 0
	for {
		if _, ok := registrytest.Next(&q, buf); !ok {
			break
		}
		n++
		r.del(r.joining(alan, mgid(1)).with(rec(func(m *mad.MCMemberRecord) { m.JoinState = ib.NonMember })))
		r.del(r.joining(alan, mgid(2)))
		r.del(r.joining(alice, mgid(1)))
	}
	if n != 4 || r.Now().Len() != 1 {
		t.Errorf("%d records of 3, %d groups left", n, r.Now().Len())
	}
	if _, ok := registrytest.Next(&q, buf); ok {
		t.Error("a record after the last")
	}
	short := r.Now().Query(r.f.Asker(bob), r.f.Ports[bob], ib.DefaultPrefix, &mad.MCMemberRecord{}, 0)
	if _, ok := registrytest.Next(&short, buf[:20]); ok {
		t.Error("a record in a buffer that is too short")
	}
}

// TestQueryAllocatesNothing for a query and each of its records.
func TestQueryAllocatesNothing(t *testing.T) {
	r := filled(t)
	buf := make([]byte, 56)
	from, rec := r.f.Ports[alice], mad.MCMemberRecord{MGID: mgid(1)}
	asker, now := r.f.Trusted(alice), r.Now()
	if n := testing.AllocsPerRun(100, func() {
		q := now.Query(asker, from, ib.DefaultPrefix, &rec, mad.MCMemberComponentMGID)
		for done := false; !done; {
			_, done = q.Step(buf, 1<<10)
		}
	}); n > 0 {
		t.Errorf("%v allocations a query", n)
	}
}

// TestUnknownIsAsForeign: a query for a group of another tenant takes as many steps as one for a group that does not exist.
func TestUnknownIsAsForeign(t *testing.T) {
	r := filled(t)
	steps := func(a portindex.Asker, id byte, more mad.ComponentMask) int {
		q := r.Now().Query(a, r.f.EndPort(a.Port), ib.DefaultPrefix, &mad.MCMemberRecord{MGID: mgid(id), PortGID: portGID(a.As)}, mad.MCMemberComponentMGID|more)
		if _, ok := registrytest.Next(&q, make([]byte, 56)); ok {
			t.Errorf("group %d is shown", id)
		}
		return q.Steps()
	}
	for _, more := range []mad.ComponentMask{0, mad.MCMemberComponentPortGID, mad.MCMemberComponentQKey} {
		if foreign, nobodys := steps(r.f.Asker(alice), 3, more), steps(r.f.Asker(alice), 9, more); foreign != nobodys {
			t.Errorf("mask %x: %d steps for another's group, %d for nobody's", more, foreign, nobodys)
		}
	}
}
