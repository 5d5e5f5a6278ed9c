package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/service"
)

// registered is an Observer of a fabric whose hosts have registered something of each
// kind.
func registered(t *testing.T) *query.Observer {
	t.Helper()
	view, status := seentest.Registered(t)
	o := query.New(seentest.Owners())
	o.OnView(view)
	o.OnSA(status)
	return o
}

// all reads a list one item at a time, and holds that nothing in it is a key.
func all[T any](t *testing.T, ask func(v1.PageQuery) (*v1.Page[T], error), text func(*T) string) (lines []string) {
	t.Helper()
	q := v1.PageQuery{Limit: 1}
	for range 20 {
		page, err := ask(q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > 1 {
			t.Fatalf("%d items on a page of one", len(page.Items))
		}
		if b, err := json.Marshal(page); err != nil || strings.Contains(strings.ToLower(string(b)), fmt.Sprintf("%x", seentest.ServiceKey)) || strings.Contains(string(b), fmt.Sprintf("%x", uint64(seentest.SAKey))) {
			t.Errorf("a key is shown, or %v: %s", err, b)
		}
		for i := range page.Items {
			lines = append(lines, text(&page.Items[i]))
		}
		if q.After = page.Next; page.Next == "" {
			return lines
		}
	}
	t.Fatal("pages have no end")
	return nil
}

func who(r *v1.Registrant) string {
	return fmt.Sprintf("%s %v %s of %s, %s", r.Name, r.Port, r.At, r.Host, r.Tenant)
}

const (
	one = "h1 mlx5_0/1 0x0020000000000101 leaf1/2 of compute-1, acme"
	two = "h2 mlx5_0/1 0x0020000000000201 leaf2/1 of compute-2, blue"
)

// filters are questions of which each has one of two hosts in its answer.
var filters = []struct {
	name       string
	q          v1.RegisteredQuery
	one, other bool
}{
	{"all", v1.RegisteredQuery{}, true, true},
	{"host", v1.RegisteredQuery{Host: "compute-1"}, true, false},
	{"tenant", v1.RegisteredQuery{Tenant: "blue"}, false, true},
	{"port by GUID", v1.RegisteredQuery{Port: "0x0020000000000201"}, false, true},
	{"port by alias", v1.RegisteredQuery{Port: seentest.Alias2.String()}, false, true},
	{"port by name", v1.RegisteredQuery{Port: "h1 mlx5_0/1"}, true, false},
	{"port that is gone", v1.RegisteredQuery{Port: "0x0020000000000999"}, false, false},
	{"host and tenant of two", v1.RegisteredQuery{Host: "compute-1", Tenant: "blue"}, false, false},
	{"description where the inventory has a name", v1.RegisteredQuery{Host: "h1 mlx5_0"}, false, false},
}

// TestRegistered: registrations are listed with their owners, one page after the other, for all or for some, and no key.
func TestRegistered(t *testing.T) {
	o, ctx := registered(t), t.Context()
	of := func(one bool, first string, other bool, second string) (want []string) {
		if one {
			want = append(want, first)
		}
		if other {
			want = append(want, second)
		}
		return want
	}
	for _, f := range filters {
		t.Run(f.name, func(t *testing.T) {
			with := func(p v1.PageQuery) v1.RegisteredQuery { q := f.q; q.PageQuery = p; return q }
			got := all(t, func(p v1.PageQuery) (*v1.Page[v1.FabricMember], error) {
				return o.Members(ctx, seentest.Group.String(), with(p))
			},
				func(m *v1.FabricMember) string { return who(&m.Registrant) + " " + m.JoinState })
			if d := cmp.Diff(of(f.one, one+" Full", f.other, two+" SendOnlyNon"), got); d != "" {
				t.Errorf("members (-want +got):\n%s", d)
			}
			got = all(t, func(p v1.PageQuery) (*v1.Page[v1.FabricGroup], error) {
				return o.Groups(ctx, v1.GroupQuery{RegisteredQuery: with(p)})
			},
				func(g *v1.FabricGroup) string {
					return fmt.Sprintf("%v %v %s %d by %v of %d, %v", g.MGID, g.PKey, g.QKey, g.Members, g.Roots, g.Switches, g.Configured)
				})
			want := of(f.other || f.name == "all", "ff12:401b:8001::ffff:ffff 0x8001 0x00000b1b 1 by [leaf2] of 1, true",
				f.one || f.other, seentest.Group.String()+" 0x8001 0x00001234 2 by [spine1] of 3, false")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("groups (-want +got):\n%s", d)
			}
			got = all(t, func(p v1.PageQuery) (*v1.Page[v1.FabricService], error) {
				return o.Services(ctx, v1.ServiceQuery{RegisteredQuery: with(p)})
			},
				func(s *v1.FabricService) string {
					return fmt.Sprintf("%d %q %v %v %v %s", s.ID, s.Name, s.PKey, s.Keyed, s.Expires.IsZero(), who(&s.Registrant))
				})
			if d := cmp.Diff(of(f.one, `5 "mail`+"\uFFFD"+`" 0x8001 true false `+one, f.other, `6 "clock" 0x0000 false false `+two), got); d != "" {
				t.Errorf("services (-want +got):\n%s", d)
			}
			got = all(t, func(p v1.PageQuery) (*v1.Page[v1.FabricSubscription], error) { return o.Subscriptions(ctx, with(p)) },
				func(s *v1.FabricSubscription) string {
					return fmt.Sprintf("%s about %s, %s, %v: %s", s.What, s.About, s.QPN, s.Trusted, who(&s.Registrant))
				})
			if d := cmp.Diff(of(f.one, "traps 64 (GID in service) about all, 0x000001, false: "+one, f.other, "all traps about all, 0x000001, true: "+two), got); d != "" {
				t.Errorf("subscriptions (-want +got):\n%s", d)
			}
			got = all(t, func(p v1.PageQuery) (*v1.Page[v1.FabricAlias], error) { return o.Aliases(ctx, with(p)) },
				func(a *v1.FabricAlias) string {
					return fmt.Sprintf("%v %d %v %s", a.Alias, a.Entry, a.Proven, who(&a.Registrant))
				})
			if d := cmp.Diff(of(false, "", f.other, "0x0020000000abcd01 2 true "+two), got); d != "" {
				t.Errorf("aliases (-want +got):\n%s", d)
			}
		})
	}
}

// TestRegisteredByWhatItIs: groups and services are found by what they are.
func TestRegisteredByWhatItIs(t *testing.T) {
	o, ctx := registered(t), t.Context()
	for _, tt := range []struct {
		name string
		q    v1.GroupQuery
		want int
	}{
		{"MGID", v1.GroupQuery{MGID: seentest.Group.String()}, 1},
		{"limited P_Key", v1.GroupQuery{PKey: "0x0001"}, 2},
		{"another partition", v1.GroupQuery{PKey: "0x8002"}, 0},
		{"MGID and another partition", v1.GroupQuery{MGID: seentest.Group.String(), PKey: "0x8002"}, 0},
	} {
		if page, err := o.Groups(ctx, tt.q); err != nil || len(page.Items) != tt.want {
			t.Errorf("groups by %s: %+v, %v; want %d", tt.name, page, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		q    v1.ServiceQuery
		want int
	}{
		{"ServiceID", v1.ServiceQuery{ID: "0x6"}, 1},
		{"ServiceID of none", v1.ServiceQuery{ID: "0x7"}, 0},
		{"name", v1.ServiceQuery{Name: "clock"}, 1},
		{"partition", v1.ServiceQuery{PKey: "0x8001"}, 1},
		{"another partition", v1.ServiceQuery{PKey: "0x8002"}, 0},
	} {
		if page, err := o.Services(ctx, tt.q); err != nil || len(page.Items) != tt.want {
			t.Errorf("services by %s: %+v, %v; want %d", tt.name, page, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name, code string
		err        error
	}{
		{"MGID of none", "group_unknown", second(o.Groups(ctx, v1.GroupQuery{MGID: "ff12::1"}))},
		{"no MGID", "mgid_invalid", second(o.Members(ctx, "x", v1.RegisteredQuery{}))},
		{"no P_Key", "p_key_invalid", second(o.Services(ctx, v1.ServiceQuery{PKey: "x"}))},
		{"no ServiceID", "service_id_invalid", second(o.Services(ctx, v1.ServiceQuery{ID: "x"}))},
		{"no port", "node_unknown", second(o.Aliases(ctx, v1.RegisteredQuery{Port: "x"}))},
		{"cursor of groups", "cursor_invalid", second(o.Groups(ctx, v1.GroupQuery{RegisteredQuery: after("zz")}))},
		{"cursor of members", "cursor_invalid", second(o.Members(ctx, seentest.Group.String(), after("zz")))},
		{"cursor of services", "cursor_invalid", second(o.Services(ctx, v1.ServiceQuery{RegisteredQuery: after("zz")}))},
		{"cursor of subscriptions", "cursor_invalid", second(o.Subscriptions(ctx, after("1.2")))},
		{"cursor of aliases", "cursor_invalid", second(o.Aliases(ctx, after("zz")))},
	} {
		var e *refusal.Error
		if !errors.As(tt.err, &e) || e.Code != tt.code || e.Hint == "" {
			t.Errorf("%s: %v, want %s", tt.name, tt.err, tt.code)
		}
	}
	o.OnSA(nil)
	var e *refusal.Error
	if _, err := o.SA(ctx); !errors.As(err, &e) || e.Code != "sa_unseen" {
		t.Errorf("without subnet administration: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func after(cursor string) v1.RegisteredQuery {
	return v1.RegisteredQuery{PageQuery: v1.PageQuery{After: cursor}}
}

// TestHowItStands: counts, and the SA_Key by its age alone.
func TestHowItStands(t *testing.T) {
	o := registered(t)
	s, err := o.SA(t.Context())
	if must(t, s, err); !s.Serving || s.Groups != 2 || s.Services != 2 || s.Subscriptions != 2 || s.Aliased != 1 || s.Packets < 8 || !s.KeySince.IsZero() {
		t.Errorf("%+v", s)
	}
	o.OnSA(standing())
	s, err = o.SA(t.Context())
	if must(t, s, err); s.KeyEpoch != 9 || s.KeySince.IsZero() || s.Refused["wrong-key"] != 11 || len(s.Refused) != 1 || len(s.Limited) != 1 || s.Reports.OnWire != 8 {
		t.Errorf("%+v", s)
	}
}

// TestPagesOfWhatNobodyAskedFor: a page for which much would have to be looked at is
// short, and the one behind it goes on.
func TestPagesOfWhatNobodyAskedFor(t *testing.T) {
	o := registered(t)
	v, err := o.View()
	if err != nil {
		t.Fatal(err)
	}
	b := portindex.New(portindex.Empty(portindex.Rules{}), v)
	r := service.New(service.Config{})
	r.Follow(registry.Of(b))
	const many = 1<<16 + 10
	for i := range many {
		port := seentest.Port1
		if i == many-1 {
			port = seentest.Port2
		}
		e := b.ByGUID(port)
		rec := mad.ServiceRecord{ServiceID: ib.ServiceID(i + 1), ServiceGID: ib.MakeGID(ib.DefaultPrefix, port), ServiceLease: mad.LeaseForever}
		copy(rec.ServiceName[:], "x")
		const mask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName
		if a := r.Set(v.Time, portindex.Asker{Port: e.Port, As: port, LID: e.LID}, &rec, mask); a.Status != mad.StatusOK {
			t.Fatalf("service %d: %v", i, a.Why())
		}
	}
	s := standing()
	s.Registered.Services, s.Registered.Book = r.Now(), b
	o.OnSA(s)
	var counts []int
	q := v1.ServiceQuery{RegisteredQuery: v1.RegisteredQuery{Host: "compute-2"}}
	for range 10 {
		page, err := o.Services(t.Context(), q)
		must(t, page, err)
		counts = append(counts, len(page.Items))
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	if want := 1; len(counts) < 2 || counts[0] != 0 || slices.Max(counts) != want || counts[len(counts)-1] != want {
		t.Errorf("pages of %v", counts)
	}
}
