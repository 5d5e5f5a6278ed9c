package tenancy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"portcullis/api/audit"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// A shared cluster is that of a service which several tenants use, such as storage. Its own hosts, the servers, are full
// members of its partition. The hosts of the clusters that use it are limited members: they reach the servers and not each
// other. No other tenant's host becomes a full member there, whichever caller asks.

// Use has the hosts of a cluster use a shared cluster.
func (s *Service) Use(ctx context.Context, actor, cluster, shared string, u v1.ClusterUse) (*v1.Cluster, error) {
	what := audit.Change{Actor: actor, Action: "cluster.use", Object: "cluster/" + refusal.Clip(cluster)}
	if u.Membership == v1.MembershipFull {
		return nil, s.o.Refusals.Note(ctx, what, refusal.New(refusal.Refused, codeFullRefused, "leave the membership out",
			"cluster %s asks for full membership of %s: who uses a shared cluster is a limited member, or tenants could reach each other there", refusal.Clip(cluster), refusal.Clip(shared)))
	}
	return s.changeUse(ctx, what, cluster, shared, func(tx *store.Tx, c, with *Cluster) error {
		switch {
		case !with.Shared:
			return refusal.New(refusal.Conflict, "cluster_not_shared", "only a cluster that was created as a shared one is used by others", "cluster %s is not shared", with.Name)
		case c.Shared:
			return refusal.New(refusal.Conflict, "cluster_shared", "have the clusters of tenants use it", "cluster %s is shared itself", c.Name)
		case slices.Contains(c.Uses, with.Name):
			return nil
		}
		if err := outsiders.Check(ctx, tx, outsiders.Asked{Key: with.PKey.Limited(), Subject: "cluster " + c.Name, Vague: Scoped(ctx)}); err != nil {
			return err
		}
		c.Uses, with.Users = insert(c.Uses, with.Name), insert(with.Users, c.Name)
		if u.Set != "" {
			c.UseSets = maps.Clone(c.UseSets)
			if c.UseSets == nil {
				c.UseSets = map[string]string{}
			}
			c.UseSets[with.Name] = u.Set
		}
		return s.o.Room(ctx, tx, c, with)
	})
}

// StopUse ends it.
func (s *Service) StopUse(ctx context.Context, actor, cluster, shared string) (*v1.Cluster, error) {
	what := audit.Change{Actor: actor, Action: "cluster.stop_use", Object: "cluster/" + refusal.Clip(cluster)}
	return s.changeUse(ctx, what, cluster, shared, func(_ *store.Tx, c, with *Cluster) error {
		if !slices.Contains(c.Uses, with.Name) {
			return refusal.New(refusal.NotFound, "cluster_not_used", "", "cluster %s does not use %s", c.Name, with.Name)
		}
		c.Uses, with.Users = without(c.Uses, with.Name), without(with.Users, c.Name)
		c.UseSets = maps.Clone(c.UseSets)
		delete(c.UseSets, with.Name)
		return nil
	})
}

// changeUse changes what two clusters have to do with each other.
func (s *Service) changeUse(ctx context.Context, what audit.Change, cluster, shared string, do func(*store.Tx, *Cluster, *Cluster) error) (*v1.Cluster, error) {
	var c Cluster
	err := s.update(ctx, func(tx *store.Tx) (err error) {
		if c, err = FindCluster(ctx, tx, cluster); err != nil {
			return err
		}
		with, err := FindCluster(ctx, tx, shared)
		if err != nil {
			return err
		}
		if err := errors.Join(CheckCluster(ctx, &c), CheckCluster(ctx, &with), c.same(ctx)); err != nil {
			return err
		}
		before := []Cluster{c, with}
		if err := do(tx, &c, &with); err != nil {
			return err
		}
		what.Before, what.After = before, []Cluster{c, with}
		what.Detail = fmt.Sprintf("shared cluster %s, P_Key %v", with.Name, with.PKey)
		return errors.Join(
			Clusters().Put(tx, c.Name, c),
			Clusters().Put(tx, with.Name, with),
			s.log(ctx, tx, &what),
		)
	})
	if err != nil {
		return nil, s.o.Refusals.Note(ctx, what, err)
	}
	return clusterView(c), nil
}

// stopUses ends all that a cluster which is deleted uses.
func (s *Service) stopUses(ctx context.Context, tx *store.Tx, c *Cluster) error {
	for _, name := range c.Uses {
		with, err := FindCluster(ctx, tx, name)
		if err != nil {
			return err
		}
		with.Users = without(with.Users, c.Name)
		if err := Clusters().Put(tx, name, with); err != nil {
			return err
		}
	}
	return nil
}

func insert(list []string, name string) []string {
	i, there := slices.BinarySearch(list, name)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), i, name)
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == name })
}
