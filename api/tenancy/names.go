package tenancy

import (
	"context"
	"slices"
	"strings"

	"portcullis/api/clustername"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// A cluster has a common name, which an operator or a scheduler made, or TENANT.NAME, its tenant's own. The record has the full name.
// A credential that is confined to one tenant may leave the tenant out. A tenant has no two clusters of which it would then mean
// either, so that each name which the service shows is also one to ask for.

// ValidCluster refuses a text that is no name of a cluster.
func ValidCluster(s string) error {
	_, err := parseCluster(s)
	return err
}

func parseCluster(s string) (clustername.Name, error) {
	n, err := clustername.Parse(s)
	if err != nil {
		return n, refusal.New(refusal.Invalid, codeName, "use "+clustername.Form, "cluster name %q", refusal.Clip(s))
	}
	return n, nil
}

// Cluster returns the full name of the cluster that the credential means by a text. A cluster of another tenant is refused just as
// one that does not exist. To nil each text is a full name; whether there is such a cluster, it does not say.
func (o *Owned) Cluster(text string) (string, error) {
	if o == nil {
		return text, nil
	}
	if err := ValidCluster(text); err != nil {
		return "", err
	}
	if full := o.meant(text); o.clusters[full] != "" {
		return full, nil
	}
	return "", noCluster(text)
}

// meant returns the full name of a cluster that is there or that is to be.
func (o *Owned) meant(text string) string {
	if o.clusters[text] != "" || len(o.tenants) != 1 || strings.Contains(text, ".") {
		return text
	}
	return clustername.Name{Tenant: o.tenants[0], Own: text}.String()
}

// Wanted returns a copy of what is wanted, with the full names of clusters.
func (o *Owned) Wanted(w *v1.Wanted) *v1.Wanted {
	if o == nil {
		return w
	}
	out := *w
	out.Clusters, out.Assignments = slices.Clone(w.Clusters), slices.Clone(w.Assignments)
	for i := range out.Clusters {
		c := &out.Clusters[i]
		if c.Uses = slices.Clone(c.Uses); slices.Contains(o.tenants, c.Tenant) {
			c.Name = o.meant(c.Name)
		}
		for j := range c.Uses {
			c.Uses[j] = o.meant(c.Uses[j])
		}
	}
	for i := range out.Assignments {
		out.Assignments[i].Cluster = o.meant(out.Assignments[i].Cluster)
	}
	return &out
}

// fullNew returns the cluster that is to be created with its tenant and its full name. It reads nothing, so it says nothing of what
// there is. A credential that is confined to tenants makes clusters with names of their own, without what is for operators.
func fullNew(ctx context.Context, n *v1.NewCluster) (v1.NewCluster, error) {
	out := *n
	name, err := parseCluster(n.Name)
	if err != nil {
		return out, err
	}
	s := scopeOf(ctx)
	switch {
	case out.Tenant != "":
	case name.Tenant != "":
		out.Tenant = name.Tenant
	case s.confined() && len(s.Tenants) == 1:
		out.Tenant = s.Tenants[0]
	default:
		return out, refusal.New(refusal.Invalid, "tenant_missing", "name the tenant, or name the cluster TENANT.NAME", "cluster %s has no tenant", n.Name)
	}
	if err := ValidName("tenant", out.Tenant); err != nil {
		return out, err
	}
	switch {
	case name.Tenant != "" && name.Tenant != out.Tenant:
		return out, refusal.New(refusal.Invalid, codeNamesTenant, "name it "+name.Of(out.Tenant).String(),
			"the name %s is for a cluster of tenant %s, and the cluster is to be of tenant %s", name, name.Tenant, out.Tenant)
	case !s.confined():
		return out, nil
	case !slices.Contains(s.Tenants, out.Tenant):
		return out, noTenant(out.Tenant)
	case name.Tenant == "" && len(s.Tenants) > 1:
		return out, refusal.New(refusal.Invalid, "cluster_name_short", "name it "+name.Of(out.Tenant).String(),
			"the credential is of %d tenants, and the cluster name %s says of none", len(s.Tenants), name)
	case out.Shared:
		return out, refusal.New(refusal.Refused, codeOperators, "leave shared out, or have an operator create the cluster",
			"a shared cluster is used by other tenants: a credential with the role tenant creates none")
	case len(out.Labels) > 0:
		return out, refusal.New(refusal.Refused, codeOperators, "leave labels out, or have an operator set them",
			"operators choose by labels what they change: a credential with the role tenant sets none")
	case out.Set != "":
		return out, refusal.New(refusal.Refused, codeOperators, "leave the set out",
			"operators prune what has the name of a set: a credential with the role tenant creates nothing for one")
	}
	out.Name = name.Of(out.Tenant).String()
	return out, nil
}

// unambiguous refuses a name that a credential of the tenant alone would not distinguish from another one of the tenant.
func unambiguous(t *Tenant, full string) error {
	name, err := parseCluster(full)
	if err != nil {
		return err
	}
	if twin := name.Twin(t.Name).String(); slices.Contains(t.Clusters, twin) {
		return refusal.New(refusal.Conflict, codeExists, "use the one that exists, or another name",
			"tenant %s has cluster %s, and its credentials would call both %s", t.Name, twin, name.Own)
	}
	return nil
}

// mayDelete refuses a credential of tenants a cluster that it could not have created. The clusters that use it are not named.
func mayDelete(ctx context.Context, c *Cluster) error {
	if !Confined(ctx) {
		return nil
	}
	if c.Shared {
		return refusal.New(refusal.Refused, codeOperators, "have an operator delete it",
			"cluster %s is shared, and other tenants may use it: a credential with the role tenant deletes none", c.Name)
	}
	if n, err := parseCluster(c.Name); err != nil || n.Tenant == "" {
		return refusal.New(refusal.Refused, codeOperators, "have an operator or a scheduler delete it",
			"the name of cluster %s is common to all tenants: a credential with the role tenant deletes those that are called TENANT.NAME", c.Name)
	}
	return nil
}
