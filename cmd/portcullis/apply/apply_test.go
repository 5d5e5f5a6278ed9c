package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/client"
	"portcullis/api/clustername"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// site is a real service with hosts n1 to n4, and a directory of files.
type site struct {
	*apitest.Site
	t      *testing.T
	server *apitest.Server
	dir    string
	token  string
}

func newSite(t *testing.T, edit ...func(*api.Options)) *site {
	t.Helper()
	s := &site{Site: apitest.NewSite(t), t: t, dir: t.TempDir()}
	s.Register("n1", "n2", "n3", "n4")
	s.server = apitest.Start(t, s.Site, edit...)
	s.token = s.server.OperatorFile
	t.Setenv("HOME", s.dir)
	t.Setenv("XDG_CONFIG_HOME", s.dir)
	return s
}

// write replaces a file of the directory.
func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// apply runs the command on the directory, and wants an exit code.
func (s *site) apply(want int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	return s.applyFrom(s.t.Context(), want, "", append([]string{"-f", s.dir}, args...)...)
}

func (s *site) applyFrom(ctx context.Context, want int, stdin string, args ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	env := cli.New(strings.NewReader(stdin), &out, &errs)
	root := cli.Group("portcullis", "test", Commands(env)...)
	root.SilenceErrors, root.SilenceUsage = true, true
	env.Flags(root)
	root.SetArgs(append([]string{"--service", s.server.URL, "--ca", s.server.CAFile, "--token-file", s.token, "apply"}, args...))
	cmd, err := root.ExecuteContextC(ctx)
	if code := env.Report(cmd, err); code != want {
		s.t.Fatalf("apply %v: exit %d, want %d\n%s\n%s", args, code, want, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func (s *site) client() *client.Client {
	s.t.Helper()
	ca, err := os.ReadFile(s.server.CAFile)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: s.server.URL, CA: ca, Token: s.server.Operator})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *site) cluster(name string) *v1.Cluster {
	s.t.Helper()
	c, err := s.client().Clusters().Get(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

const declared = `kind: Tenant
name: acme
quota: {hosts: 4, clusters: unlimited}
---
kind: Tenant
name: disks
---
kind: Cluster
name: disk
tenant: disks
shared: true
---
kind: Cluster
name: train
tenant: acme
uses: [disk]
---
kind: Assignment
cluster: train
hosts: ["n[1-2]"]
window: 30m
---
kind: Assignment
cluster: disk
hosts: [n3]
`

// TestApply: what is declared is created once, and a second run finds nothing to do.
func TestApply(t *testing.T) {
	s := newSite(t)
	s.write("site.yaml", declared)
	out, _ := s.apply(1, "--set", "prod", "--dry-run")
	wantText(t, "the difference", out, "create-tenant", "tenant acme may have 4 hosts, any number of clusters", "use", "host/n3")
	if c, err := s.client().Clusters().All(t.Context()); err != nil || len(c) > 0 {
		t.Fatalf("a dry run made %v, %v", c, err)
	}
	s.token = s.server.ViewerFile
	s.apply(1, "--set", "prod", "--dry-run")
	_, errs := s.apply(cli.ExitError, "--set", "prod")
	wantText(t, "a viewer", errs, "2 of 9 changes failed, 7 were not begun, 0 are done")
	s.token = s.server.OperatorFile
	out, _ = s.apply(0, "--set", "prod")
	if strings.Count(out, "done  ") != 9 {
		t.Errorf("made:\n%s", out)
	}
	out, _ = s.apply(0, "--set", "prod", "--dry-run")
	wantText(t, "after it", out, "no difference")
	out, _ = s.apply(0, "--set", "prod")
	wantText(t, "again", out, "no difference")
	train := s.cluster("train")
	if !slices.Equal(train.Hosts, []string{"n1", "n2"}) || train.Set != "prod" || train.UseSets["disk"] != "prod" {
		t.Errorf("cluster %+v", train)
	}
	h := s.Host("n1")
	if h.Set != "prod" || h.Status.Window.Sub(h.Status.Since) > 31*time.Minute {
		t.Errorf("host %+v", h)
	}
}

// TestPrune: what the set created and no file declares is removed when its number is named, and nothing that others hold.
func TestPrune(t *testing.T) {
	s := newSite(t)
	s.write("site.yaml", declared)
	s.apply(0, "--set", "prod")
	c := s.client()
	if _, err := c.Hosts().Assign(t.Context(), "n4", v1.Assignment{Cluster: "train"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(t.Context(), v1.NewTenant{Name: "byhand"}); err != nil {
		t.Fatal(err)
	}
	s.write("site.yaml", "kind: Tenant\nname: acme\n")
	out, _ := s.apply(0, "--set", "prod", "--dry-run")
	wantText(t, "without prune", out, "no difference")
	out, _ = s.apply(0, "--set", "test", "--prune", "--dry-run")
	wantText(t, "another set", out, "no difference")
	out, _ = s.apply(1, "--set", "prod", "--prune", "--dry-run")
	wantText(t, "with prune", out, "6 removals: --confirm 6 does it", "cluster/train", "host n4 is in it")
	for _, wrong := range [][]string{nil, {"--confirm", "5"}, {"--confirm", "0"}} {
		_, errs := s.apply(cli.ExitUsage, append([]string{"--set", "prod", "--prune"}, wrong...)...)
		wantText(t, "unconfirmed", errs, "not done: it makes 6 removals", "add --confirm 6 to do it")
	}
	if hosts := s.cluster("train").Hosts; len(hosts) != 3 {
		t.Fatalf("unconfirmed, train has %v", hosts)
	}
	s.apply(0, "--set", "prod", "--prune", "--confirm", "6")
	if train := s.cluster("train"); !slices.Equal(train.Hosts, []string{"n4"}) || len(train.Uses) > 0 {
		t.Errorf("cluster %+v", train)
	}
	tenants, err := c.Tenants().All(t.Context())
	var names []string
	for i := range tenants {
		names = append(names, tenants[i].Name)
	}
	if err != nil || !slices.Equal(names, []string{"acme", "byhand"}) {
		t.Errorf("tenants %v, %v", names, err)
	}
	s.apply(0, "--set", "prod", "--prune", "--dry-run")
	s.apply(cli.ExitUsage, "--set", "prod", "--prune", "--confirm", "1")
}

// TestMove: a host of the set moves once its release is proven; one that others assigned is not moved.
func TestMove(t *testing.T) {
	s := newSite(t)
	s.Admit("n1") // by another operator, to cluster train of tenant acme
	s.write("site.yaml", "kind: Tenant\nname: zeta\n---\nkind: Cluster\nname: run\ntenant: zeta\n---\nkind: Assignment\ncluster: run\nhosts: [n1]\n")
	_, errs := s.apply(cli.ExitError, "--set", "prod")
	wantText(t, "a host of others", errs, filepath.Join(s.dir, "site.yaml")+": line 10: host n1 is in cluster train, and was assigned for no set")
	if n := s.Host("n1").Cluster; n != apitest.Cluster {
		t.Fatalf("n1 is in %q", n)
	}
	_, errs = s.apply(cli.ExitUsage, "--set", "prod", "--take-over")
	wantText(t, "unconfirmed", errs, "host n1 leaves cluster train of tenant acme", "--confirm 1")

	_, errs = s.apply(cli.ExitNotConverged, "--set", "prod", "--take-over", "--confirm", "1", "--timeout", "1ms")
	wantText(t, "before the proof", errs, "1 of 4 changes failed, 0 were not begun, 3 are done; running the command again continues", "host n1 is releasing, not quarantined")
	if h := s.Host("n1"); h.Cluster != "" || h.Status.Phase != v1.PhaseReleasing {
		t.Fatalf("n1 is %+v", h)
	}
	out, _ := s.apply(1, "--set", "prod", "--dry-run")
	wantText(t, "what is left", out, "host n1 is assigned to cluster run, and its provisioning window opens, once it is proven that it left its last one")

	watch, err := s.Service().Watch(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	first := <-watch
	go func() { // the fabric follows while the command waits
		if first.Status.Phase == v1.PhaseReleasing {
			s.Program()
		}
	}()
	s.apply(0, "--set", "prod")
	if h := s.Host("n1"); h.Cluster != "run" || h.Set != "prod" || h.Epoch != 2 {
		t.Errorf("n1 is %+v", h)
	}
}

// TestPartialFailure: what a guard refuses stops what needs it and nothing else, and the report says what became of each.
func TestPartialFailure(t *testing.T) {
	s := newSite(t)
	s.write("site.yaml", strings.Replace(declared, "hosts: 4", "hosts: 1", 1))
	out, errs := s.apply(cli.ExitRefused, "--set", "prod", "-o", "json")
	wantText(t, "refused by the quota", errs, "1 of 9 changes failed, 0 were not begun, 8 are done", "tenant acme may have 1 hosts and has 1")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Failed != 1 || r.Done != 8 {
		t.Fatalf("report %+v, %v", r, err)
	}
	if second, last := r.Changes[7], r.Changes[8]; second.Result != resultFailed || second.Why == "" || last.Object != "host/n3" || last.Result != resultDone {
		t.Errorf("the last changes are %+v and %+v", second, last)
	}
	s.write("site.yaml", declared)
	out, _ = s.apply(0, "--set", "prod")
	if strings.Count(out, "done  ") != 2 {
		t.Errorf("what was left:\n%s", out)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	s.write("more.yaml", "kind: Tenant\nname: more\n")
	s.applyFrom(stopped, cli.ExitError, "", "-f", s.dir, "--set", "prod")
}

// TestDependents: nothing is assigned to a cluster whose quota or creation failed.
func TestDependents(t *testing.T) {
	s := newSite(t)
	c := s.client()
	plan := &v1.Plan{Changes: []v1.PlannedChange{
		{Verb: v1.PlanSetQuota, Object: "tenant/none", Name: "none", Quota: &v1.TenantQuota{}, Keys: []string{"quota/none"}},
		{Verb: v1.PlanCreateTenant, Object: "tenant/free", Name: "free", Tenant: &v1.NewTenant{Name: "free"}, Keys: []string{"tenant/free"}},
		{Verb: v1.PlanCreateCluster, Object: "cluster/c", Name: "c", Cluster: &v1.NewCluster{Name: "c", Tenant: "free"}, Keys: []string{"cluster/c"}, After: []string{"tenant/free", "quota/none"}},
		{Verb: v1.PlanAssign, Object: "host/n1", Name: "n1", Version: "0", Assignment: &v1.Assignment{Cluster: "c"}, Keys: []string{"host/n1"}, After: []string{"cluster/c"}},
		{Verb: "explode", Object: "host/n2", Name: "n2", Version: "0", Keys: []string{"host/n2"}},
		{Verb: v1.PlanAssign, Object: "host/n2", Name: "n2", Version: "0", Keys: []string{"host/n2"}},
	}}
	r := &run{env: cli.New(nil, &bytes.Buffer{}, &bytes.Buffer{}), c: c, timeout: time.Second, failed: map[string]string{}, made: map[string]made{}}
	out, err := r.all(t.Context(), plan)
	var results []string
	for _, o := range out.Changes {
		results = append(results, o.Result)
	}
	if want := []string{resultFailed, resultDone, resultNotDone, resultNotDone, resultFailed, resultFailed}; err == nil || !slices.Equal(results, want) {
		t.Errorf("%v, %v; want %v", results, err, want)
	}
	if _, err := c.Clusters().Get(t.Context(), "c"); err == nil {
		t.Error("the cluster was created")
	}
}

// TestStalePlan: a change is for the version that was compared. What another operator did since is not undone.
func TestStalePlan(t *testing.T) {
	s := newSite(t)
	s.write("site.yaml", declared)
	s.apply(0, "--set", "prod")
	c := s.client()
	plan, err := c.Tenants().Plan(t.Context(), &v1.Wanted{Set: "prod", Prune: true, Tenants: []v1.WantedTenant{{Name: "acme"}}})
	if err != nil || plan.Removals != 6 {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	if _, err := c.Hosts().Release(client.IfMatch(t.Context(), "1"), "n1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Hosts().Assign(t.Context(), "n1", v1.Assignment{Cluster: "train"}); err != nil {
		t.Fatal(err)
	}
	r := &run{env: cli.New(nil, &bytes.Buffer{}, &bytes.Buffer{}), c: c, timeout: time.Second, failed: map[string]string{}, made: map[string]made{}}
	out, err := r.all(t.Context(), plan)
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != v1.CodeChanged || out.Failed != 1 {
		t.Errorf("report %+v, %v", out, err)
	}
	if h := s.Host("n1"); h.Cluster != "train" || h.Set != "" {
		t.Errorf("n1, which was assigned again meanwhile, is %+v", h)
	}
	if train := s.cluster("train"); !slices.Equal(train.Hosts, []string{"n1"}) {
		t.Errorf("cluster %+v", train)
	}
}

// TestMistakes: each mistake of the files is reported with file and line, and nothing is done.
func TestMistakes(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct{ text, want string }{
		{"kind: Tenant\n", "line 1: the Tenant has no name"},
		{"name: x\n", "line 1: the document has no kind"},
		{"- x\n", "line 1: the document has no kind"},
		{"\nkind: Tenants\nname: x\n", `line 2: kind "Tenants" is not known`},
		{"kind: Tenant\nname: Acme\n", `line 2: name "Acme": want 1 to 63`},
		{"kind: Tenant\nname: a\nqouta: {}\n", "line 3: unknown key qouta; did you mean quota?"},
		{"kind: Tenant\nname: a\nname: b\n", "already defined at line 2"},
		{"kind: Tenant\nname: a\nquota:\n  hosts: many\n", `line 4: quota "many"`},
		{"kind: Tenant\nname: a\nquota:\n  hosts: -1\n", `line 4: quota "-1"`},
		{"kind: Tenant\nname: a\nquota:\n  hosts: 1000001\n", `line 4: quota "1000001"`},
		{"kind: Tenant\nname: a\np_keys:\n- 0x0001-zz\n", `line 4: range of P_Keys "0x0001-zz"`},
		{"kind: Tenant\nname: a\n---\nkind: Tenant\nname: a\n", "line 5: tenant/a is declared at site.yaml: line 2 already"},
		{"kind: Cluster\nname: c\n", "line 1: the Cluster has no tenant"},
		{"kind: Cluster\nname: c\ntenant: a\nuses: [X]\n", `line 4: cluster "X"`},
		{"kind: Cluster\nname: c\ntenant: a\np_key: 99999\n", "line 4: "},
		{"kind: Cluster\nname: c\ntenant: a\nshared: perhaps\n", "line 4: "},
		{"kind: Assignment\ncluster: c\n", "line 1: the Assignment to cluster c names no hosts"},
		{"kind: Assignment\ncluster: c\nhosts:\n- n1\n- n[2\n", `line 5: host range "n[2"`},
		{"kind: Assignment\ncluster: c\nhosts: [n1, n1]\n", "line 3: host/n1 is declared at site.yaml: line 3 already"},
		{"kind: Assignment\ncluster: c\nhosts: [n1]\nwindow: 5s\n", "line 4: window 5s: want whole seconds from 1m0s to 24h0m0s"},
		{"kind: Assignment\ncluster: c\nhosts: ['n[1-40000]', 'm[1-2]']\n", "the files name more than 40000 hosts"},
		{"kind: Assignment\ncluster: c\nhosts: [n1]\n", "line 2: hosts are to be in cluster c"},
	} {
		s.write("site.yaml", tt.text)
		_, errs := s.apply(cli.ExitError)
		errs = strings.ReplaceAll(errs, s.dir+"/", "")
		wantText(t, tt.text, errs, "site.yaml: ", tt.want)
		s.apply(cli.ExitUsage, "--dry-run") // it could not be compared
	}
	if c, err := s.client().Tenants().All(t.Context()); err != nil || len(c) > 0 {
		t.Errorf("tenants %v, %v", c, err)
	}
	s.apply(cli.ExitUsage, "--prune")
	s.apply(cli.ExitUsage, "--set", "Not a name")
	s.applyFrom(t.Context(), cli.ExitUsage, "")
	s.applyFrom(t.Context(), cli.ExitError, "", "-f", filepath.Join(s.dir, "none"))
	s.applyFrom(t.Context(), cli.ExitError, "", "-f", t.TempDir())
	s.applyFrom(t.Context(), cli.ExitUsage, "", "-f", s.dir, "-f", filepath.Join(s.dir, "site.yaml"))
	s.applyFrom(t.Context(), 0, "kind: Tenant\nname: piped\n", "-f", "-")
}

// FuzzLoad: any text is read or is a mistake with its file, in bounded time.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(declared))
	f.Add([]byte("kind: Assignment\ncluster: c\nhosts: ['n[1-99999999]', 'n[1-8]m[1-9]']\n---\n- kind\n"))
	f.Add([]byte("kind: &a Tenant\nname: *a\n--- {kind: Tenant}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newModel()
		m.load("f.yaml", data)
		for _, err := range m.errs {
			if !strings.HasPrefix(err.Error(), "f.yaml: ") {
				t.Errorf("%v", err)
			}
		}
		for _, a := range m.wanted.Assignments {
			if n, err := clustername.Parse(a.Cluster); err != nil || n.String() != a.Cluster {
				t.Errorf("cluster %q was taken", a.Cluster)
			}
		}
	})
}

// TestLabels: labels that are declared are set with the object that is created, or as a change of their own, and others stay. A
// second run finds no difference.
func TestLabels(t *testing.T) {
	s := newSite(t)
	const first = "kind: Tenant\nname: acme\nlabels: {tier: gold}\n---\nkind: Cluster\nname: train\ntenant: acme\nlabels: {env: prod}\n" +
		"---\nkind: Assignment\ncluster: train\nhosts: [\"n[1-2]\"]\nlabels: {gpu: h100, example.com/Row: A}\n"
	s.write("site.yaml", first)
	s.apply(0, "--set", "prod")
	if c := s.cluster("train"); c.Labels["env"] != "prod" || len(c.Labels) != 1 {
		t.Errorf("cluster: %v", c.Labels)
	}
	if h := s.Host("n2"); h.Labels["gpu"] != "h100" || h.Labels["example.com/Row"] != "A" || h.Cluster != "train" {
		t.Errorf("host: %+v", h)
	}
	out, _ := s.apply(0, "--set", "prod", "--prune", "--dry-run")
	wantText(t, "a second run", out, "no difference")

	other := "ada"
	if _, err := s.client().Clusters().Labels().Patch(t.Context(), "train", map[string]*string{"owner": &other}); err != nil {
		t.Fatal(err)
	}
	s.write("site.yaml", strings.NewReplacer("env: prod", "env: dev", "gold", "silver", "h100", "b200").Replace(first))
	out, _ = s.apply(1, "--set", "prod", "--dry-run")
	wantText(t, "the plan", out, "cluster/train is labelled env=dev", "tenant/acme is labelled tier=silver", "host/n1 is labelled gpu=b200", "host/n2")
	if strings.Contains(out, "Row") {
		t.Errorf("the plan sets what is there:\n%s", out)
	}
	s.apply(0, "--set", "prod")
	if c := s.cluster("train"); c.Labels["env"] != "dev" || c.Labels["owner"] != "ada" {
		t.Errorf("cluster: %v", c.Labels)
	}
	if h := s.Host("n1"); h.Labels["gpu"] != "b200" || h.Epoch != 1 {
		t.Errorf("host: %+v", h)
	}

	s.write("site.yaml", strings.Replace(first, "env: prod", "\"a b\": c", 1))
	_, errs := s.apply(1, "--set", "prod")
	wantText(t, "a bad key", errs, "site.yaml: line ", `label key "a b"`)
}

// TestPruneBySelector removes only what is in clusters, and those clusters and tenants, whose labels meet the selector.
func TestPruneBySelector(t *testing.T) {
	s := newSite(t)
	s.write("site.yaml", "kind: Tenant\nname: acme\nlabels: {env: dev}\n---\nkind: Tenant\nname: zeta\n"+
		"---\nkind: Cluster\nname: test\ntenant: acme\nlabels: {env: dev}\n---\nkind: Cluster\nname: prod\ntenant: zeta\nlabels: {env: prod}\n"+
		"---\nkind: Assignment\ncluster: test\nhosts: [n1]\n---\nkind: Assignment\ncluster: prod\nhosts: [n2]\nlabels: {env: dev}\n")
	s.apply(0, "--set", "all")
	s.write("site.yaml", "kind: Tenant\nname: other\n")
	_, errs := s.apply(2, "--set", "all", "--selector", "env=dev")
	wantText(t, "a selector without prune", errs, "--selector needs --prune")
	_, errs = s.apply(2, "--set", "all", "--prune", "--selector", "env<dev")
	wantText(t, "a bad selector", errs, "selector, byte 4")
	out, _ := s.apply(0, "--set", "all", "--prune", "-l", "env=dev", "--confirm", "3")
	wantText(t, "the report", out, "host/n1", "cluster/test", "tenant/acme", "KEPT",
		"host/n2", "the labels of cluster/prod do not meet the selector env=dev", "tenant/zeta")
	if h := s.Host("n2"); h.Cluster != "prod" {
		t.Errorf("host n2 of a cluster that is not chosen: %+v", h)
	}
	if h := s.Host("n1"); h.Cluster != "" {
		t.Errorf("host n1: %+v", h)
	}
	clusters, err := s.client().Clusters().All(t.Context())
	if err != nil || len(clusters) != 1 || clusters[0].Name != "prod" {
		t.Errorf("clusters: %+v, %v", clusters, err)
	}
	tenants, err := s.client().Tenants().All(t.Context())
	if err != nil || len(tenants) != 2 || tenants[1].Name != "zeta" {
		t.Errorf("tenants: %+v, %v", tenants, err)
	}
}
