package query_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// TestDiffering: where the fabric is not as declared is listed in pages, with the host cabled there, which counts before a
// device's own claim.
func TestDiffering(t *testing.T) {
	v := *seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled()
	leaf := ib.GUID(0x0010000100000002)
	since := time.Unix(1_800_000_000, 0)
	v.Topology = &declared.TopologyView{Ports: []declared.TopologyPort{
		{
			Place: ib.Place{Switch: leaf, Port: 1}, State: verify.StateDisabled, Verdict: verify.Spoof, Action: verify.Disable, Would: verify.Disable,
			Seen: topospec.End{GUID: 0x0020000000000100, Port: 1}, Expected: topospec.End{GUID: 0x0020000000000200, Port: 1}, Since: since, Text: "spoof",
		},
		{Place: ib.Place{Switch: leaf, Port: 5}, State: verify.StateDark, Verdict: verify.Missing, Since: since},
	}}
	o := query.New(query.Options{
		Hosts:   seentest.Hosts,
		Cables:  func() map[ib.Place]string { return map[ib.Place]string{{Switch: leaf, Port: 1}: "compute-2"} },
		Tenants: func() map[string]string { return map[string]string{"compute-2": "acme"} },
	})
	if _, err := o.Differing(t.Context(), v1.PageQuery{}); err == nil {
		t.Error("a fabric that nobody has seen is as declared")
	}
	o.OnView(&v)
	var got []v1.TopospecPort
	q := v1.PageQuery{Limit: 1}
	for pages := 1; ; pages++ {
		page, err := o.Differing(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Items...)
		if q.After = page.Next; q.After == "" {
			if pages != 2 {
				t.Errorf("%d pages, want 2", pages)
			}
			break
		}
	}
	want := []v1.TopospecPort{
		{
			Place: ib.Place{Switch: leaf, Port: 1}, At: "leaf2/1", State: "disabled", Verdict: "spoof", Action: "disable", Would: "disable",
			Seen: "0x0020000000000100/1", Expected: "0x0020000000000200/1", Host: "compute-2", Tenant: "acme", Since: since, Text: "spoof",
		},
		{Place: ib.Place{Switch: leaf, Port: 5}, At: "leaf2/5", State: "dark", Verdict: "missing", Action: verify.Action(0).String(), Would: verify.Action(0).String(), Since: since},
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	v.Topology = nil
	o.OnView(&v)
	if page, err := o.Differing(t.Context(), v1.PageQuery{}); err != nil || len(page.Items) != 0 {
		t.Errorf("without a topology: %+v, %v", page, err)
	}
}
