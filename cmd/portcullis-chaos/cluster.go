package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
)

// clustered reports whether several instances share a store.
func (s *site) clustered() bool { return len(s.nodes) > 1 }

// cluster runs "portcullisd cluster" on the machine of an instance.
func (n *instance) cluster(ctx context.Context, args ...string) ([]byte, error) {
	line := append([]string{"netns", "exec", n.space.name, n.program, "cluster"}, args...)
	out, err := program.Call(ctx, "ip", append(line, "--config", n.config())...)
	if err != nil {
		return nil, fmt.Errorf("portcullisd cluster %s on %s: %w", args[0], n.name(), err)
	}
	return out, nil
}

// membership returns the options that name an instance as a member.
func (n *instance) membership() []string {
	return []string{"--name", n.name(), "--peer", n.url(peerPort), "--client", n.url(clientPort)}
}

// caKey is the key of the cluster's authority, and issued the directory of the certificates
// that it signed. The operator keeps both away from the instances, since any of them can be
// lost.
func (s *site) caKey() string  { return s.path("etc", "cluster-ca.key") }
func (s *site) issued() string { return s.path("etc", "cluster-issued") }

// found makes the first instance a cluster of one, before it starts.
func (s *site) found(ctx context.Context) error {
	first := s.nodes[0]
	if _, err := first.cluster(ctx, append([]string{"init"}, first.membership()...)...); err != nil {
		return err
	}
	return errors.Join(
		os.Rename(filepath.Join(first.configDir(), "cluster", "ca.key"), s.caKey()),
		os.Rename(filepath.Join(first.configDir(), "cluster", "issued"), s.issued()),
		s.lend(first))
}

// lend shows a member the certificates that were signed.
func (s *site) lend(n *instance) error {
	return os.Symlink(s.issued(), filepath.Join(n.configDir(), "cluster", "issued"))
}

// grow has the other instances join one after the other, and each of them lead once, so
// that all have shown by which port they manage the fabric.
func (s *site) grow(ctx context.Context) error {
	for i, n := range s.nodes[1:] {
		if err := s.join(ctx, s.nodes[0], n, append([]string{"invite"}, n.membership()...)...); err != nil {
			return err
		}
		if err := s.awaitVoting(ctx, s.nodes[0], i+2); err != nil {
			return err
		}
	}
	led := map[string]bool{}
	for epoch := uint64(0); ; {
		leads, now, err := s.awaitLeader(ctx, epoch)
		if err != nil {
			return err
		}
		epoch = now
		if led[leads] = true; len(led) == len(s.nodes) {
			s.say("%d instances share a store, and each has led", len(s.nodes))
			s.leader.Store(s.called(leads))
			return nil
		}
		if err := s.stepDown(ctx); err != nil {
			return err
		}
	}
}

// join has a member invite an instance by a command, and the instance join and start.
func (s *site) join(ctx context.Context, by, n *instance, command ...string) error {
	file := s.path("invitation-of-" + n.name())
	if _, err := by.cluster(ctx, append(command, "--out", file, "--ca-key", s.caKey())...); err != nil {
		return err
	}
	if _, err := n.cluster(ctx, "join", "--invitation", file); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(file), s.lend(n), n.start()); err != nil {
		return err
	}
	return n.awaitAnswer(ctx)
}

// awaitVoting returns when an instance lists so many members that vote and are reachable.
func (s *site) awaitVoting(ctx context.Context, at *instance, members int) error {
	want := fmt.Sprintf("%d of %d voting members are reachable", members, members)
	var last error
	err := program.Await(ctx, want, func() (bool, error) {
		out, err := at.cluster(ctx, "list")
		if last = err; err == nil && !strings.Contains(string(out), want) {
			last = errors.New(strings.TrimSpace(string(out)))
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// awaitLeader returns the leader of a later term than one, on which all instances agree,
// when the fabric it manages is settled, and it has recorded by which port it manages it.
func (s *site) awaitLeader(ctx context.Context, than uint64) (leads string, epoch uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	missing := ""
	err = program.Await(ctx, "all instances agree on a leader", func() (bool, error) {
		leads = ""
		for _, n := range s.nodes {
			sm, err := n.client.SM().Get(ctx)
			switch {
			case err != nil:
				missing = fmt.Sprintf("%s: %v", n.name(), err)
				return false, nil
			case !sm.Settled || sm.Epoch <= than || leads != "" && sm.Leader != leads:
				missing = fmt.Sprintf("%s says that %q leads in epoch %d, settled %t", n.name(), sm.Leader, sm.Epoch, sm.Settled)
				return false, nil
			}
			if leads, epoch = sm.Leader, sm.Epoch; !shown(sm) {
				missing = fmt.Sprintf("%s has not recorded its port", leads)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s", err, missing)
	}
	return leads, epoch, nil
}

// shown reports whether the leader has recorded the port by which it manages the fabric.
func shown(sm *v1.SM) bool {
	for _, i := range sm.Instances {
		if i.Name == sm.Leader {
			return i.Port == sm.GUID
		}
	}
	return false
}

// called returns the instance with a name; nil where there is none.
func (s *site) called(name string) *instance {
	for _, n := range s.nodes {
		if n.name() == name {
			return n
		}
	}
	return nil
}

// stepDown has the leader end its term, asked by way of any instance.
func (s *site) stepDown(ctx context.Context) error {
	return s.any(func(n *instance) error { return n.client.SM().StepDown(ctx, v1.StepDown{Reason: "chaos"}) })
}

// lose destroys an instance with its disk and configuration, permanently.
func (s *site) lose(n *instance) error {
	n.kill()
	return errors.Join(n.unmount(), os.RemoveAll(n.configDir()))
}

// replace installs an instance again, as a new machine with the address of the lost one, and
// has it join in the place of that one.
func (s *site) replace(ctx context.Context, n *instance) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	if err := errors.Join(n.mount(), n.configure(s.configuration(n))); err != nil {
		return err
	}
	by := s.nodes[(n.number+1)%len(s.nodes)]
	// A member that has just lost another one may have no quorum for a moment.
	var last error
	err := program.Await(ctx, n.name()+" is replaced", func() (bool, error) {
		_, last = by.cluster(ctx, "list")
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	if err := s.join(ctx, by, n, "replace", "--name", n.name(), "--yes"); err != nil {
		return err
	}
	return s.awaitVoting(ctx, by, len(s.nodes))
}

// stall has the store of an instance stand still again and again until ctx ends.
func (n *instance) stall(ctx context.Context, still, run time.Duration) error {
	for ctx.Err() == nil {
		if err := n.pause(storage); err != nil {
			return err
		}
		_ = rest(ctx, still)
		if err := n.resume(storage); err != nil {
			return err
		}
		_ = rest(ctx, run)
	}
	return nil
}
