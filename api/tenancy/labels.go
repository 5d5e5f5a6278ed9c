package tenancy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/ifmatch"
	"portcullis/api/label"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Labels are for finding objects: they grant nothing, and no guard reads them. A credential with the role tenant sees those of its
// tenants and clusters, and changes none: operators choose by labels what they change.

// ParseSelector reads the selector of a list.
func ParseSelector(text string) (label.Selector, error) {
	s, err := label.Parse(text)
	if err != nil {
		return s, refusal.New(refusal.Invalid, "selector_invalid", "for example env=prod,tier in (a,b),!gpu", "%v", err)
	}
	return s, nil
}

func checkLabels(s label.Set) error {
	if err := s.Check(); err != nil {
		return labelsInvalid(err)
	}
	return nil
}

func labelsInvalid(err error) *refusal.Error {
	return refusal.New(refusal.Invalid, "labels_invalid", "labels are written as those of Kubernetes: [PREFIX/]NAME=VALUE", "%v", err)
}

// LabelChange is a patch of the labels of an object.
type LabelChange struct {
	Kind, Name string // host, cluster or tenant, and its name
	Identity   string // names this object, and no later one of its name; "": such a one is as good
	Before     label.Set
	After      label.Set // of Apply
}

// Version names labels of the object for If-Match.
func (c *LabelChange) Version(s label.Set) string {
	if c.Identity == "" {
		return s.Digest()
	}
	return c.Identity + "-" + s.Digest()
}

// Apply computes After. It refuses labels of another version than the request names, and a patch that is malformed or passes a bound.
func (c *LabelChange) Apply(ctx context.Context, p label.Patch) (err error) {
	if err := ifmatch.Check(ctx, "labels of "+c.Kind, c.Name, c.Version(c.Before), "they were changed since, or the object was made again"); err != nil {
		return err
	}
	if c.After, err = p.Apply(c.Before); err != nil {
		return labelsInvalid(err)
	}
	return nil
}

// Changes reports whether the patch makes a difference.
func (c *LabelChange) Changes() bool { return !maps.Equal(c.Before, c.After) }

// Audit completes an entry of the audit log.
func (c *LabelChange) Audit(what *audit.Change) {
	var says []string
	for _, key := range slices.Sorted(maps.Keys(c.After)) {
		if was, had := c.Before[key]; !had || was != c.After[key] {
			says = append(says, key+"="+c.After[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Before)) {
		if _, has := c.After[key]; !has {
			says = append(says, key+" removed")
		}
	}
	what.Before, what.After, what.Detail = c.Before, c.After, refusal.ClipTo(strings.Join(says, ", "), maxDetail)
}

// View shows labels of the object.
func (c *LabelChange) View(s label.Set) *v1.Labels {
	out := &v1.Labels{Labels: maps.Clone(s), Version: c.Version(s)}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	return out
}

// ClusterLabels are the labels of clusters.
type ClusterLabels struct{ s *Service }

// ClusterLabels returns what there is to do with the labels of clusters.
func (s *Service) ClusterLabels() ClusterLabels { return ClusterLabels{s} }

func (c *Cluster) labels() LabelChange {
	return LabelChange{Kind: "cluster", Name: c.Name, Identity: c.version(), Before: c.Labels}
}

// Labels returns the labels of a cluster.
func (l ClusterLabels) Labels(ctx context.Context, cluster string) (*v1.Labels, error) {
	snap, err := l.s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	own, err := OwnedBy(ctx, snap)
	if err != nil {
		return nil, err
	}
	if cluster, err = own.Cluster(cluster); err != nil {
		return nil, err
	}
	c, err := FindCluster(ctx, snap, cluster)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	is := c.labels()
	return is.View(c.Labels), nil
}

// PatchLabels changes the labels of a cluster.
func (l ClusterLabels) PatchLabels(ctx context.Context, actor, cluster string, p label.Patch) (out *v1.Labels, err error) {
	what := audit.Change{Actor: actor, Action: "cluster.label", Object: "cluster/" + refusal.Clip(cluster)}
	err = l.s.update(ctx, func(tx *store.Tx) error {
		c, err := FindCluster(ctx, tx, cluster)
		if err != nil {
			return err
		}
		if err := CheckCluster(ctx, &c); err != nil {
			return err
		}
		change := c.labels()
		if err := change.Apply(ctx, p); err != nil {
			return err
		}
		out = change.View(change.After)
		if !change.Changes() {
			return nil
		}
		c.Labels = change.After
		change.Audit(&what)
		return errors.Join(Clusters().Put(tx, c.Name, c), l.s.log(ctx, tx, &what))
	})
	return out, l.s.o.Refusals.Note(ctx, what, err)
}

// TenantLabels are the labels of tenants.
type TenantLabels struct{ s *Service }

// TenantLabels returns what there is to do with the labels of tenants.
func (s *Service) TenantLabels() TenantLabels { return TenantLabels{s} }

// labels are those of this tenant, whatever its quota is.
func (t *Tenant) labels() LabelChange {
	return LabelChange{Kind: "tenant", Name: t.Name, Identity: madeAt(t.Created), Before: t.Labels}
}

func madeAt(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 36) }

// TenantLabelsVersion names the labels of a tenant that is shown.
func TenantLabelsVersion(t *v1.Tenant) string {
	c := LabelChange{Identity: madeAt(t.Created)}
	return c.Version(t.Labels)
}

// ClusterLabelsVersion names the labels of a cluster that is shown.
func ClusterLabelsVersion(c *v1.Cluster) string {
	change := LabelChange{Identity: c.Version}
	return change.Version(c.Labels)
}

// Labels returns the labels of a tenant.
func (l TenantLabels) Labels(ctx context.Context, tenant string) (*v1.Labels, error) {
	t, err := FindTenant(ctx, l.s.o.Store, tenant)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	is := t.labels()
	return is.View(t.Labels), nil
}

// PatchLabels changes the labels of a tenant.
func (l TenantLabels) PatchLabels(ctx context.Context, actor, tenant string, p label.Patch) (out *v1.Labels, err error) {
	what := audit.Change{Actor: actor, Action: "tenant.label", Object: "tenant/" + refusal.Clip(tenant)}
	err = l.s.update(ctx, func(tx *store.Tx) error {
		t, err := FindTenant(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if err := tenantInScope(ctx, tx, &t); err != nil {
			return err
		}
		change := t.labels()
		if err := change.Apply(ctx, p); err != nil {
			return err
		}
		out = change.View(change.After)
		if !change.Changes() {
			return nil
		}
		t.Labels = change.After
		change.Audit(&what)
		return errors.Join(Tenants().Put(tx, t.Name, t), l.s.log(ctx, tx, &what))
	})
	return out, l.s.o.Refusals.Note(ctx, what, err)
}
