package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/page"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// listed returns the answer to a list of hosts.
func (f *fixture) listed(t *testing.T, query string) (out v1.List[map[string]any]) {
	t.Helper()
	w := f.do(http.MethodGet, "/v1/hosts"+query, f.viewer, "")
	if w.Code != http.StatusOK {
		t.Fatalf("GET /v1/hosts%s: status %d: %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func ids(l v1.List[map[string]any]) []string {
	out := []string{}
	for _, h := range l.Items {
		out = append(out, fmt.Sprint(h["id"]))
	}
	return out
}

func TestHostListInPages(t *testing.T) {
	f := newFixture(t)
	var y strings.Builder
	y.WriteString("hosts:\n")
	for i := range 1203 {
		fmt.Fprintf(&y, "- {id: h%04d, hcas: [{node_guid: 0x%x, ports: [{port: 1, guid: 0x%x, cable: 0x%x/%d}]}]}\n", i, 0x10000+2*i, 0x10001+2*i, 0x900000+i/32, i%32+1)
	}
	f.site.Import(y.String())
	// A client that knows no pages gets the first one, and sees that there is more.
	first := f.listed(t, "")
	if len(first.Items) != page.Default || first.Next == "" {
		t.Fatalf("without parameters: %d hosts, next %q; want a page of %d", len(first.Items), first.Next, page.Default)
	}
	last := f.listed(t, "?after="+first.Next)
	if d := cmp.Diff([]string{"h1000", "h1202"}, []string{ids(last)[0], ids(last)[202]}); d != "" || len(last.Items) != 203 || last.Next != "" {
		t.Errorf("second page of %d, next %q (-want +got):\n%s", len(last.Items), last.Next, d)
	}
	if got := ids(f.listed(t, "?prefix=h120&limit=2")); !cmp.Equal(got, []string{"h1200", "h1201"}) {
		t.Errorf("prefix and limit: %v", got)
	}
}

func TestViewsOfHosts(t *testing.T) {
	f := newFixture(t)
	f.site.Register("h1")
	for range 2 {
		f.site.Join("h1")
		f.site.Release("h1")
	}
	f.site.Join("h1")
	f.site.Hand("h1")
	h := f.site.Host("h1")
	var unseen []string
	for _, p := range h.HCAs[0].Ports {
		unseen = append(unseen, fmt.Sprintf("port %v is not seen: power on the host, or check the cable to %v", p.GUID, p.Cabled))
	}
	if got := f.listed(t, "?view=full").Items[0]; got["hcas"] == nil || got["status"] == nil {
		t.Errorf("full: %v", got)
	}
	want := map[string]any{
		"id": "h1", "tenant": "acme", "cluster": "train", "epoch": 3.0, "phase": "verified", "since": h.Status.Since.Format(time.RFC3339Nano),
		"rack": "r0", "why": "seen: " + strings.Join(unseen, "; "),
	}
	if d := cmp.Diff(want, f.listed(t, "?view=summary").Items[0]); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"id": "h1"}, f.listed(t, "?view=id").Items[0]); d != "" {
		t.Errorf("id (-want +got):\n%s", d)
	}
}

func TestListsRefuseWhatIsNone(t *testing.T) {
	f := newFixture(t)
	tenants := page.Cursor("tenants", "acme")
	for _, path := range []string{
		"/v1/hosts?after=1000", "/v1/hosts?after=" + tenants, "/v1/hosts?view=id&after=" + tenants, "/v1/hosts?view=summary&after=%00",
		"/v1/tenants?after=zz", "/v1/clusters?after=" + tenants, "/v1/pkeys/quarantined?after=" + tenants,
		"/v1/inventory/repairs?after=" + tenants, "/v1/inventory/denied?after=" + tenants,
	} {
		p := wantProblem(t, f.do(http.MethodGet, path, f.viewer, ""), http.StatusUnprocessableEntity, v1.CodeCursor)
		if !strings.Contains(p.Detail, "the value of after") || !strings.Contains(p.Hint, "begin without after") {
			t.Errorf("%s: %s; %s", path, p.Detail, p.Hint)
		}
	}
	for _, path := range []string{
		"/v1/hosts?limit=0", "/v1/hosts?limit=5001", "/v1/hosts?phase=lost", "/v1/hosts?view=short", "/v1/hosts?offset=3",
		"/v1/tenants?limit=-1", "/v1/clusters?limit=99999", "/v1/hosts?after=" + strings.Repeat("A", 513),
	} {
		wantProblem(t, f.do(http.MethodGet, path, f.viewer, ""), http.StatusUnprocessableEntity, v1.CodeInvalid)
	}
}

// BenchmarkHostList asks for hosts of a site of 10,000 hosts with 8 adapters each, in the store that services have,
// through the whole HTTP handler. "all" follows the pages of the list without parameters to the end.
func BenchmarkHostList(b *testing.B) {
	svc := admission.New(admission.Options{Store: storetest.Open(b), Policy: attest.DefaultPolicy(), Log: storetest.Quiet()})
	for part := range 10 {
		var y strings.Builder
		y.WriteString("hosts:\n")
		for i := part * 1000; i < (part+1)*1000; i++ {
			fmt.Fprintf(&y, "- id: host-%05d\n  rack: r%03d\n  ek_sha256: %064x\n  hcas:\n", i, i/20, i+1)
			for a := range 8 {
				guid := 0x10000 + uint64(i*8+a)*2
				fmt.Fprintf(&y, "  - {node_guid: 0x%016x, ports: [{port: 1, guid: 0x%016x, cable: 0x%x/%d}]}\n", guid, guid+1, 0x900000+i*8/32, i*8%32+a+1)
			}
		}
		if _, err := svc.Inventory().ImportInventory(b.Context(), "olga", []inventory.File{{Name: "hosts.yaml", Data: []byte(y.String())}}, v1.RepairTicket{}, false); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := svc.Tenancy().CreateTenant(b.Context(), "olga", v1.NewTenant{Name: "acme"}); err != nil {
		b.Fatal(err)
	}
	if _, err := svc.Tenancy().CreateCluster(b.Context(), "olga", v1.NewCluster{Name: "train", Tenant: "acme"}); err != nil {
		b.Fatal(err)
	}
	for i := range 16 {
		if _, err := svc.Assign(b.Context(), "olga", fmt.Sprintf("host-%05d", i*600), v1.Assignment{Cluster: "train"}); err != nil {
			b.Fatal(err)
		}
	}
	o, operator, _, err := apitest.Options(apitest.Real{Service: svc})
	if err != nil {
		b.Fatal(err)
	}
	o.Limits.Tokens = limit.Rate{PerSecond: 1e9, Burst: 1 << 30}
	f := &fixture{server: api.New(o), operator: operator}
	for _, bm := range []struct {
		name, query string
		pages       bool // follows them
		want        int  // hosts
	}{
		{"all", "?", true, 10_000},
		{"all/view=summary", "?view=summary", true, 10_000},
		{"all/view=id", "?view=id", true, 10_000},
		{"page", "?", false, page.Default},
		{"page/limit=100", "?limit=100", false, 100},
		{"page/limit=100,view=summary", "?limit=100&view=summary", false, 100},
		{"page/view=id,prefix", "?view=id&prefix=host-012", false, 100},
		{"page/cluster", "?cluster=train", false, 16},
	} {
		b.Run(bm.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				hosts, query := 0, bm.query
				for size = 0; ; {
					w := f.do(http.MethodGet, "/v1/hosts"+query, f.operator, "")
					var p v1.List[json.RawMessage]
					if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
						b.Fatalf("status %d, %v", w.Code, err)
					}
					size, hosts = size+w.Body.Len(), hosts+len(p.Items)
					if !bm.pages || p.Next == "" {
						break
					}
					query = bm.query + "&after=" + url.QueryEscape(p.Next)
				}
				if hosts != bm.want {
					b.Fatalf("%d hosts, want %d", hosts, bm.want)
				}
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
