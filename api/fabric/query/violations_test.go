package query_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/violation"
)

// accused was shown seentest.Tree with violations.
func accused(t *testing.T) *query.Observer {
	t.Helper()
	v := *seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v.Violations = &violation.List{Rows: []violation.Violation{
		{ID: 3, Kind: violation.BadMKey, Trap: 256, Place: ib.Place{Switch: leaf1, Port: 2}, GUID: 0x0020000000000101, By: violation.ByWay, Reporter: leaf1, Detail: "Set PortInfo", Verdict: violation.Confirmed, Count: 7, Counted: 300, First: at, Last: at},
		{ID: 5, Kind: violation.LocalChange, Trap: 144, Place: ib.Place{Switch: leaf1, Port: 2}, Count: 1, First: at, Last: at},
		{ID: 9, Kind: violation.BadPKey, Trap: 259, PKey: 0x8002, LID: 77, Reporter: 0x99, ReporterPlace: ib.Place{Switch: leaf1, Port: 1}, Count: 2, First: at, Last: at},
	}}
	v.Violations.Totals[violation.BadMKey] = violation.Total{Kind: violation.BadMKey, Reported: 7, Confirmed: 7, Counted: 300, Quiet: 4}
	o := query.New(query.Options{
		Cables:  func() map[ib.Place]string { return map[ib.Place]string{{Switch: leaf1, Port: 2}: "compute-1"} },
		Tenants: func() map[string]string { return map[string]string{"compute-1": "acme"} },
	})
	o.OnView(&v)
	return o
}

func TestViolations(t *testing.T) {
	o := accused(t)
	first := "3 m-key confirmed leaf1/2 compute-1 acme by leaf1 Set PortInfo 7/300"
	last := "9 p-key claimed    by leaf1/1  2/0"
	for _, tt := range []struct {
		name string
		q    v1.ViolationQuery
		want []string
	}{
		{"all violations", v1.ViolationQuery{}, []string{first, last}},
		{"all", v1.ViolationQuery{All: true}, []string{first, "5 local-change claimed leaf1/2 compute-1 acme by   1/0", last}},
		{"a kind", v1.ViolationQuery{Kind: "p-key"}, []string{last}},
		{"a host", v1.ViolationQuery{Host: "compute-1"}, []string{first}},
		{"a tenant", v1.ViolationQuery{Tenant: "acme"}, []string{first}},
		{"a verdict", v1.ViolationQuery{Verdict: "refuted"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for range 5 {
				tt.q.Limit = 1
				page, err := o.Violations(t.Context(), tt.q)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range page.Items {
					got = append(got, fmt.Sprintf("%d %s %s %s %s %s by %s %s %d/%d", v.ID, v.Kind, v.Verdict, v.At, v.Host, v.Tenant, v.ReporterAt, v.Detail, v.Count, v.Counted))
				}
				if tt.q.After = page.Next; page.Next == "" {
					break
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if _, err := o.Violations(t.Context(), v1.ViolationQuery{PageQuery: v1.PageQuery{After: "x"}}); err == nil {
		t.Error("a cursor of nobody is taken")
	}
}

// TestViolationsAreNamed: the last event names host and tenant, and kind and verdict also where they are the first of their
// list.
func TestViolationsAreNamed(t *testing.T) {
	o := accused(t)
	o.OnEvent(&violation.Violation{Kind: violation.BadMKey, Place: ib.Place{Switch: leaf1, Port: 2}, Count: 1})
	p, err := o.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := p.Events[len(p.Events)-1]
	want := map[string]string{
		"kind": "m-key", "verdict": "claimed", "place": "0x0010000100000001/2", "host": "compute-1", "tenant": "acme", "count": "1",
		"others": "false", "quiet": "false",
	}
	if d := cmp.Diff(want, e.Fields); d != "" || e.Event != "violation" || e.Level != "warning" {
		t.Errorf("event %s, level %s (-want +got):\n%s", e.Event, e.Level, d)
	}
}
