package admission

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/inventory"
	"portcullis/api/page"
	v1 "portcullis/api/v1"
)

// listedIDs follows the pages of a list and returns the ids. It checks that the three views have the same hosts.
func (l *lab) listedIDs(q v1.HostQuery) []string {
	l.t.Helper()
	out, pages := []string{}, 0
	for {
		full, err := l.svc.Hosts(l.ctx(), q)
		if err != nil {
			l.t.Fatal(err)
		}
		lines, err := l.svc.HostSummaries(l.ctx(), q)
		if err != nil {
			l.t.Fatal(err)
		}
		only, err := l.svc.HostIDs(l.ctx(), q)
		if err != nil {
			l.t.Fatal(err)
		}
		if full.Next != lines.Next || full.Next != only.Next || len(full.Items) != len(lines.Items) || len(full.Items) != len(only.Items) {
			l.t.Fatalf("%+v: views differ: %d hosts next %q, %d lines next %q, %d ids next %q", q,
				len(full.Items), full.Next, len(lines.Items), lines.Next, len(only.Items), only.Next)
		}
		for i := range full.Items {
			h := &full.Items[i]
			one, err := l.svc.Host(l.ctx(), h.ID)
			if err != nil {
				l.t.Fatal(err)
			}
			if d := cmp.Diff(one, h); d != "" {
				l.t.Errorf("host %s as listed (-shown alone +listed):\n%s", h.ID, d)
			}
			if !reflect.DeepEqual(lines.Items[i], h.Summary()) || only.Items[i].ID != h.ID {
				l.t.Errorf("host %s: line %+v, id %+v", h.ID, lines.Items[i], only.Items[i])
			}
			out = append(out, h.ID)
		}
		if pages++; full.Next == "" {
			return out
		}
		if pages > 50 {
			l.t.Fatalf("%+v: the list has no end", q)
		}
		q.After = full.Next
	}
}

func TestHostListFilters(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(4)
	more := "hosts:\n"
	for i := range 6 {
		more += fmt.Sprintf("- {id: spare-%d, rack: r%d, hcas: [{node_guid: 0x90%d, ports: [{port: 1, guid: 0x91%d, cable: 0x20/%d}]}]}\n", i, i%2, i, i, i+1)
	}
	if _, err := l.svc.ImportInventory(t.Context(), "alice", []inventory.File{{Name: "more.yaml", Data: []byte(more)}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	l.tenantWithClusters("train", "infer")
	if _, err := l.svc.Tenancy().CreateTenant(t.Context(), "alice", v1.NewTenant{Name: "zeta"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.Tenancy().CreateCluster(t.Context(), "alice", v1.NewCluster{Name: "zoo", Tenant: "zeta"}); err != nil {
		t.Fatal(err)
	}
	l.admit("host-1", "train")
	l.admit("host-3", "train")
	l.assign("host-2", "infer")
	l.assign("spare-0", "zoo")
	for _, tt := range []struct {
		name string
		q    v1.HostQuery
		want string
	}{
		{"all", v1.HostQuery{}, "host-1 host-2 host-3 host-4 spare-0 spare-1 spare-2 spare-3 spare-4 spare-5"},
		{"tenant", v1.HostQuery{Tenant: "acme"}, "host-1 host-2 host-3"},
		{"cluster", v1.HostQuery{Cluster: "train"}, "host-1 host-3"},
		{"cluster of the tenant", v1.HostQuery{Tenant: "acme", Cluster: "infer"}, "host-2"},
		{"cluster of another tenant", v1.HostQuery{Tenant: "zeta", Cluster: "infer"}, ""},
		{"admitted", v1.HostQuery{Phase: v1.PhaseAdmitted}, "host-1 host-3"},
		{"awaiting", v1.HostQuery{Phase: v1.PhaseAwaiting}, "host-2 spare-0"},
		{"quarantined of a rack", v1.HostQuery{Phase: v1.PhaseQuarantined, Rack: "r0"}, "spare-2 spare-4"},
		{"rack", v1.HostQuery{Rack: "r1"}, "spare-1 spare-3 spare-5"},
		{"rack that is none", v1.HostQuery{Rack: "r9"}, ""},
		{"prefix", v1.HostQuery{Prefix: "spare-"}, "spare-0 spare-1 spare-2 spare-3 spare-4 spare-5"},
		{"prefix of nothing", v1.HostQuery{Prefix: "zz"}, ""},
		{"prefix and tenant", v1.HostQuery{Prefix: "spare-", Tenant: "zeta"}, "spare-0"},
		{"prefix and phase", v1.HostQuery{Prefix: "host-", Phase: v1.PhaseQuarantined}, "host-4"},
	} {
		for _, limit := range []int{0, 1, 2, 3} {
			q := tt.q
			q.Limit = limit
			if got := strings.Join(l.listedIDs(q), " "); got != tt.want {
				t.Errorf("%s, limit %d: %q, want %q", tt.name, limit, got, tt.want)
			}
		}
	}
	for _, tt := range []struct {
		q    v1.HostQuery
		code string
	}{{v1.HostQuery{Tenant: "nobody"}, "tenant_unknown"}, {v1.HostQuery{Cluster: "nothing"}, "cluster_unknown"}, {v1.HostQuery{Tenant: "zeta", Cluster: "nothing"}, "cluster_unknown"}} {
		if _, err := l.svc.Hosts(t.Context(), tt.q); code(err) != tt.code {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.code)
		}
	}
	if _, err := l.svc.HostIDs(t.Context(), v1.HostQuery{PageQuery: v1.PageQuery{After: "1000"}}); !errors.Is(err, page.ErrCursor) {
		t.Errorf("an offset as cursor: %v, want page.ErrCursor", err)
	}
}
