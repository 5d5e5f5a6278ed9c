package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

func inReview(f *facts) { f.review = &review.Mark{Since: noon, Taken: noon.Add(-time.Hour)} }

// alterations are what may be true of a host, in any combination.
var alterations = []func(*facts){
	func(f *facts) { fresh(f); f.grants = map[records.Key]records.Standing{} },
	func(f *facts) {
		if _, ok := f.grants[keyB]; ok {
			unread(f)
		}
	},
	claimedToo, released,
	func(f *facts) { delete(f.ports, 0xb1) },
	func(f *facts) { clear(f.ports) },
	func(f *facts) { f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: ib.Place{Switch: 0x11, Port: 1}} },
	func(f *facts) { f.rec.Sealed = time.Time{} },
	func(f *facts) { f.rec.Evidence = nil },
	func(f *facts) { f.uses = []ib.PKey{9} },
	func(f *facts) { f.foreign = map[records.Key]string{keyB: "other"} },
	func(f *facts) {
		if s, ok := f.grants[keyA]; ok {
			s.Grant.Withdrawn = true
			f.grants[keyA] = s
		}
	},
	func(f *facts) {
		if s, ok := f.grants[keyA]; ok {
			s.Found.State = records.Refused
			f.grants[keyA] = s
		}
	},
}

// A review adds no grant, takes away none that would stay without it, and an approved host is decided about as if there
// were none.
func TestReviewAddsAndTakesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		picked := rapid.SliceOfN(rapid.IntRange(0, len(alterations)-1), 0, 5).Draw(t, "alterations")
		with := func(more ...func(*facts)) *facts {
			f := admitted()
			for _, i := range picked {
				alterations[i](f)
			}
			for _, m := range more {
				m(f)
			}
			return f
		}
		plain, reviewed := decide(with()), with(inReview)
		d := decide(reviewed)
		for _, k := range d.want {
			if !reviewed.stands(k) {
				t.Fatalf("the review adds %v", k)
			}
		}
		for _, k := range plain.want {
			if reviewed.stands(k) && !slices.Contains(d.want, k) {
				t.Fatalf("the review takes %v away", k)
			}
		}
		approved := decide(with(inReview, func(f *facts) { f.approved = true }))
		if !slices.Equal(approved.want, plain.want) || approved.phase != plain.phase {
			t.Fatalf("approved: %s with %v, want %s with %v", approved.phase, approved.want, plain.phase, plain.want)
		}
	})
}

func TestReviewGuard(t *testing.T) {
	for _, tt := range []struct {
		name  string
		alter func(*facts)
		met   bool
		want  int
	}{
		{"backup and fabric agree", func(*facts) {}, true, 2},
		{"one port does not have it", unread, false, 2},
		{"nothing granted", fresh, false, 0},
		{"a shared cluster more", func(f *facts) { f.uses = []ib.PKey{9} }, false, 2},
		{"not assigned", released, false, 0},
		{"approved", all(fresh, func(f *facts) { f.approved = true }), true, 2},
	} {
		f := admitted()
		tt.alter(f)
		inReview(f)
		d := decide(f)
		i := slices.IndexFunc(d.guards, func(g v1.Guard) bool { return g.Name == "review" })
		if i < 0 || d.guards[i].Met != tt.met || len(d.want) != tt.want {
			t.Errorf("%s: %d grants, guards %+v; want review met: %v, %d grants", tt.name, len(d.want), d.guards, tt.met, tt.want)
		}
	}
	f := admitted()
	if d := decide(f); slices.ContainsFunc(d.guards, func(g v1.Guard) bool { return g.Name == "review" }) {
		t.Error("without a review there is the guard review")
	}
}

// restored is a store in review: h1 is in cluster c by the records, which no switch port has; switch port 2, of h2, has that
// P_Key; switch port 3, of no host of the inventory, has another one.
func restored(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	host := func(id string, g ib.GUID, port ib.PortNum) inventory.Host {
		return inventory.Host{ID: id, Position: inventory.Position{Rack: "rack " + id}, HCAs: []inventory.HCA{{NodeGUID: g << 8, Ports: []inventory.Port{{Num: 1, GUID: g, Cable: ib.Place{Switch: 0x10, Port: port}}}}}}
	}
	key := records.Key{PKey: 5, GUID: 1, Place: ib.Place{Switch: 0x10, Port: 1}}
	found := func(port ib.PortNum, g ib.GUID, k ib.PKey) review.Found {
		return review.Found{Place: ib.Place{Switch: 0x10, Port: port}, Switch: "leaf-1", GUID: g, Node: "node", PKeys: []ib.PKey{k}}
	}
	rec := admitted().rec
	rec.Grants = []string{key.String()}
	_, err := l.store.Update(t.Context(), func(tx *store.Tx) error {
		two, three := found(2, 2, 0x8005), found(3, 3, 0x8006)
		return errors.Join(
			inventory.Hosts().Put(tx, "h1", host("h1", 1, 1)), inventory.Hosts().Put(tx, "h2", host("h2", 2, 2)),
			tenancy.Clusters().Put(tx, "c", tenancy.Cluster{Name: "c", Tenant: "t", PKey: 5, Hosts: []string{"h1"}}),
			tenancy.PKeys().Put(tx, ib.PKey(5).String(), tenancy.PKeyRecord{State: tenancy.PKeyUsed, Cluster: "c"}),
			hostrecord.Records().Put(tx, "h1", rec),
			records.Grants().Put(tx, key.String(), records.Grant{Host: "h1", Cluster: "c", Tenant: "t"}),
			records.Ports().Put(tx, ib.GUID(1).String(), records.Port{Place: key.Place}),
			review.Marks().Put(tx, review.Key, review.Mark{Since: noon, Taken: noon}),
			review.Tables().Put(tx, two.Place.String(), two), review.Tables().Put(tx, three.Place.String(), three),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestReviewShowsPlaces(t *testing.T) {
	l := restored(t)
	r, err := l.svc.Review(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Differences {
		got = append(got, fmt.Sprintf("%s %s/%s %s/%d %v %s", d.Kind, d.Host, d.Rack, d.Switch, d.SwitchPort, d.PKey, d.Cluster))
	}
	want := []string{"state-only h1/rack h1 /1 0x8005 c", "fabric-only h2/rack h2 leaf-1/2 0x8005 c", "fabric-only / leaf-1/3 0x8006 "}
	if !r.Active || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReviewDecisions(t *testing.T) {
	l := restored(t)
	wantCode := func(what, code string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	decision := func(hosts ...string) v1.ReviewDecision { return v1.ReviewDecision{Hosts: hosts, Reason: "seen"} }
	_, err := l.svc.Approve(t.Context(), "ann", decision("h1"))
	wantCode("a P_Key that another port has", "p_key_in_use", err)
	_, err = l.svc.Approve(t.Context(), "ann", v1.ReviewDecision{Hosts: []string{"h1"}})
	wantCode("no reason", "reason_missing", err)
	_, err = l.svc.Reject(t.Context(), "ann", decision())
	wantCode("no hosts", "hosts_missing", err)
	_, err = l.svc.Reject(t.Context(), "ann", decision("h9"))
	wantCode("an unknown host", "host_unknown", err)
	_, err = l.svc.EndReview(t.Context(), "ann", v1.ReviewEnd{Reason: "seen"})
	wantCode("open", "review_open", err)
	_, err = l.svc.Tenancy().CreateCluster(t.Context(), "ann", v1.NewCluster{Name: "d", Tenant: "t"})
	wantCode("a new cluster", "in_review", err)

	if _, err := l.svc.Reject(t.Context(), "ann", decision("h2")); err != nil {
		t.Fatal(err)
	}
	k := records.Key{PKey: 5, GUID: 2, Place: ib.Place{Switch: 0x10, Port: 2}}
	if g, err := records.Grants().Get(t.Context(), l.store, k.String()); err != nil || !g.Value.Withdrawn || g.Value.Host != "h2" {
		t.Errorf("what h2's switch port has is not withdrawn: %+v, %v", g.Value, err)
	}
	if h, err := l.svc.Host(t.Context(), "h2"); err != nil || h.Status.Phase != v1.PhaseReleasing {
		t.Errorf("h2: %+v, %v; want it releasing until the P_Key is proven absent", h, err)
	}
	if _, err := l.svc.Approve(t.Context(), "ann", v1.ReviewDecision{All: true, Reason: "seen"}); err != nil {
		t.Fatal(err)
	}
	_, err = l.svc.EndReview(t.Context(), "ann", v1.ReviewEnd{Reason: "seen"})
	wantCode("a P_Key that nothing explains", "review_strange", err)
	if _, err := l.svc.EndReview(t.Context(), "ann", v1.ReviewEnd{Reason: "seen", Strip: true}); err != nil {
		t.Fatal(err)
	}
	if p, err := tenancy.PKeys().Get(t.Context(), l.store, ib.PKey(6).String()); err != nil || p.Value.State != tenancy.PKeyAbsent || !p.Value.Since.Equal(l.clock) {
		t.Errorf("P_Key 6 does not rest: %+v, %v", p.Value, err)
	}
	if r, err := l.svc.Review(t.Context()); err != nil || r.Active {
		t.Errorf("after the end: %+v, %v", r, err)
	}
	_, err = l.svc.Approve(t.Context(), "ann", decision("h1"))
	wantCode("no review", "not_in_review", err)
}

// The Subnet Manager's state says that a review is on.
func TestSMTellsReview(t *testing.T) {
	l := restored(t)
	if _, err := l.store.Update(t.Context(), func(tx *store.Tx) error {
		return records.SMs().Put(tx, records.Master, v1.SM{State: "Master", Updated: l.clock})
	}); err != nil {
		t.Fatal(err)
	}
	sm, err := l.svc.SM(t.Context())
	if err != nil || len(sm.Problems) != 1 || !strings.Contains(sm.Problems[0], "in review since") {
		t.Errorf("%+v, %v", sm, err)
	}
}

// The end of the review of a state that was rolled back begins another branch of the audit log; that of a restored state
// does not. The review shows the anchor.
func TestReviewOfARolledBackState(t *testing.T) {
	for _, back := range []bool{true, false} {
		l := restored(t)
		found := review.RolledBack{
			Found: l.clock, Source: "file:/srv/anchors", Cause: "shorter", Anchor: chain.Anchor{Time: l.clock, Seq: 900, Hash: "ab"}, Head: chain.Head{Seq: 7, Hash: "cd"},
		}
		if back {
			if _, err := l.store.Update(t.Context(), func(tx *store.Tx) error {
				m, err := review.Current(t.Context(), tx)
				if err != nil {
					return err
				}
				m.RolledBack = &found
				return review.Marks().Put(tx, review.Key, *m)
			}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := l.svc.Review(t.Context())
		if err != nil || (r.RolledBack != nil) != back || back && (r.RolledBack.Anchor.Seq != 900 || r.RolledBack.Head.Seq != 7 || r.RolledBack.Source != found.Source) {
			t.Errorf("review %+v, %v; want it rolled back: %v", r, err, back)
		}
		sm := "it was restored from a backup"
		if back {
			sm = "it was rolled back: audit entry 900 "
		}
		if m, err := review.Current(t.Context(), l.store); err != nil || !strings.HasPrefix(m.From(), sm) {
			t.Errorf("from %q, %v; want %q", m.From(), err, sm)
		}
		if _, err := l.svc.Reject(t.Context(), "ann", v1.ReviewDecision{All: true, Reason: "seen"}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.svc.EndReview(t.Context(), "ann", v1.ReviewEnd{Reason: "seen", Strip: true}); err != nil {
			t.Fatal(err)
		}
		head, err := audit.Verify(t.Context(), l.store)
		if err != nil || (head.Branch == 1) != back || head.Branch > 1 {
			t.Errorf("head %+v, %v; want another branch: %v", head, err, back)
		}
	}
}
