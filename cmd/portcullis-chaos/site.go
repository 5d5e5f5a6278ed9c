package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/transport/ibsim"
)

// clustersOf names the clusters, and tenantOf the tenant of one.
var (
	clusterNames = []string{"acme-train", "acme-infer", "globex-train", "globex-infer", "initech-train", "initech-infer"}
	tenantOf     = func(cluster string) string { tenant, _, _ := strings.Cut(cluster, "-"); return tenant }
)

// site is all that runs.
type site struct {
	dir      string
	programs string
	plan     *plan
	fabric   *sim.Fabric
	network  *network
	nodes    []*instance
	hosts    []*machine
	byID     map[string]*machine
	keys     map[string]ib.PKey // by cluster
	socket   string
	serving  *errgroup.Group // the servers of the simulator
	halt     context.CancelFunc
	say      func(format string, args ...any)

	// changes has one for each command that is out; a fault that must have none takes all.
	changes  *semaphore.Weighted
	identity *age.X25519Identity // opens backups
	frozen   atomic.Pointer[tables]

	acks   *acks
	asked  atomic.Int64 // number of the instance that is asked first
	leader atomic.Pointer[instance]
	terms  termCount
}

// build makes the site and brings it to the point where every host is assigned and admitted.
func build(ctx context.Context, o options, say func(string, ...any)) (_ *site, err error) {
	dir, err := os.MkdirTemp("", "pchaos-")
	if err != nil {
		return nil, err
	}
	s := &site{
		dir: dir, programs: o.programs, plan: newPlan(o.hosts, o.instances), keys: map[string]ib.PKey{},
		byID: map[string]*machine{}, socket: filepath.Base(dir), say: say, halt: func() {}, acks: newAcks(),
		changes: semaphore.NewWeighted(allChanges),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove(true))
		}
	}()
	if s.network, err = newNetwork(ctx, o.instances); err != nil {
		return nil, err
	}
	if err := s.serve(o.seed); err != nil {
		return nil, err
	}
	if s.identity, err = age.GenerateX25519Identity(); err != nil {
		return nil, err
	}
	vendor, err := attesttest.NewVendor("chaos")
	if err != nil {
		return nil, err
	}
	if err := s.makeHosts(vendor); err != nil {
		return nil, err
	}
	if err := s.install(ctx, vendor); err != nil {
		return nil, err
	}
	for _, n := range s.nodes {
		if err := errors.Join(n.mount(), n.configure(s.configuration(n))); err != nil {
			return nil, err
		}
	}
	if s.clustered() {
		if err := s.found(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.nodes[0].start(); err != nil {
		return nil, err
	}
	if err := s.nodes[0].awaitAnswer(ctx); err != nil {
		return nil, err
	}
	if err := s.populate(ctx); err != nil {
		return nil, err
	}
	if err := s.admitAll(ctx); err != nil {
		return nil, err
	}
	s.say("every host is admitted; logs are in %s", s.dir)
	if s.clustered() {
		err = s.grow(ctx)
	}
	return s, err
}

// describe writes how the network is beside the logs, for a fault after which the site was not as before.
func (s *site) describe(ctx context.Context) {
	if s.network == nil {
		return
	}
	file := filepath.Join(s.dir, "network.txt")
	if err := os.WriteFile(file, []byte(s.network.describe(ctx)), 0o600); err != nil {
		s.say("the network is not described: %v", err)
		return
	}
	s.say("connections and neighbours are in %s", file)
	ctx, cancel := context.WithTimeout(ctx, describeLimit)
	defer cancel()
	all, err := s.list(ctx)
	if err != nil {
		s.say("hosts are not described: %v", err)
	}
	for i := range all {
		if ok, why := admitted(&all[i]); !ok {
			s.say("%s", why)
		}
	}
}

// describeLimit bounds describing hosts.
const describeLimit = 20 * time.Second

// remove ends all that runs and removes it. Where keep is true, logs and configuration stay.
func (s *site) remove(keep bool) error {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, n.remove())
	}
	s.halt()
	if s.serving != nil {
		errs = append(errs, s.serving.Wait())
	}
	if s.network != nil {
		s.network.remove(context.Background(), len(s.network.spaces))
	}
	if !keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// serve serves the simulated fabric in this namespace, for diagnostics, and in that of each
// instance.
func (s *site) serve(seed uint64) error {
	s.fabric = sim.NewWith(s.plan.list, sim.Options{Seed: seed, LoseSilently: true, Device: sim.Modern()})
	ctx, cancel := context.WithCancel(context.Background())
	s.halt, s.serving = cancel, new(errgroup.Group)
	own, err := ibsim.Listen(s.socket)
	if err != nil {
		return err
	}
	s.serving.Go(func() error { return ibsimserver.Serve(ctx, own, s.fabric) })
	for _, space := range s.network.spaces {
		ready := make(chan error, 1)
		s.serving.Go(func() error {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if err := space.enter(); err != nil {
				ready <- err
				return nil
			}
			server, err := ibsim.Listen(s.socket)
			ready <- err
			if err != nil {
				return nil
			}
			return ibsimserver.Join(ctx, server, s.fabric)
		})
		if err := <-ready; err != nil {
			return err
		}
	}
	return nil
}

func (s *site) makeHosts(vendor *attesttest.Vendor) error {
	for i, p := range s.plan.hosts {
		m, err := newMachine(vendor, p, i)
		if err != nil {
			return err
		}
		s.hosts, s.byID[p.id] = append(s.hosts, m), m
	}
	return nil
}

func (s *site) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// install makes keys, certificate and tokens once, and a configuration for each instance.
func (s *site) install(ctx context.Context, vendor *attesttest.Vendor) error {
	addresses := []string{"localhost", "127.0.0.1"}
	for _, space := range s.network.spaces {
		addresses = append(addresses, space.address)
	}
	if _, err := program.Call(ctx, filepath.Join(s.programs, "portcullisd"), "init", "--dir", s.path("etc"), "--names", strings.Join(addresses, ",")); err != nil {
		return err
	}
	token, err := os.ReadFile(s.path("etc", "operator.token"))
	if err != nil {
		return err
	}
	if err := s.addApprover(ctx); err != nil {
		return err
	}
	ca, err := os.ReadFile(s.path("etc", "tls", "ca.pem"))
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(s.path("vendor.pem"), vendor.PEM(), 0o600),
		os.WriteFile(s.identityFile(), []byte(s.identity.String()+"\n"), 0o600))
	if err != nil {
		return err
	}
	for i, space := range s.network.spaces {
		n := &instance{number: i, program: filepath.Join(s.programs, "portcullisd"), dir: s.dir, space: space}
		n.client, err = client.New(client.Options{URL: n.url(apiPort), CA: ca, Token: strings.TrimSpace(string(token)), Timeout: 5 * time.Second})
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	return nil
}

// approver is the name of the operator that approves reference values.
const approver = "second"

// addApprover adds a second operator, whose token is in second.token.
func (s *site) addApprover(ctx context.Context) error {
	token, err := program.Call(ctx, filepath.Join(s.programs, "portcullisd"), "token", "--name", approver, "--role", "operator")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.path("etc", "tokens.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "- {name: %s, role: operator, sha256: %x}\n", approver, sha256.Sum256([]byte(strings.TrimSpace(string(token)))))
	return errors.Join(err, f.Close(), os.WriteFile(s.path("etc", approver+".token"), token, 0o600))
}

// configuration returns what differs from the reference configuration.
func (s *site) configuration(n *instance) string {
	return fmt.Sprintf(`listen: %s:%d
tls: {cert: %[3]s/etc/tls/server.pem, key: %[3]s/etc/tls/server.key}
tokens: %[3]s/etc/tokens.yaml
state_dir: %[4]s
limits: {connections: 2000, requests: 2000, attestations: 2000}
fabric:
  port: "ibsim:%[5]s/%[6]s"
  keys: {root: %[3]s/etc/keys.root}
# Simulated adapters have no firmware to assure and no settings to lock.
attestation: {ek: {roots: [%[3]s/vendor.pem]}, assurance: none, require_lock: false}
admission: {pkey_rest: 1s}
backup: {recipients: [%[7]s]}
`, n.space.address, apiPort, s.dir, n.stateDir(), s.socket, s.plan.managers[n.number], s.identity.Recipient())
}

// cli runs a command of the operator's program against the first instance.
func (s *site) cli(ctx context.Context, token string, args ...string) ([]byte, error) {
	return program.Call(ctx, filepath.Join(s.programs, "portcullis"), append(args,
		"--service", s.nodes[0].url(apiPort), "--ca", s.path("etc", "tls", "ca.pem"), "--token-file", s.path("etc", token+".token"))...)
}

// populate imports the inventory, makes tenants and clusters and assigns every host.
func (s *site) populate(ctx context.Context) error {
	hosts, cables := s.plan.inventory(func(id string) string { return s.byID[id].tpm.EKDigest() })
	c := s.nodes[0].client
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "inventory.yaml", Content: hosts}, {Name: "cables.yaml", Content: cables}}, v1.RepairTicket{}, false); err != nil {
		return err
	}
	tenants := map[string]bool{}
	for _, name := range clusterNames {
		if tenant := tenantOf(name); !tenants[tenant] {
			tenants[tenant] = true
			if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: tenant}); err != nil {
				return err
			}
		}
		made, err := c.Clusters().Create(ctx, v1.NewCluster{Name: name, Tenant: tenantOf(name)})
		if err != nil {
			return err
		}
		s.keys[name] = made.PKey
	}
	for i, m := range s.hosts {
		if err := s.assign(ctx, c, m, clusterNames[i%len(clusterNames)]); err != nil {
			return err
		}
	}
	s.say("%d hosts are assigned to %d clusters", len(s.hosts), len(clusterNames))
	return nil
}

// assign assigns a host to a cluster.
func (s *site) assign(ctx context.Context, c *client.Client, m *machine, cluster string) error {
	m.allow(cluster)
	if _, err := c.Hosts().Assign(ctx, m.id, v1.Assignment{Cluster: cluster}); err != nil {
		return fmt.Errorf("assign %s to %s: %w", m.id, cluster, err)
	}
	m.acknowledged(cluster)
	return nil
}

// admitAll has reference values learned from two hosts, attests all hosts and waits until
// they are admitted.
func (s *site) admitAll(ctx context.Context) error {
	c := s.nodes[0].client
	args := []string{"reference", "learn", reference.DefaultClass, "--reason", "as delivered"}
	for _, m := range s.hosts[:2] {
		if err := m.attest(ctx, c); err == nil {
			return fmt.Errorf("%s was accepted before there are reference values", m.id)
		}
		args = append(args, "--host", m.id)
	}
	if _, err := s.cli(ctx, "operator", args...); err != nil {
		return err
	}
	if _, err := s.cli(ctx, approver, "reference", "approve", reference.DefaultClass+"/1"); err != nil {
		return err
	}
	g, attesting := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, m := range s.hosts {
		g.Go(func() error {
			if err := m.attest(attesting, c); err != nil {
				return fmt.Errorf("attest %s: %w", m.id, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.awaitAdmitted(ctx)
}

// awaitAdmitted returns when every host that is assigned is admitted and the manager settled.
func (s *site) awaitAdmitted(ctx context.Context) error {
	var missing string
	err := program.Await(ctx, "every assigned host is admitted", func() (bool, error) {
		var done bool
		done, missing = s.everyHostAdmitted(ctx)
		return done, nil
	})
	if err != nil && missing != "" {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return err
}

// everyHostAdmitted reports whether the service says that each assigned host is admitted, and
// if not, the first cause.
func (s *site) everyHostAdmitted(ctx context.Context) (bool, string) {
	all, err := s.list(ctx)
	if err != nil {
		return false, err.Error()
	}
	for _, h := range all {
		m := s.byID[h.ID]
		if m == nil || m.assigned() == "" {
			continue
		}
		if ok, why := admitted(&h); !ok {
			return false, why
		}
	}
	return true, ""
}

// admitted reports whether a host is admitted, and if not, why.
func admitted(h *v1.Host) (bool, string) {
	if h.Status.Phase == v1.PhaseAdmitted {
		return true, ""
	}
	return false, fmt.Sprintf("%s is %s: %s", h.ID, h.Status.Phase, unmet(h.Status.Guards))
}

func unmet(guards []v1.Guard) string {
	for _, g := range guards {
		if !g.Met {
			return g.Name + ": " + g.Detail
		}
	}
	return "all guards are met"
}

// list returns all hosts, from an instance that answers.
func (s *site) list(ctx context.Context) (all []v1.Host, err error) {
	err = s.any(func(n *instance) (err error) {
		all, err = n.client.Hosts().All(ctx)
		return err
	})
	return all, err
}

// any calls f with one instance after another until one succeeds, which is the first in the
// next call.
func (s *site) any(f func(*instance) error) error {
	var errs []error
	first := int(s.asked.Load())
	for i := range s.nodes {
		n := s.nodes[(first+i)%len(s.nodes)]
		if n.process.Load() == nil {
			continue
		}
		err := f(n)
		if err == nil {
			s.asked.Store(int64(n.number))
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.name(), err))
	}
	return errors.Join(append(errs, errors.New("no instance answers"))...)
}
