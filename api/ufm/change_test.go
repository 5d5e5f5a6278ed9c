package ufm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/limit"
	v1 "portcullis/api/v1"
)

// TestLifeOfAPod does what ib-kubernetes does: keys in upper case with leading zeros, everything twice, 200 each time.
func TestLifeOfAPod(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.guids(t, "gpu-0")
	for range 2 {
		s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x000A", g[0]), 200)
	}
	if h := s.Host("gpu-0"); h.Cluster != "pkey-0x000a" || h.Epoch != 1 || h.Status.Phase != v1.PhaseAwaiting {
		t.Fatalf("%+v: want it assigned once, and waiting for evidence", h)
	}
	if got := s.members(t, "0xa", confined); got != strings.Join(g, " ") {
		t.Errorf("members %s, want all ports of the host: %v", got, g)
	}
	for range 2 {
		s.do(t, "POST", "/actions/remove_guids_from_pkey", confined, `{"pkey":"0x000A","guids":["`+strings.ToUpper(g[1])+`"]}`, 200)
	}
	if h := s.Host("gpu-0"); h.Cluster != "" {
		t.Errorf("%+v: want it in no cluster", h)
	}
	if got := strings.TrimSpace(s.do(t, "GET", "/resources/pkeys/0xa?guids_data=true", confined, "", 200)); got != "{}" {
		t.Errorf("without members: %s, want {}", got)
	}
	s.do(t, "POST", "/actions/remove_guids_from_pkey", confined, orderOf("0x000B", g[0]), 200) // no such partition
	want := []string{"cluster.create cluster/pkey-0x000a", "host.assign host/gpu-0", "host.release host/gpu-0"}
	got := s.audited(t, confined)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("audit log %q, want %q", got, want)
	}
	s.Program()
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x000A", g[0]), 200) // the partition is there again
}

// TestWorkflow does what nv-config-manager does: create, look, add, look, delete, look.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g0, g1 := s.guids(t, "gpu-0"), s.guids(t, "gpu-1")
	s.do(t, "POST", "/resources/pkeys/add", confined, `{"pkey":"0x0c","index0":false,"ip_over_ib":true,"mtu_limit":4,"service_level":0,"rate_limit":300,"partition_name":"blue"}`, 200)
	s.do(t, "POST", "/resources/pkeys/add/", confined, `{"pkey":"0xc"}`, 409)
	if got := s.do(t, "GET", "/resources/pkeys/0xc?guids_data=true", confined, "", 200); !strings.Contains(got, `"partition":"blue"`) {
		t.Errorf("created: %s", got)
	}
	s.do(t, "POST", "/resources/pkeys/", confined, `{"pkey":"0xc","guids":["0x`+g0[0]+`","`+g1[0]+`"],"memberships":["full","Full"]}`, 200)
	if got := s.members(t, "0xc", confined); got != strings.Join(append(slices.Clone(g0), g1...), " ") {
		t.Errorf("members %s", got)
	}
	s.do(t, "PUT", "/resources/pkeys", confined, orderOf("0xc", g1...), 200)
	if got := s.members(t, "0xc", confined); got != strings.Join(g1, " ") {
		t.Errorf("after PUT: members %s, want %s", got, g1)
	}
	s.do(t, "PUT", "/resources/pkeys/qos_conf", confined, `{"pkey":"0xc","mtu_limit":4,"rate_limit":300,"service_level":0}`, 200)
	s.do(t, "PUT", "/resources/pkeys/qos_conf", confined, `{"pkey":"0xd","mtu_limit":4,"rate_limit":300,"service_level":0}`, 404)
	s.do(t, "PUT", "/resources/pkeys/qos_conf", confined, `{"pkey":"0xc","mtu_limit":4,"rate_limit":100,"service_level":0}`, 409)
	s.do(t, "DELETE", "/resources/pkeys/0xc/guids/"+g0[0]+","+g1[0], confined, "{}", 200)
	s.do(t, "DELETE", "/resources/pkeys/0xd/guids/"+g0[0], confined, "", 404)
	s.do(t, "DELETE", "/resources/pkeys/0xc", confined, "{}", 200)
	s.do(t, "DELETE", "/resources/pkeys/0xc", confined, "", 404)
	if got := strings.TrimSpace(s.do(t, "GET", "/resources/pkeys/0xc", confined, "", 200)); got != "{}" {
		t.Errorf("deleted: %s, want {}", got)
	}
}

// TestJob does what the prolog and epilog of Slurm do.
func TestJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.do(t, "POST", "/resources/pkeys/hosts", confined, `{"hosts_names":"gpu-0,gpu-1","pkey":"0x92","ip_over_ib":true,"index0":false,"membership":"full"}`, 200)
	if a, b := s.Host("gpu-0").Cluster, s.Host("gpu-1").Cluster; a != b || a == "" {
		t.Errorf("clusters %q and %q", a, b)
	}
	s.do(t, "POST", "/resources/pkeys/hosts", confined, `{"hosts_names":"gpu-2,gpu-9","pkey":"0x92"}`, 400)
	s.do(t, "POST", "/resources/pkeys/hosts", confined, `{"hosts_names":"","pkey":"0x92"}`, 400)
	if got := s.Host("gpu-2").Cluster; got != "" {
		t.Errorf("gpu-2 is in %q though the request was refused", got)
	}
	s.do(t, "DELETE", "/resources/pkeys/0x92/hosts/gpu-0,gpu-1,gpu-9", confined, "", 200)
	if a, b := s.Host("gpu-0").Cluster, s.Host("gpu-1").Cluster; a != "" || b != "" {
		t.Errorf("clusters %q and %q", a, b)
	}
}

// TestRefusals: what a credential may not do, and what there is not. Nothing of it changes anything.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g, theirs := s.guids(t, "gpu-0")[0], s.guids(t, "login-0")[0]
	const pkeys, remove = "/resources/pkeys", "/actions/remove_guids_from_pkey"
	for _, tt := range []struct {
		name, who, method, path, body string
		want                          int
		code                          string
	}{
		{"default partition", confined, "POST", pkeys, orderOf("0x7FFF", g), 403, "p_key_reserved"},
		{"default partition", confined, "PUT", pkeys, orderOf("0x7fff", g), 403, "p_key_reserved"},
		{"default partition", everyone, "DELETE", pkeys + "/0x7fff", "", 403, "p_key_reserved"},
		{"default partition", everyone, "POST", remove, orderOf("0x7fff", g), 403, "p_key_reserved"},
		{"default partition", confined, "POST", pkeys + "/add", `{"pkey":"0x7fff"}`, 403, "p_key_reserved"},
		{"zero", confined, "POST", pkeys, orderOf("0x0000", g), 403, "p_key_reserved"},
		{"high bit", confined, "POST", pkeys, orderOf("0x8005", g), 400, "invalid_request"},
		{"high bit of the default", confined, "POST", pkeys, orderOf("0xFFFF", g), 400, "invalid_request"},
		{"out of range", confined, "POST", pkeys, orderOf("0x100", g), 403, "p_key_out_of_scope"},
		{"another's", confined, "POST", pkeys, orderOf("0x200", g), 403, "p_key_out_of_scope"},
		{"another's", confined, "POST", pkeys, orderOf("0x200"), 403, "p_key_out_of_scope"},
		{"another's", confined, "PUT", pkeys, orderOf("0x200", g), 403, "p_key_out_of_scope"},
		{"another's", confined, "POST", pkeys + "/add", `{"pkey":"0x200"}`, 403, "p_key_out_of_scope"},
		{"another's", confined, "POST", remove, orderOf("0x200", theirs), 403, "p_key_out_of_scope"},
		{"another's", confined, "DELETE", pkeys + "/0x200", "", 403, "p_key_out_of_scope"},
		{"another's", confined, "DELETE", pkeys + "/0x200/guids/" + theirs, "", 403, "p_key_out_of_scope"},
		{"another's", confined, "DELETE", pkeys + "/0x200/hosts/login-0", "", 403, "p_key_out_of_scope"},
		{"another's", confined, "PUT", pkeys + "/qos_conf", `{"pkey":"0x200"}`, 403, "p_key_out_of_scope"},
		{"host of another", confined, "POST", pkeys, orderOf("0x5", theirs), 409, "host_assigned"},
		{"unknown GUID", confined, "POST", pkeys, orderOf("0x5", g, "0200000000000000"), 404, "guid_unknown"},
		{"unknown GUID", confined, "PUT", pkeys, orderOf("0x5", "0200000000000000"), 404, "guid_unknown"},
		{"limited", confined, "POST", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"membership":"limited"}`, 409, "membership_refused"},
		{"limited among full", confined, "POST", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"membership":"full","memberships":["limited"]}`, 409, "membership_refused"},
		{"too few memberships", confined, "POST", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"memberships":[]}`, 400, "invalid_request"},
		{"other membership", confined, "POST", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"membership":"both"}`, 400, "invalid_request"},
		{"service level", confined, "PUT", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"service_level":3}`, 409, "qos_refused"},
		{"unknown field", confined, "POST", pkeys, `{"pkey":"0x5","guids":["` + g + `"],"dry_run":true}`, 400, "invalid_request"},
		{"doubled key", confined, "POST", pkeys, `{"pkey":"0x5","pkey":"0x6","guids":["` + g + `"]}`, 400, "invalid_request"},
		{"no GUIDs", confined, "PUT", pkeys, `{"pkey":"0x5"}`, 400, "invalid_request"},
		{"no P_Key", confined, "POST", pkeys, `{"guids":["` + g + `"]}`, 400, "invalid_request"},
		{"no body", confined, "POST", pkeys, ``, 400, "invalid_request"},
		{"large body", confined, "POST", pkeys, `{"pkey":"` + strings.Repeat("0", 300<<10) + `"}`, 400, "invalid_request"},
		{"wrong GUID", confined, "POST", pkeys, orderOf("0x5", "0"), 400, "invalid_request"},
		{"name of a partition", confined, "POST", pkeys + "/add", `{"pkey":"0x5","partition_name":"No Name"}`, 400, "name_invalid"},
		{"viewer", watcher, "POST", pkeys, orderOf("0x5", g), 403, "forbidden"},
		{"viewer", watcher, "PUT", pkeys, orderOf("0x5", g), 403, "forbidden"},
		{"viewer", watcher, "DELETE", pkeys + "/0x5", "", 403, "forbidden"},
		{"viewer", watcher, "POST", remove, orderOf("0x5", g), 403, "forbidden"},
		{"no range", everyone, "POST", pkeys, orderOf("0x5", g), 403, "p_key_out_of_scope"},
	} {
		got := s.do(t, tt.method, tt.path, tt.who, tt.body, tt.want)
		if !strings.HasPrefix(got, `{"error":"`+tt.code+": ") {
			t.Errorf("%s, %s %s: %s, want the code %s", tt.name, tt.method, tt.path, got, tt.code)
		}
	}
	if h := s.Host("gpu-0"); h.Epoch != 0 {
		t.Errorf("gpu-0 is %+v, want it never assigned", h)
	}
	if h := s.Host("login-0"); h.Cluster != "theirs" || h.Epoch != 1 {
		t.Errorf("login-0 is %+v, want it where it was", h)
	}
	if got := s.audited(t, confined); !slices.Contains(got, "cluster.create cluster/pkey-0x0200 p_key_out_of_scope") {
		t.Errorf("audit log %q: the reach for another's P_Key is missing", got)
	}
}

// TestForeignHost: a host that the credential may not take is refused by the service, which records that.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	theirs := s.guids(t, "login-0")[0]
	s.own(t, "POST", "/v1/hosts/login-0/release", everyone, "", 428)
	if _, err := s.Service().Release(t.Context(), "olga", "login-0"); err != nil {
		t.Fatal(err)
	}
	s.Program()
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x5", theirs), 403)
	if got := s.audited(t, confined); !slices.Contains(got, "host.assign host/login-0 host_out_of_scope") {
		t.Errorf("audit log %q", got)
	}
}

// TestOrdersAreLimited: a request for many hosts counts as as many as our own API takes for them.
func TestOrdersAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *api.Options) { o.Limits.Tokens = limit.Rate{PerSecond: 1e-6, Burst: 4} })
	all := append(append(s.guids(t, "gpu-0"), s.guids(t, "gpu-1")...), s.guids(t, "gpu-2")...)
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x5", all...), 200) // 3 of 4
	s.do(t, "GET", "/app/ufm_version", confined, "", 200)
	s.do(t, "GET", "/app/ufm_version", confined, "", 429)
}

// TestClockAndStore: while the clock is not believed nothing is granted and removals go on; a store that is away is "not ready".
func TestClockAndStore(t *testing.T) {
	t.Parallel()
	clock := &halted{}
	s := newSite(t, func(o *api.Options) { o.Clock = clock })
	g := s.guids(t, "gpu-0")
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x5", g...), 200)
	clock.why = errors.New("the clock was set back")
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x5", s.guids(t, "gpu-1")...), 503)
	s.do(t, "POST", "/actions/remove_guids_from_pkey", confined, orderOf("0x5", g...), 200)
	s.Fail(errors.New("the store is away"))
	t.Cleanup(func() { s.Fail(nil) })
	if got := s.do(t, "GET", "/resources/pkeys", confined, "", 503); !strings.Contains(got, "503 Service Temporarily Unavailable") {
		t.Errorf("%s", got)
	}
}

// halted is a clock that is not believed, for a reason.
type halted struct {
	keeper
	why error
}

type keeper interface{ api.Clock }

func (h *halted) Halted() error { return h.why }
