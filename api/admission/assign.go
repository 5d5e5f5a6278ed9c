package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/lifecycle"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Window limits of an assignment.
const (
	minWindow = time.Minute
	maxWindow = 24 * time.Hour
)

// Assign assigns the host to a cluster and opens its provisioning window: only evidence obtained inside it counts.
// Assigning an assigned host to the same cluster again opens the window again, as long as nothing was granted yet. To move
// a host, release it first.
func (s *Service) Assign(ctx context.Context, actor, host string, a v1.Assignment) (*v1.Host, error) {
	window, err := s.window(a.Window)
	if err != nil {
		return nil, err
	}
	if err := tenancy.ValidCluster(a.Cluster); err != nil {
		return nil, err
	}
	var out *v1.Host
	err = s.update(ctx, func(tx *store.Tx) error {
		f, err := s.named(ctx, tx, host)
		if err != nil {
			return err
		}
		if err := f.rec.SameTenancy(ctx, f.host.ID); err != nil {
			return err
		}
		if err := assignable(f, a.Cluster); err != nil {
			return err
		}
		if err := s.assign(ctx, tx, f, &a, window, actor); err != nil {
			return err
		}
		f, d, err := s.settle(ctx, tx, host)
		if err != nil {
			return err
		}
		out = shown(ctx, f, d)
		return withLabels(ctx, tx, out)
	})
	return out, s.refusals.Note(ctx, audit.Change{Actor: actor, Action: "host.assign", Object: "host/" + refusal.Clip(host)}, err)
}

func (s *Service) window(seconds int) (time.Duration, error) {
	if seconds == 0 {
		return s.o.Window, nil
	}
	w := time.Duration(seconds) * time.Second
	if w < minWindow || w > maxWindow {
		return 0, refusal.New(refusal.Invalid, "window_range", "", "window of %d s: want %v to %v", seconds, minWindow, maxWindow)
	}
	return w, nil
}

// assignable refuses to assign a host whose last admission has not ended, and one that
// is held.
func assignable(f *facts, cluster string) error {
	d := decide(f)
	id := f.host.ID
	switch lifecycle.Refuses(&d.life, lifecycle.Asked{Command: lifecycle.Assign, Other: f.rec.Cluster != cluster}) {
	case lifecycle.GuardNotHeld:
		return refusal.New(refusal.Conflict, "host_held", f.rec.Conflicts[0].Remedy(id), "host %s is held: %s", id, f.rec.Conflicts[0].Fact())
	case lifecycle.GuardAbsent:
		return refusal.New(refusal.Conflict, "host_releasing", "wait until the host is quarantined",
			"host %s is being released: %s", id, d.guards[len(d.guards)-1].Detail)
	case lifecycle.GuardNotBound:
		return refusal.New(refusal.Conflict, "host_assigned", "release the host first",
			"host %s is assigned to cluster %s (%s)", id, f.rec.Cluster, hostrecord.PhaseOf(f.rec))
	default:
		return nil
	}
}

func (s *Service) assign(ctx context.Context, tx *store.Tx, f *facts, a *v1.Assignment, window time.Duration, actor string) error {
	name := a.Cluster
	c, err := tenancy.FindCluster(ctx, tx, name)
	if err != nil {
		return err
	}
	if a.PKey != nil && a.PKey.Base() != c.PKey.Base() {
		return refusal.New(refusal.Conflict, "cluster_changed", "look at the cluster, then ask again",
			"cluster %s is not the one that was meant: it has P_Key %v by now, not %v", name, c.PKey, *a.PKey)
	}
	if err := errors.Join(tenancy.CheckCluster(ctx, &c), tenancy.CheckHost(ctx, f.host.ID, f.rec.Cluster, f.rec.PKey)); err != nil {
		return err
	}
	if f.rec.Cluster == "" {
		if err := tenancy.RoomForHost(ctx, tx, c.Tenant); err != nil {
			return err
		}
	}
	if err := opensPath(ctx, tx, f, &c); err != nil {
		return err
	}
	if f.leaves != "" { // left over: a host that is being released is not assigned
		tenancy.LeavingHosts().Delete(tx, f.host.ID)
	}
	id, before := f.host.ID, c
	if i, there := slices.BinarySearch(c.Hosts, id); !there {
		c.Hosts = slices.Insert(slices.Clone(c.Hosts), i, id)
		if err := tenancy.Clusters().Put(tx, name, c); err != nil {
			return err
		}
	}
	was := f.rec
	f.rec.Phase = hostrecord.PhaseOf(f.rec)
	if f.rec.Since.IsZero() {
		f.rec.Since = f.now
	}
	if f.rec.Cluster != c.Name { // to open the window again keeps the set
		f.rec.Set = a.Set
	}
	f.rec.Cluster, f.rec.Tenant, f.rec.PKey = c.Name, c.Tenant, c.PKey
	f.rec.Epoch++
	f.rec.Assigned, f.rec.Window = f.now, f.now.Add(window)
	f.rec.Trace = tracecontext.Of(ctx)
	f.rec.DropToken(tx)
	f.rec.Unseal(tx)
	if err := attestation.DropEvidence(ctx, tx, f.now, id, &f.rec); err != nil {
		return err
	}
	f.rec.Granted, f.rec.Admitted, f.rec.Denial = false, false, nil
	return errors.Join(
		hostrecord.Records().Put(tx, id, f.rec),
		s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "host.assign", Object: "host/" + id, Before: []any{was, before}, After: []any{f.rec, c},
			Detail: fmt.Sprintf("to cluster %s of tenant %s, P_Key %v; provisioning window until %s", c.Name, c.Tenant, c.PKey, f.rec.Window.Format(time.RFC3339)),
		}),
	)
}

// opensPath refuses a cluster whose packets, or those of a shared cluster that it uses, pass at a port that is no member.
func opensPath(ctx context.Context, tx *store.Tx, f *facts, c *tenancy.Cluster) error {
	var own []ib.Place
	for i := range f.host.HCAs {
		for _, p := range f.host.HCAs[i].Ports {
			own = append(own, p.Cable)
		}
	}
	keys := []ib.PKey{c.PKey.Full()}
	for _, name := range c.Uses {
		shared, err := tenancy.FindCluster(ctx, tx, name)
		if err != nil {
			return err
		}
		keys = append(keys, shared.PKey.Limited())
	}
	for _, k := range keys {
		if err := outsiders.Check(ctx, tx, outsiders.Asked{Key: k, Subject: "host " + f.host.ID, Own: own, Vague: tenancy.Scoped(ctx)}); err != nil {
			return err
		}
	}
	return nil
}

// Release withdraws the host's admission at once. The host answers as
// releasing until every switch port was read back without its P_Key, then as
// quarantined. Its evidence is spent. Adopted memberships of its ports end, also of a host that is in no cluster. A host that is held can be released, and stays held.
// With IfMatch only the assignment of that epoch is ended: a request that was delayed or
// repeated does not reach the tenancy after it.
func (s *Service) Release(ctx context.Context, actor, host string) (*v1.Host, error) {
	var out *v1.Host
	err := s.update(ctx, func(tx *store.Tx) error {
		f, err := s.named(ctx, tx, host)
		if err != nil {
			return err
		}
		if err := f.rec.SameTenancy(ctx, f.host.ID); err != nil {
			return err
		}
		life := f.rec.Life(f.now)
		switch no := lifecycle.Refuses(&life, lifecycle.Asked{Command: lifecycle.Release}); {
		case no == "" && life.Assigned:
			err = s.release(ctx, tx, f, actor)
		default:
			var done bool
			if done, err = s.releaseAdopted(ctx, tx, f, actor); err != nil || done || no == "" {
				break
			}
			err = refusal.New(refusal.Conflict, "host_not_assigned", "nothing is left to do; a release that was asked for before is done", "host %s is not assigned to a cluster", host)
		}
		if err != nil {
			return err
		}
		f, d, err := s.settle(ctx, tx, host)
		if err != nil {
			return err
		}
		out = shown(ctx, f, d)
		return withLabels(ctx, tx, out)
	})
	return out, s.refusals.Note(ctx, audit.Change{Actor: actor, Action: "host.release", Object: "host/" + refusal.Clip(host)}, err)
}

func (s *Service) release(ctx context.Context, tx *store.Tx, f *facts, actor string) error {
	id, was := f.host.ID, f.rec
	c, err := tenancy.FindCluster(ctx, tx, was.Cluster)
	if err != nil {
		return err
	}
	if err := tenancy.CheckCluster(ctx, &c); err != nil {
		return err
	}
	before := c
	c.Hosts = slices.DeleteFunc(slices.Clone(c.Hosts), func(h string) bool { return h == id })
	adopted, err := endAdopted(ctx, tx, f)
	if err != nil {
		return err
	}
	f.rec.DropToken(tx)
	f.rec.Unseal(tx)
	if err := attestation.DropEvidence(ctx, tx, f.now, id, &f.rec); err != nil {
		return err
	}
	f.rec = hostrecord.Record{Phase: hostrecord.PhaseOf(was), Since: was.Since, Epoch: was.Epoch, Grants: was.Grants, Denial: was.Denial, DenialProof: was.DenialProof, Conflicts: was.Conflicts, Trace: tracecontext.Of(ctx)}
	return errors.Join(
		tenancy.Clusters().Put(tx, c.Name, c),
		hostrecord.Records().Put(tx, id, f.rec),
		s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "host.release", Object: "host/" + id, Before: []any{was, before}, After: []any{f.rec, c},
			Detail: fmt.Sprintf("from cluster %s of tenant %s, P_Key %v", was.Cluster, was.Tenant, was.PKey) + endedToo(adopted),
		}),
	)
}
