package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// allChanges is how many commands can be out at a time.
const allChanges = 1 << 20

// calm is how long what was acknowledged takes at most to reach every member of the store
// that runs.
const calm = time.Second

// tables is which P_Keys ports hold.
type tables map[sim.Endpoint]map[ib.PKey]bool

func (s *site) identityFile() string { return s.path("backup.key") }
func (s *site) backupFile() string   { return s.path("backup") }

// drawRestore makes a backup while everything runs, and restores it later into a cluster
// that is made of one instance and grows again.
func drawRestore(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	hold := seconds(r, 3, 10)
	var before, after known
	return strike{
		what: fmt.Sprintf("restore of a backup, %v old, on %s", hold, what), hold: hold,
		begin: func(ctx context.Context) (err error) {
			if err := s.awaitKeys(ctx); err != nil {
				return err
			}
			before = s.known()
			err = s.backUp(ctx)
			after = s.known()
			return err
		},
		end: func(ctx context.Context) error {
			if err := s.changes.Acquire(ctx, allChanges); err != nil {
				return err
			}
			defer s.changes.Release(allChanges)
			return s.restore(ctx, n, &before, &after)
		},
	}
}

// drawQuorumLost loses all instances but one permanently, and recovers the store from that one.
func drawQuorumLost(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	hold := seconds(r, 0, 5)
	quiet := false
	return strike{
		what: fmt.Sprintf("all but %s lost with their disks, and the store recovered from it after %v", what, hold), hold: hold,
		begin: func(ctx context.Context) error {
			// Records acknowledged a moment before may be on the lost ones alone.
			if err := s.changes.Acquire(ctx, allChanges); err != nil {
				return err
			}
			quiet = true
			if err := rest(ctx, calm); err != nil {
				return err
			}
			var errs []error
			for _, o := range s.others(n) {
				errs = append(errs, s.lose(o))
			}
			return errors.Join(errs...)
		},
		end: func(ctx context.Context) error {
			if !quiet {
				return nil
			}
			defer s.changes.Release(allChanges)
			return s.recover(ctx, n)
		},
	}
}

// others returns all instances but one.
func (s *site) others(n *instance) []*instance {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(o *instance) bool { return o == n })
}

// known is what was acknowledged at one moment.
type known struct {
	there, gone map[string]bool // tenants
	hosts       map[string]standing
}

func (s *site) known() (k known) {
	k.there, k.gone = s.acks.copies()
	k.hosts = s.standings()
	return k
}

// moved reports whether a host was being changed at one of two times, or between them.
func (k *known) moved(host string, after *known) bool {
	was := k.hosts[host]
	return was.busy || was != after.hosts[host]
}

// awaitKeys returns when the change of M_Keys that follows a change of leaders has ended. A
// backup has the M_Keys of its time; those of later are in an escrow kit, which is not tried
// here.
func (s *site) awaitKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	var missing string
	err := program.Await(ctx, "all devices have their M_Keys", func() (bool, error) {
		err := s.any(func(n *instance) error {
			k, err := n.client.Keys().Get(ctx)
			if err != nil {
				return err
			}
			if k.Rotation.Epoch > 0 && k.Rotation.Ended.IsZero() || k.Rotation.Turning > 0 || k.Devices["changing"] > 0 {
				missing = fmt.Sprintf("%d devices change their M_Key, %d are to be", k.Devices["changing"], k.Rotation.Turning)
			} else {
				missing = ""
			}
			return nil
		})
		if err != nil {
			missing = err.Error()
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return nil
}

// backUp makes a backup with the operator's program, and verifies it as one that is offline.
func (s *site) backUp(ctx context.Context) error {
	if err := os.Remove(s.backupFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := s.cli(ctx, "operator", "backup", "create", "--out", s.backupFile()); err != nil {
		return err
	}
	_, err := s.cli(ctx, "operator", "backup", "verify", "--identity", s.identityFile(), s.backupFile())
	return err
}

// restore restores the backup on one instance, of which the cluster consists then, has an
// operator decide, and has the others join. No command may be out.
func (s *site) restore(ctx context.Context, n *instance, before, after *known) error {
	// The leader last, so that no other one takes over and changes the M_Keys once more.
	leads := s.leader.Load()
	for _, o := range s.others(leads) {
		o.stop()
	}
	if leads != nil {
		leads.stop()
	}
	holds := s.tables()
	if err := errors.Join(n.unmount(), n.mount()); err != nil {
		return err
	}
	line := []string{"netns", "exec", n.space.name, n.program, "restore", s.backupFile(), "--identity", s.identityFile(), "--config", n.config()}
	if _, err := program.Call(ctx, "ip", line...); err != nil {
		return fmt.Errorf("portcullisd restore on %s: %w", n.name(), err)
	}
	s.frozen.Store(&holds)
	defer s.frozen.Store(nil)
	if err := errors.Join(n.start(), n.awaitAnswer(ctx)); err != nil {
		return err
	}
	if err := s.restored(ctx, n, before, after); err != nil {
		return err
	}
	if err := s.review(ctx, n, holds, func(host string) bool { return before.moved(host, after) }); err != nil {
		return err
	}
	if err := s.adopt(ctx, n); err != nil {
		return err
	}
	for _, o := range s.others(n) {
		if err := errors.Join(o.unmount(), os.RemoveAll(o.configDir())); err != nil {
			return err
		}
	}
	return s.regrow(ctx, n)
}

// recover has one instance whose quorum is lost be a cluster of its own, has an operator
// review that, and has the others join. No command may be out.
func (s *site) recover(ctx context.Context, n *instance) error {
	var lost []string
	for _, o := range s.others(n) {
		lost = append(lost, o.name())
	}
	n.stop()
	holds, known := s.tables(), s.mkeys()
	if _, err := n.cluster(ctx, "recover", "--lost", strings.Join(lost, ","), "--yes"); err != nil {
		return err
	}
	s.frozen.Store(&holds)
	defer s.frozen.Store(nil)
	if err := errors.Join(n.start(), n.awaitAnswer(ctx)); err != nil {
		return err
	}
	now := s.known()
	if err := s.restored(ctx, n, &now, &now); err != nil {
		return err
	}
	if err := s.review(ctx, n, holds, func(host string) bool { return now.moved(host, &now) }); err != nil {
		return err
	}
	if err := s.regrow(ctx, n); err != nil {
		return err
	}
	return s.fenced(ctx, known)
}

// mkeys returns the M_Keys of switches, which are those that lost instances know.
func (s *site) mkeys() map[string]ib.MKey {
	out := map[string]ib.MKey{}
	for _, name := range slices.Concat(s.plan.leaves, s.plan.spines) {
		out[name] = s.fabric.PortInfo(name, 0).MKey
	}
	return out
}

// fenced returns when no switch has an M_Key any more that lost instances know.
func (s *site) fenced(ctx context.Context, known map[string]ib.MKey) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	return program.Await(ctx, "all switches have other M_Keys than the lost instances know", func() (bool, error) {
		for name, key := range s.mkeys() {
			if key == known[name] {
				return false, nil
			}
		}
		return true, nil
	})
}

// restored returns an error for the first host or tenant of which a restored state does not
// show what was acknowledged, and not changed, from the beginning to the end of the backup.
func (s *site) restored(ctx context.Context, n *instance, before, after *known) error {
	shown, err := n.tenants(ctx)
	if err != nil {
		return err
	}
	if err := missing(before.there, after.there, before.gone, shown); err != nil {
		return fmt.Errorf("%w: in the restored state %w", errForgotten, err)
	}
	all, err := n.client.Hosts().All(ctx)
	if err != nil {
		return err
	}
	clusters := map[string]string{}
	for i := range all {
		clusters[all[i].ID] = all[i].Cluster
	}
	for id, was := range before.hosts {
		if before.moved(id, after) {
			continue
		}
		if cluster, ok := clusters[id]; !ok || cluster != was.cluster {
			return fmt.Errorf("%w: %s was acknowledged to be in cluster %q, and the restored state has it in %q", errForgotten, id, was.cluster, cluster)
		}
	}
	return nil
}

// tables returns which P_Keys of tenants the ports of hosts and their switch ports hold.
func (s *site) tables() tables {
	out := tables{}
	for _, m := range s.hosts {
		for i := range m.hcas {
			for _, at := range []sim.Endpoint{m.hcas[i].end(), m.hcas[i].gate()} {
				out[at] = map[ib.PKey]bool{}
				for _, key := range s.fabric.PKeys(at.Node, at.Port) {
					if key.Base() != ib.DefaultPKeyLimited {
						out[at][key] = true
					}
				}
			}
		}
	}
	return out
}

// adopt takes what an instance shows after a restore as what was acknowledged, and as what the ports of hosts may hold.
func (s *site) adopt(ctx context.Context, n *instance) error {
	shown, err := n.tenants(ctx)
	if err != nil {
		return err
	}
	s.acks.begin(shown)
	all, err := n.client.Hosts().All(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if m := s.byID[all[i].ID]; m != nil {
			m.only(all[i].Cluster)
		}
	}
	return nil
}

// regrow installs all other instances again, and has them join the one that runs.
func (s *site) regrow(ctx context.Context, n *instance) error {
	s.asked.Store(int64(n.number))
	for i, o := range s.others(n) {
		if err := errors.Join(o.mount(), o.configure(s.configuration(o))); err != nil {
			return err
		}
		if err := s.join(ctx, n, o, append([]string{"invite"}, o.membership()...)...); err != nil {
			return err
		}
		if err := s.awaitVoting(ctx, n, i+2); err != nil {
			return err
		}
	}
	return nil
}
