package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/config"
	"portcullis/packaging/testenv"
)

// instance is one machine of a cluster of services.
type instance struct {
	t            *testing.T
	name         string
	dir          string
	peer, client string
	api          *client.Client
	process      *process
}

// clusterOf makes machines with one installation: the same tokens, certificates and
// roots, each with addresses and a state directory of its own. None is in a cluster yet.
func clusterOf(t *testing.T, names ...string) []*instance {
	t.Helper()
	dir, address := install(t, "--fabric-port", nobody())
	edit(t, dir, map[string]string{"roles: [api, sm]": "roles: [api]"})
	urls := freeURLs(t, 2*len(names))
	var out []*instance
	for i, name := range names {
		m := &instance{t: t, name: name, dir: dir, peer: urls[2*i], client: urls[2*i+1]}
		at := address
		if i > 0 {
			m.dir, at = sibling(t, dir, address)
		}
		m.api = operator(t, m.dir, at)
		out = append(out, m)
	}
	return out
}

func freeURLs(t *testing.T, n int) (out []string) {
	t.Helper()
	for _, address := range testenv.Addresses(t, n) {
		out = append(out, "https://"+address)
	}
	return out
}

func (m *instance) start() { m.t.Helper(); m.process = start(m.t, m.dir) }

// cluster runs "portcullisd cluster" on the machine, which must end well, and returns
// what it says.
func (m *instance) cluster(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		m.t.Fatalf("portcullisd cluster %v on %s: %v\n%s", args, m.name, err, out)
	}
	return out
}

func (m *instance) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	line := append(append([]string{"cluster", args[0]}, args[1:]...), "--config", filepath.Join(m.dir, "portcullisd.yaml"))
	out, err := exec.CommandContext(ctx, "portcullisd", line...).CombinedOutput()
	return string(out), err
}

// invite has a machine invite another, which joins, and starts.
func (m *instance) invite(other *instance, verb ...string) {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "invitation")
	m.cluster(append(verb, "--name", other.name, "--peer", other.peer, "--client", other.client, "--out", file)...)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		m.t.Errorf("the invitation has mode %v, %v; want 0600", info.Mode(), err)
	}
	other.cluster("join", "--invitation", file)
	other.start()
}

// load creates tenants through every machine without a pause, and keeps what was
// acknowledged.
type load struct {
	mu    sync.Mutex
	kept  map[string]bool
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func startLoad(t *testing.T, machines ...*instance) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{kept: map[string]bool{}, stop: stop}
	t.Cleanup(l.end)
	for _, m := range machines {
		machine := m.name // the present one: m gets another name for a while
		l.ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", machine, i)
				one, done := context.WithTimeout(ctx, 10*time.Second)
				_, err := m.api.Tenants().Create(one, v1.NewTenant{Name: name})
				done()
				if err == nil {
					l.keep(name)
				}
				select { // often enough to show a gap, and far below the limit of an address
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return l
}

// keep notes that a tenant was acknowledged.
func (l *load) keep(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[name] = true
}

func (l *load) end() { l.stop(); l.ended.Wait() }

// acknowledged returns how many tenants of a machine, or of all, were acknowledged.
func (l *load) acknowledged(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for tenant := range l.kept {
		if strings.HasPrefix(tenant, name) {
			n++
		}
	}
	return n
}

// goesOn waits until more is acknowledged through each of the machines.
func (l *load) goesOn(t *testing.T, machines ...*instance) {
	t.Helper()
	for _, m := range machines {
		was := l.acknowledged(m.name + "-")
		eventually(t, "writes through "+m.name, func() (bool, string) {
			n := l.acknowledged(m.name + "-")
			return n > was+2, fmt.Sprintf("%d acknowledged, %d before", n, was)
		})
	}
}

// complete requires every acknowledged tenant to be there, as a machine shows it.
func (l *load) complete(t *testing.T, m *instance) {
	t.Helper()
	l.mu.Lock()
	want := slices.Sorted(maps.Keys(l.kept))
	l.mu.Unlock()
	tenants, err := m.api.Tenants().All(t.Context())
	if err != nil {
		t.Fatalf("tenants through %s: %v", m.name, err)
	}
	have := map[string]bool{}
	for _, tenant := range tenants {
		have[tenant.Name] = true
	}
	lost := slices.DeleteFunc(want, func(name string) bool { return have[name] })
	if len(lost) > 0 {
		t.Errorf("%s lost %d acknowledged tenants: %v", m.name, len(lost), lost)
	}
}

// voting waits until a machine lists so many reachable members that vote.
func (m *instance) voting(n int) {
	m.t.Helper()
	want := fmt.Sprintf("%d of %d voting members are reachable", n, n)
	eventuallyEach(m.t, 250*time.Millisecond, want, func() (bool, string) {
		out, err := m.try("list")
		return err == nil && strings.Contains(out, want), out
	})
}

// TestClusterGrows has one machine with records grow into three under load, lose a member for a while and another
// permanently, which is replaced, and shrink to one again. Nothing that was acknowledged is lost.
func TestClusterGrows(t *testing.T) {
	t.Parallel()
	all := clusterOf(t, "a", "b", "c", "d")
	a, b, c, d := all[0], all[1], all[2], all[3]
	a.start()
	if _, err := a.api.Tenants().Create(t.Context(), v1.NewTenant{Name: "alone"}); err != nil {
		t.Fatal(err)
	}
	out, err := b.try("list")
	if err == nil || !strings.Contains(out, "in no cluster") {
		t.Errorf("list on a machine without cluster: %v\n%s", err, out)
	}
	a.cluster("init", "--name", "a", "--peer", a.peer, "--client", a.client)
	a.process.stop()
	a.start()
	l := startLoad(t, a, b, c, d)
	l.keep("alone")
	l.goesOn(t, a)

	a.invite(b, "invite")
	a.voting(2)
	a.invite(c, "invite")
	for _, m := range []*instance{a, b, c} {
		m.voting(3)
	}
	l.goesOn(t, a, b, c)

	// One of three ends without notice: the others go on, and it catches up.
	a.process.kill()
	l.goesOn(t, b, c)
	a.start()
	a.voting(3)
	l.goesOn(t, a, b, c)

	if testing.Short() { // under the race detector, where all that follows takes minutes
		l.end()
		l.complete(t, b)
		return
	}

	// One is lost permanently. The rest refuses to lose one more, and replaces it.
	c.process.kill()
	l.goesOn(t, a, b)
	if out, err := a.try("remove", "--name", "b", "--yes"); err == nil || !strings.Contains(out, "a quorum is 2") {
		t.Errorf("a member was removed without which there is no quorum: %v\n%s", err, out)
	}
	dry := a.cluster("remove", "--name", "c")
	if !strings.Contains(dry, "Say --yes") {
		t.Errorf("remove without --yes: %s", dry)
	}
	stateOf(t, c, func(state string) { must(t, os.Rename(filepath.Join(state, "etcd"), filepath.Join(state, "lost"))) })
	// Nothing is removed whose certificate could not be revoked.
	issued := filepath.Join(a.dir, "cluster", "issued", "c.pem")
	must(t, os.Rename(issued, issued+".away"))
	if out, err := a.try("replace", "--name", "c", "--out", filepath.Join(t.TempDir(), "none"), "--yes"); err == nil || !strings.Contains(out, "nothing was removed") {
		t.Errorf("a member was replaced whose certificate is not known: %v\n%s", err, out)
	}
	must(t, os.Rename(issued+".away", issued))
	d.name = "c"
	a.invite(d, "replace", "--yes")
	d.name = "d"
	a.voting(3)
	l.goesOn(t, a, b, d)
	l.complete(t, d)

	// A replaced member has no way back: its records are void, and its certificate is revoked on every member.
	stateOf(t, c, func(state string) { must(t, os.Rename(filepath.Join(state, "lost"), filepath.Join(state, "etcd"))) })
	eventuallyEach(t, 250*time.Millisecond, "the revoked list on every member", func() (bool, string) {
		for _, m := range []*instance{a, b, d} {
			out, err := c.listOf(m)
			if err == nil {
				return false, fmt.Sprintf("%s takes the certificate of the member that was removed:\n%s", m.name, out)
			}
		}
		return true, ""
	})

	a.cluster("remove", "--name", "c", "--yes")
	removed(t, d)
	a.voting(2)
	a.cluster("remove", "--name", "b", "--yes")
	removed(t, b)
	a.voting(1)
	l.goesOn(t, a)
	l.end()
	l.complete(t, a)
	if out, err := a.try("remove", "--name", "a", "--yes"); err == nil || !strings.Contains(out, "only voting member") {
		t.Errorf("the last member was removed: %v\n%s", err, out)
	}
	a.process.stop()
	a.start()
	l.complete(t, a)
	t.Logf("%d tenants were acknowledged", l.acknowledged(""))
}

// listOf lists the members with this machine's certificate at another machine alone.
func (m *instance) listOf(other *instance) (string, error) {
	m.t.Helper()
	file := filepath.Join(m.dir, "portcullisd.yaml")
	was, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	join := filepath.Join(m.dir, "cluster", "join.json")
	kept, err := os.ReadFile(join)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { write(m.t, file, string(was)); write(m.t, join, string(kept)) }()
	write(m.t, file, strings.ReplaceAll(string(was), m.client, other.client))
	write(m.t, join, "{}")
	return m.try("list")
}

// stateOf calls f with the state directory of a machine.
func stateOf(t *testing.T, m *instance, f func(state string)) {
	t.Helper()
	c, err := config.Load(filepath.Join(m.dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f(c.StateDir)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// removed waits until a service says that its member was removed, and stops it.
func removed(t *testing.T, m *instance) {
	t.Helper()
	eventually(t, "word of the removal of "+m.name, func() (bool, string) {
		return strings.Contains(m.process.lines.String(), "removed from the cluster"), "it does not say so"
	})
	m.process.stop()
}

// TestClusterSection holds that the values and files of the section are judged.
func TestClusterSection(t *testing.T) {
	t.Parallel()
	all := clusterOf(t, "a", "b")
	a, b := all[0], all[1]
	a.cluster("init", "--name", "a", "--peer", a.peer, "--client", a.client)
	file := filepath.Join(a.dir, "portcullisd.yaml")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"ca.key": 0o600, "member.key": 0o600} {
		info, err := os.Stat(filepath.Join(a.dir, "cluster", name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %v", name, info.Mode(), err, want)
		}
	}
	for _, tt := range []struct{ old, now, want string }{
		{"", "", ""},
		{`name: "a"`, `name: "A b"`, "cluster.name"},
		{`name: "a"`, `name: ""`, "cluster.name"},
		{a.peer, "http://127.0.0.1:1", "cluster.peer"},
		{a.client, "https://elsewhere.example:2379", "cluster.client_listen"},
		{a.client, "https://127.0.0.2:2379", "does not serve cluster.client"},
		{"cert: cluster/member.pem", "cert: cluster/ca.pem", "cluster.cert"},
		{"revoked: cluster/revoked.crl", "revoked: cluster/ca.pem", "cluster.revoked"},
		{"ca: cluster/ca.pem", "ca: tls/ca.pem", "cluster."},
		{"endpoints: []", "endpoints: [https://etcd1:2379]", "cluster.name"},
	} {
		write(t, file, strings.Replace(string(good), tt.old, tt.now, 1))
		c, err := config.Load(file)
		if err == nil {
			_, err = config.LoadCluster(c, time.Now())
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q instead of %q: %v, want %q", tt.now, tt.old, err, tt.want)
		}
	}
	write(t, file, string(good))
	if out, err := a.try("init", "--name", "a", "--peer", a.peer, "--client", a.client); err == nil || !strings.Contains(out, "already") {
		t.Errorf("a second init: %v\n%s", err, out)
	}

	// A machine with records does not join, and one that cannot reach the cluster keeps
	// nothing of the invitation.
	invitation := filepath.Join(t.TempDir(), "invitation")
	a.cluster("invite", "--name", "b", "--peer", b.peer, "--client", b.client, "--out", invitation)
	if out, err := b.try("join", "--invitation", invitation); err == nil || !strings.Contains(out, a.client) {
		t.Errorf("join without the first member: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "cluster", "member.key")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key was left behind: %v", err)
	}
	must(t, os.Chmod(invitation, 0o644))
	if out, err := b.try("join", "--invitation", invitation); err == nil || !strings.Contains(out, "chmod") {
		t.Errorf("an invitation that all may read: %v\n%s", err, out)
	}
	must(t, os.Chmod(invitation, 0o600))
	stateOf(t, b, func(state string) { must(t, os.MkdirAll(filepath.Join(state, "etcd"), 0o700)) })
	if out, err := b.try("join", "--invitation", invitation); err == nil || !strings.Contains(out, "holds records") {
		t.Errorf("a machine with records joins: %v\n%s", err, out)
	}
	client := filepath.Join(t.TempDir(), "web")
	a.cluster("client", "--name", "web", "--out", client)
	edit(t, a.dir, map[string]string{"cert: cluster/member.pem": "cert: " + client + "/client.pem", "key: cluster/member.key": "key: " + client + "/client.key"})
	c, err := config.Load(file)
	if err == nil {
		_, err = config.LoadCluster(c, time.Now())
	}
	if err == nil || !strings.Contains(err.Error(), "no certificate of a member") {
		t.Errorf("a client's certificate as a member's: %v", err)
	}
}
