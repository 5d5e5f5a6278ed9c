// Package etcdtest runs Debian's etcd as a process of its own on loopback, with
// certificates and user names, for tests of services that keep their records there.
package etcdtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/ca"
	"portcullis/api/store/etcd"
	"portcullis/fabricsm/ib"
	"portcullis/packaging/testenv"
)

// patience bounds every wait.
const patience = time.Minute

// Cluster is etcd processes of one cluster.
type Cluster struct {
	t       testing.TB
	dir     string
	program string
	names   []string
	peers   []string // URLs by member
	clients []string // URLs by member
	running []*exec.Cmd

	Authority *ca.Authority
}

// Files below the directory of Dir.
const (
	CA         = "ca.pem"
	ClientCert = "client.pem"
	ClientKey  = "client.key"
)

// Start starts n members that take only clients with a certificate, and skips the test
// where there is no etcd. Their files are below Dir.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), program: testenv.Program(t, "etcd"), running: make([]*exec.Cmd, n)}
	now := time.Now()
	var err error
	if c.Authority, err = ca.New("etcd CA", now); err != nil {
		t.Fatal(err)
	}
	root, err := c.Authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	server, err := c.Authority.IssuePeer("etcd", []string{"127.0.0.1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Authority.IssueClient("machine", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		CA: root.Cert, "server.pem": server.Cert, "server.key": server.Key, ClientCert: client.Cert, ClientKey: client.Key,
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addresses := testenv.Addresses(t, 2*n)
	for i := range n {
		c.names = append(c.names, fmt.Sprint("m", i))
		c.peers = append(c.peers, "https://"+addresses[2*i])
		c.clients = append(c.clients, "https://"+addresses[2*i+1])
	}
	for i := range n {
		c.launch(i)
	}
	t.Cleanup(func() {
		for i := range n {
			c.Kill(i)
		}
	})
	c.await()
	return c
}

// Dir returns the directory with the certificates.
func (c *Cluster) Dir() string { return c.dir }

// Endpoints returns the client URLs of all members.
func (c *Cluster) Endpoints() []string { return append([]string(nil), c.clients...) }

func (c *Cluster) launch(i int) {
	c.t.Helper()
	var initial []string
	for j, name := range c.names {
		initial = append(initial, name+"="+c.peers[j])
	}
	at := func(name string) string { return filepath.Join(c.dir, name) }
	cmd := exec.Command(
		c.program, "--name", c.names[i], "--data-dir", at(c.names[i]),
		"--listen-peer-urls", c.peers[i], "--initial-advertise-peer-urls", c.peers[i],
		"--listen-client-urls", c.clients[i], "--advertise-client-urls", c.clients[i],
		"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "new",
		"--trusted-ca-file", at(CA), "--cert-file", at("server.pem"), "--key-file", at("server.key"), "--client-cert-auth",
		"--peer-trusted-ca-file", at(CA), "--peer-cert-file", at("server.pem"), "--peer-key-file", at("server.key"), "--peer-client-cert-auth",
		"--max-txn-ops", "131072", "--max-request-bytes", "67108864",
		"--bcrypt-cost", "4", // each connection with a password would take 100 ms of CPU
	)
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running[i] = cmd
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("%s:\n%.4000s", c.names[i], log)
		}
	})
}

// Kill ends member i at once.
func (c *Cluster) Kill(i int) {
	cmd := c.running[i]
	if cmd == nil {
		return
	}
	c.running[i] = nil
	if err := cmd.Process.Kill(); err != nil {
		c.t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// Halt stops member i. It returns once the member does nothing more.
func (c *Cluster) Halt(i int) {
	c.t.Helper()
	testenv.Halt(c.t, c.running[i].Process.Pid)
}

// Continue continues member i, which was stopped.
func (c *Cluster) Continue(i int) {
	c.t.Helper()
	if err := c.running[i].Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
}

// Restart starts member i again with its data.
func (c *Cluster) Restart(i int) { c.launch(i) }

// TLS returns the configuration of a client with a certificate.
func (c *Cluster) TLS() *tls.Config {
	c.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, ClientCert), filepath.Join(c.dir, ClientKey))
	if err != nil {
		c.t.Fatal(err)
	}
	root, err := os.ReadFile(filepath.Join(c.dir, CA))
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// Remote returns the cluster as the store's options name it, without user name.
func (c *Cluster) Remote() etcd.Remote { return etcd.Remote{Endpoints: c.Endpoints(), TLS: c.TLS()} }

// Client returns a client of the cluster with the rights of root, once Users was called. Before, all users have these
// rights.
func (c *Cluster) Client(user, password string) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.clients, TLS: c.TLS(), DialTimeout: patience, Username: user, Password: password})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() }) // its context may have ended before
	return client
}

// await waits until a write is accepted.
func (c *Cluster) await() {
	c.t.Helper()
	client := c.Client("", "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := client.Put(ctx, "etcdtest", "")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("etcd takes no writes: %v", err)
		}
	}
}

// User switches authentication on, with a user that may read and write the keys below
// prefix, and no others, and one called root that may all.
func (c *Cluster) User(name, password, prefix string) {
	c.t.Helper()
	client := c.Client("", "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, do := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "root", "root-password"); return err },
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.RoleAdd(ctx, name); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, name, prefix+"/", clientv3.GetPrefixRangeEnd(prefix+"/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := client.UserAdd(ctx, name, password); return err },
		func() error { _, err := client.UserGrantRole(ctx, name, name); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// RemoteAs is Remote with a user name.
func (c *Cluster) RemoteAs(user, password string) etcd.Remote {
	r := c.Remote()
	r.User, r.Password = user, ib.NewSecretText(password)
	return r
}
