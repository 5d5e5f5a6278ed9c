package proving_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
)

// hostsOf returns the hosts of a list with their verdicts.
func hostsOf(l *v1.IsolationPorts) string {
	var out []string
	for _, p := range l.Items {
		out = append(out, p.Host+" "+p.Verdict)
	}
	return strings.Join(out, ", ")
}

// The verdicts of the newest examination are listed by page and filter. An old one proves nothing.
func TestPorts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { return now }
	if _, err := s.Ports(t.Context(), v1.IsolationPortQuery{}); code(err) != v1.CodeNotExamined {
		t.Errorf("before the first examination: %v", err)
	}
	if _, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{Tenant: "red"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ports(t.Context(), v1.IsolationPortQuery{}); code(err) != v1.CodeNotExamined {
		t.Errorf("after one of a tenant alone: %v", err)
	}
	if counts := s.CountPorts(); counts != nil {
		t.Errorf("after one of a tenant alone, ports are counted: %v", counts)
	}
	if _, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{}); err != nil {
		t.Fatal(err)
	}
	count := func(isolated, unproven int) {
		t.Helper()
		if got, want := s.CountPorts(), map[string]int{v1.Isolated: isolated, v1.Leaks: 0, v1.Unproven: unproven}; !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
	}
	list := func(q v1.IsolationPortQuery, want string) *v1.IsolationPorts {
		t.Helper()
		got, err := s.Ports(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if hostsOf(got) != want {
			t.Errorf("%+v: %q, want %q", q, hostsOf(got), want)
		}
		return got
	}
	now = now.Add(time.Hour)
	count(5, 0)
	all := list(v1.IsolationPortQuery{}, "h1 isolated, h2 isolated, h3 isolated, h4 isolated, h5 isolated")
	if !all.Current || all.Age != 3600 || all.MaxAge != 86400 || !all.Begun.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", all)
	}
	list(v1.IsolationPortQuery{Tenant: "red"}, "h1 isolated, h3 isolated")
	list(v1.IsolationPortQuery{Host: "h5"}, "h5 isolated")
	list(v1.IsolationPortQuery{Verdict: v1.Unproven}, "")
	first := list(v1.IsolationPortQuery{PageQuery: v1.PageQuery{Limit: 2}}, "h1 isolated, h2 isolated")
	list(v1.IsolationPortQuery{PageQuery: v1.PageQuery{Limit: 9, After: first.Next}}, "h3 isolated, h4 isolated, h5 isolated")
	if _, err := s.Ports(t.Context(), v1.IsolationPortQuery{PageQuery: v1.PageQuery{After: "x"}}); err == nil {
		t.Error("a cursor that is none is accepted")
	}
	now = now.Add(23*time.Hour + time.Second)
	count(0, 5)
	old := list(v1.IsolationPortQuery{Verdict: v1.Unproven, Tenant: "blue"}, "h2 unproven, h4 unproven")
	if old.Current || old.Items[0].Cause != v1.PortOld || old.Items[0].Held != "" {
		t.Errorf("a day later: %+v", old)
	}
}

// The credential of a tenant sees the ports of its own hosts alone, and no name of another tenant.
func TestPortsOfTenant(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hosts := func(red ...string) {
		t.Helper()
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			if err := tenancy.Tenants().Put(tx, "red", tenancy.Tenant{Name: "red", Clusters: []string{"r"}}); err != nil {
				return err
			}
			return tenancy.Clusters().Put(tx, "r", tenancy.Cluster{Name: "r", Tenant: "red", Hosts: red})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hosts("h1", "h2")
	own := tenancy.Within(t.Context(), &tenancy.Scope{Tenants: []string{"red"}})
	_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
		g := s.stage.GrantOf("h3", 1, 0x8101) // the P_Key of red
		return s.grant(tx, &g, "h3", "green")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Ports(t.Context(), v1.IsolationPortQuery{})
	if err != nil || hostsOf(all) != "h1 leaks, h2 isolated, h3 leaks, h4 isolated, h5 isolated" || all.Items[0].Other != "green" {
		t.Fatalf("%q, %+v, %v", hostsOf(all), all, err)
	}
	for _, q := range []v1.IsolationPortQuery{{}, {Tenant: "red"}} {
		got, err := s.Ports(own, q)
		if err != nil || hostsOf(got) != "h1 leaks" || got.Items[0].End != v1.EndBoth || got.Items[0].Other != "" || got.Next != "" {
			t.Errorf("the tenant sees %+v, %v", got, err)
		}
	}
	for _, tenant := range []string{"blue", "nowhere"} {
		if got, err := s.Ports(own, v1.IsolationPortQuery{Tenant: tenant}); code(err) != "tenant_unknown" {
			t.Errorf("of %s: %+v, %v", tenant, got, err)
		}
	}
	for _, host := range []string{"h2", "h3", "h5", "nowhere"} {
		if got, err := s.Ports(own, v1.IsolationPortQuery{Host: host}); err != nil || len(got.Items) > 0 {
			t.Errorf("of host %s: %+v, %v", host, got, err)
		}
	}
	hosts("h2")
	if got, err := s.Ports(own, v1.IsolationPortQuery{}); err != nil || len(got.Items) > 0 {
		t.Errorf("after h1 was taken: %+v, %v", got, err)
	}
}

// Why nothing was examined may name devices, which a tenant is not shown.
func TestPortsNotExamined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		k.set(false, errors.New("a secret place"))
		k.after(2 * time.Minute)
		_, err := k.Ports(t.Context(), v1.IsolationPortQuery{})
		if code(err) != v1.CodeNotExamined || !strings.Contains(err.Error(), "secret") {
			t.Errorf("to an operator: %v", err)
		}
		_, err = k.Ports(tenancy.Within(t.Context(), &tenancy.Scope{Tenants: []string{"red"}}), v1.IsolationPortQuery{})
		if code(err) != v1.CodeNotExamined || strings.Contains(err.Error(), "secret") {
			t.Errorf("to a tenant: %v", err)
		}
	})
}
