package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
)

// churnEvery says which hosts change their cluster all the time: each so many-th.
const churnEvery = 9

// retryPause is how long a client waits before it repeats what failed.
const retryPause = 200 * time.Millisecond

// churn moves hosts from cluster to cluster until ctx ends: release, proof, assign, boot,
// attestation, admission. It repeats what fails, as provisioning systems do.
func (s *site) churn(ctx context.Context, hosts []*machine, r *rand.Rand) error {
	for ctx.Err() == nil {
		m := hosts[r.IntN(len(hosts))]
		s.asked.Store(int64(r.IntN(len(s.nodes))))
		if err := s.changes.Acquire(ctx, 1); err != nil {
			return nil // ctx has ended
		}
		err := s.move(ctx, m, clusterNames[r.IntN(len(clusterNames))])
		s.changes.Release(1)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// churns reports whether the host with a number changes its cluster all the time.
func churns(number int) bool { return number%churnEvery == churnEvery-1 }

// steadyHost draws a host that stays in its cluster.
func (s *site) steadyHost(r *rand.Rand) *machine {
	i := r.IntN(len(s.hosts))
	if churns(i) {
		i--
	}
	return s.hosts[i]
}

// move moves a host to a cluster. It returns an error only if ctx ends.
func (s *site) move(ctx context.Context, m *machine, cluster string) error {
	m.begin()
	released := func(h *v1.Host) bool { return h.Cluster == "" && h.Status.Phase == v1.PhaseQuarantined }
	err := s.until(ctx, m, released, func(n *instance) error {
		_, err := n.client.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), m.id)
		return err
	})
	if err != nil {
		return err
	}
	m.forbid()
	m.acknowledged("")
	m.end()

	m.begin()
	m.allow(cluster)
	assigned := func(h *v1.Host) bool { return h.Cluster == cluster }
	err = s.until(ctx, m, assigned, func(n *instance) error {
		_, err := n.client.Hosts().Assign(ctx, m.id, v1.Assignment{Cluster: cluster})
		return err
	})
	if err != nil {
		return err
	}
	m.acknowledged(cluster)
	m.end()
	admitted := func(h *v1.Host) bool { return h.Status.Phase == v1.PhaseAdmitted }
	return s.until(ctx, m, admitted, func(n *instance) error {
		h, err := n.client.Hosts().Get(ctx, m.id)
		if err != nil || !h.Status.Sealed.IsZero() {
			return err
		}
		return m.attest(ctx, n.client)
	})
}

// until calls an instance, and again until the service reports that the host is as wanted.
func (s *site) until(ctx context.Context, m *machine, done func(*v1.Host) bool, call func(*instance) error) error {
	for {
		// The error is that of a moment: the next answer of the service counts.
		_ = s.any(call)
		var h *v1.Host
		err := s.any(func(n *instance) (err error) {
			h, err = n.client.Hosts().Get(ctx, m.id)
			return err
		})
		if err == nil && done(h) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// errForgotten is part of each error about what was acknowledged.
var errForgotten = errors.New("FORGOTTEN")

// forgotten returns an error for the first host or tenant of which an instance does not show
// what one of them acknowledged. An instance that does not answer is asked again.
func (s *site) forgotten(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	for _, n := range s.nodes {
		var last error
		err := program.Await(ctx, n.name()+" shows what was acknowledged", func() (bool, error) {
			last = errors.Join(s.forgottenBy(ctx, n), s.acks.kept(ctx, n))
			if errors.Is(last, errForgotten) {
				return false, last
			}
			return last == nil, nil
		})
		if err != nil && !errors.Is(err, errForgotten) {
			return fmt.Errorf("%w: %w", err, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// standing is what is known of a host's assignment.
type standing struct {
	busy    bool // a command is out
	moves   int  // commands so far
	cluster string
}

func (s *site) standings() map[string]standing {
	out := make(map[string]standing, len(s.hosts))
	for _, m := range s.hosts {
		out[m.id] = m.standing()
	}
	return out
}

func (s *site) forgottenBy(ctx context.Context, n *instance) error {
	before := s.standings()
	all, err := n.client.Hosts().All(ctx)
	if err != nil {
		return err
	}
	after := s.standings()
	told := map[string]string{}
	for i := range all {
		told[all[i].ID] = all[i].Cluster
	}
	for _, m := range s.hosts {
		was := before[m.id]
		if was.busy || was != after[m.id] {
			continue
		}
		if cluster, ok := told[m.id]; !ok || cluster != was.cluster {
			return fmt.Errorf("%w: %s was acknowledged to be in cluster %q, and %s shows %q", errForgotten, m.id, was.cluster, n.name(), cluster)
		}
	}
	return nil
}
