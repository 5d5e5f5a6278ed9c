package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"portcullis/api/client"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/cmd/internal/program"
	"portcullis/cmd/internal/softagent"
	"portcullis/fabricsm/ib"
)

// agent is a host with a TPM in software, and what it is assigned to.
type agent struct {
	number  int // of the host in the fabric
	id      string
	cluster string
	pkey    ib.PKey
	tpm     *attesttest.Host
	api     *client.Client // from an address of its own
}

// controlSite is a service whose hosts are in its inventory, and in no cluster.
type controlSite struct {
	*services
	agents []*agent
	clouds [provisioners]*client.Client // of provisioning systems, each from an address of its own
	watch  *watcher
}

// cloud returns the client of the provisioning system of a host.
func (s *controlSite) cloud(a *agent) *client.Client { return s.clouds[a.number%provisioners] }

// newControlSite makes the site, and has the service run until the fabric is settled.
func newControlSite(ctx context.Context, o *options, g *ground) (_ *controlSite, err error) {
	g.apart, g.tenants = true, max(2, min(mostTenants, g.hosts/10))
	x, err := g.install(ctx, o.program)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.stop()
		}
	}()
	// All clients of this benchmark have one token.
	err = x.first.edit(map[string]string{"\n  tokens: 1000\n": "\n  tokens: 100000\n", "\n  two_persons: true\n": "\n  two_persons: false\n"})
	if err != nil {
		return nil, err
	}
	s := &controlSite{services: x}
	for n := range s.clouds {
		if s.clouds[n], err = x.first.client(ownAddress(3, n)); err != nil {
			return nil, err
		}
	}
	vendor, err := attesttest.NewVendor("benchmark")
	if err != nil {
		return nil, err
	}
	for _, h := range g.members {
		t := g.tenantOf(h)
		a := &agent{number: h, id: hostID(h), cluster: g.clusterName(t), pkey: pkeyOf(t).Full()}
		if a.tpm, err = vendor.NewHost(a.id, h); err != nil {
			return nil, err
		}
		if a.api, err = x.first.client(ownAddress(2, h)); err != nil {
			return nil, err
		}
		node := g.list.Nodes[g.hostAt(h)].GUID
		a.tpm.Statement.HCAs = []attest.HCA{attesttest.HCA("mlx5_0", node, node, g.guid(h))}
		s.agents = append(s.agents, a)
	}
	if err := s.register(ctx); err != nil {
		return nil, err
	}
	if err := x.first.start(); err != nil {
		return nil, err
	}
	if err := x.idle(ctx); err != nil {
		return nil, err
	}
	return s, s.learn(ctx)
}

// register writes inventory, tenants and clusters into the store of the service, which does not run.
func (s *controlSite) register(ctx context.Context) (err error) {
	g := s.ground
	r, err := openRecords(ctx, s.first.state())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	now := time.Now().UTC().Truncate(time.Second)
	for some := range slices.Chunk(s.agents, atOnce) {
		_, err := r.Update(ctx, func(tx *store.Tx) error {
			for _, a := range some {
				if err := inventory.Hosts().Put(tx, a.id, g.inventoryOf(a.number, a.tpm.EKDigest())); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err = r.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(g.writeTenants(tx, g.clusters(now), now), g.declare(tx),
			inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: now, Actor: "benchmark", Hosts: len(s.agents)}))
	})
	return err
}

// learn has reference values learned from the boots of two hosts, which are not assigned yet.
func (s *controlSite) learn(ctx context.Context) error {
	c := s.first.api
	var ids []string
	for _, a := range s.agents[:2] {
		if _, err := c.Hosts().Assign(ctx, a.id, v1.Assignment{Cluster: a.cluster}); err != nil {
			return err
		}
		if err := softagent.Attest(ctx, c, a.tpm); err == nil {
			return fmt.Errorf("%s was accepted before there are reference values", a.id)
		}
		ids = append(ids, a.id)
	}
	made, err := c.References().Learn(ctx, v1.NewReference{Class: reference.DefaultClass, Hosts: ids, Reason: "the benchmark"})
	if err != nil {
		return err
	}
	if _, err = c.References().Approve(ctx, made.Class, made.Version, v1.ReferenceApprove{}); err != nil {
		return err
	}
	for _, a := range s.agents[:2] {
		if err := s.release(ctx, a, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// releasedEvery is how often the service is asked whether a host is released.
const releasedEvery = 100 * time.Millisecond

// isReleased waits until the service has read back that no port has a P_Key of the tenant.
func (s *controlSite) isReleased(ctx context.Context, a *agent) error {
	return program.AwaitEvery(ctx, releasedEvery, a.id+" is released", func() (bool, error) {
		h, err := s.cloud(a).Hosts().Get(ctx, a.id)
		if err != nil {
			return false, errors.Join(err, s.first.process.Ended())
		}
		return h.Cluster == "" && h.Status.Phase == v1.PhaseQuarantined, nil
	})
}

// watcher looks into the simulator for what it waits for.
type watcher struct {
	ground *ground
	mu     sync.Mutex
	wait   map[int]awaited // by host
	stop   context.CancelFunc
	done   chan struct{}
}

// awaited is a change of the tables of a host.
type awaited struct {
	pkey  ib.PKey
	there bool // at the adapter and its switch port; otherwise at no switch port
	began time.Time
	took  *timings
	ended chan struct{}
}

func (g *ground) newWatcher() *watcher {
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{ground: g, wait: map[int]awaited{}, stop: stop, done: make(chan struct{})}
	go w.run(ctx)
	return w
}

// await adds to timings how long it takes from a moment until the tables of a host have a P_Key, or its switch port has it no
// longer. The channel is closed then.
func (w *watcher) await(a *agent, there bool, began time.Time, took *timings) <-chan struct{} {
	ended := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait[a.number] = awaited{a.pkey, there, began, took, ended}
	return ended
}

// waiting is how many hosts are waited for.
func (w *watcher) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wait)
}

func (w *watcher) close() {
	w.stop()
	<-w.done
}

// run looks all the time. It rests longer where it has more to look at, as it shares the CPUs with what it measures.
func (w *watcher) run(ctx context.Context) {
	const (
		rest    = 5 * time.Millisecond
		forEach = 40 * time.Microsecond
	)
	defer close(w.done)
	for {
		n := w.look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest + time.Duration(n)*forEach):
		}
	}
}

// look ends what has happened, and returns how many hosts it looked at.
func (w *watcher) look() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.wait)
	for host, x := range w.wait {
		if w.ground.hasKey(host, x.pkey, x.there) != x.there {
			continue
		}
		x.took.since(x.began)
		close(x.ended)
		delete(w.wait, host)
	}
	return n
}

// hasKey reports whether the switch port of a host has a P_Key, and if both is true, its adapter, too.
func (g *ground) hasKey(host int, key ib.PKey, both bool) bool {
	n := &g.list.Nodes[g.hostAt(host)]
	p := n.Ports[1]
	return slices.Contains(g.sim.PKeys(p.Peer, p.PeerPort), key) && (!both || slices.Contains(g.sim.PKeys(n.Name, 1), key))
}
