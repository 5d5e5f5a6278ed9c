package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"portcullis/api/client"
	"portcullis/api/store/etcd/etcdtest"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// onEtcd has an installation keep its records in a foreign etcd, by user name, and do
// only one role.
func onEtcd(t *testing.T, dir string, c *etcdtest.Cluster, role string) {
	t.Helper()
	write(t, filepath.Join(dir, "etcd.password"), "secret-1\n")
	if err := os.Chmod(filepath.Join(dir, "etcd.password"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(c.Dir(), name) }
	edit(t, dir, map[string]string{
		"endpoints: []":        "endpoints: [" + strings.Join(c.Endpoints(), ", ") + "]",
		"prefix: portcullis\n": "prefix: sites/a\n",
		"  ca: \"\"\n":         "  ca: " + at(etcdtest.CA) + "\n",
		"  cert: \"\"\n":       "  cert: " + at(etcdtest.ClientCert) + "\n",
		"  key: \"\"\n":        "  key: " + at(etcdtest.ClientKey) + "\n",
		"user: \"\"":           "user: portcullis",
		"password: \"\"":       "password: etcd.password",
		"roles: [api, sm]":     "roles: [" + role + "]",
		"request_timeout: 10s": "request_timeout: 20s",
		"dial_timeout: 5s":     "dial_timeout: 20s",
	})
}

// edit replaces text of a configuration, which must be there once.
func edit(t *testing.T, dir string, changes map[string]string) {
	t.Helper()
	file := filepath.Join(dir, "portcullisd.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, old := range slices.Sorted(maps.Keys(changes)) {
		if !strings.Contains(text, old) {
			t.Fatalf("%s has no %q", file, old)
		}
		text = strings.Replace(text, old, changes[old], 1)
	}
	write(t, file, text)
}

// alternating passes each connection on to the next of several addresses, as a load
// balancer does, and returns where it listens.
func alternating(t *testing.T, addresses ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for i := 0; ; i++ {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addresses[i%len(addresses)])
			if err != nil {
				from.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) // ends when either side closes
				to.Close()
				from.Close()
			}
			all.Go(func() { pass(to, from) })
			all.Go(func() { pass(from, to) })
		}
	})
	return l.Addr().String()
}

// TestRolesApart runs two services with the api role and one with the sm role, each with
// a state directory of its own, on one etcd: a host is admitted through both of the
// first, by the last, and released by the other. The first have no keys of the fabric,
// the last has neither certificate nor tokens.
func TestRolesApart(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	store := etcdtest.Start(t, 3)
	store.User("portcullis", "secret-1", "sites/a")
	h1 := newMachine(t, vendor, &machine{id: "h1", nodeGUID: 0x200000, place: "0x100000/1", route: "0,1,1", onLeaf: "1"})

	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	configure(t, dir, h1)
	other, otherAddress := sibling(t, dir, address)
	manager, _ := sibling(t, dir, address)
	onEtcd(t, dir, store, "api")
	onEtcd(t, other, store, "api")
	onEtcd(t, manager, store, "sm")
	for _, d := range []string{dir, other} {
		remove(t, d, "keys.root")
	}
	for _, name := range []string{"tls/server.pem", "tls/server.key", "tls/ca.key", "tokens.yaml", "operator.token", "locks.root", "hosts.root", "results.root"} {
		remove(t, manager, name)
	}
	start(t, dir)
	start(t, other)
	sm := start(t, manager)

	c, c2, ctx := operator(t, dir, address), operator(t, other, otherAddress), t.Context()
	h1.serve(dir, alternating(t, address, otherAddress))
	trustBoots(t, c, c2, h1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c2.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "train", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c2.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "train"}); err != nil {
		t.Fatal(err)
	}
	h1.provision(t)
	key := phase(t, c, "h1", v1.PhaseAdmitted).Status.PKey
	phase(t, c2, "h1", v1.PhaseAdmitted)
	wantPKeys(t, lab, h1, key.Full().String())
	eventually(t, "the state of the subnet manager, from either", func() (bool, string) {
		a, err := c.SM().Get(ctx)
		b, err2 := c2.SM().Get(ctx)
		return err == nil && err2 == nil && a.Settled && b.Settled, fmt.Sprint(a, err, b, err2)
	})
	wantElsewhere(t, c)

	sm.kill()
	if _, err := c2.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
		t.Fatal(err)
	}
	start(t, manager)
	phase(t, c, "h1", v1.PhaseQuarantined)
	wantPKeys(t, lab, h1, "")
}

// wantElsewhere requires a service without the sm role to say that it does not see the fabric.
func wantElsewhere(t *testing.T, c *client.Client) {
	t.Helper()
	_, err := c.Fabric().Overview(t.Context())
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != v1.CodeSMElsewhere || p.Hint == "" {
		t.Errorf("the fabric's overview: %v, want %s with a hint", err, v1.CodeSMElsewhere)
	}
}

// sibling makes a copy of an installation for another machine: the same roots, tokens
// and certificates, and an address and a state directory of its own.
func sibling(t *testing.T, dir, address string) (copied, at string) {
	t.Helper()
	copied, at = install(t)
	old, err := os.ReadFile(filepath.Join(copied, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	for line := range strings.Lines(string(old)) {
		if strings.HasPrefix(line, "state_dir: ") {
			state = line
		}
	}
	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tls/server.key", "tokens.yaml", "operator.token", "sm.key", "keys.root", "locks.root", "hosts.root", "results.root"} {
		if err := os.Chmod(filepath.Join(copied, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(copied, "portcullisd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "state_dir: ") {
			line = state
		}
		lines = append(lines, line)
	}
	write(t, file, strings.ReplaceAll(strings.Join(lines, ""), address, at))
	return copied, at
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
