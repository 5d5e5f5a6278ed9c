package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"portcullis/api/clustername"
	"portcullis/api/ifmatch"
	"portcullis/api/label"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Tenant is a customer.
type Tenant struct {
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Clusters []string  `json:"clusters"` // sorted
	// PKeys are ranges, as "0x0100-0x01ff", that its clusters get P_Keys out of; none: any. A credential whose scope
	// has all of them may change the tenant.
	PKeys []string `json:"p_keys,omitempty"`

	Quota   *v1.TenantQuota `json:"quota,omitempty"`   // nil: no bounds
	Changes int64           `json:"changes,omitempty"` // how many times the quota was changed

	Set    string    `json:"set,omitempty"` // that it was created for; "": none
	Labels label.Set `json:"labels,omitempty"`
}

// Cluster is a set of hosts with a P_Key of its own.
type Cluster struct {
	Name    string    `json:"name"` // in full
	Tenant  string    `json:"tenant"`
	PKey    ib.PKey   `json:"p_key"`
	Hosts   []string  `json:"hosts"` // assigned, sorted
	Created time.Time `json:"created"`

	Shared bool     `json:"shared,omitempty"` // the hosts of other clusters may be limited members
	Uses   []string `json:"uses,omitempty"`   // shared clusters that its hosts are limited members of, sorted
	Users  []string `json:"users,omitempty"`  // of a shared one: clusters that use it, sorted

	Set     string            `json:"set,omitempty"`      // that it was created for; "": none
	UseSets map[string]string `json:"use_sets,omitempty"` // of uses that began for a set: the set, by the shared cluster
	Labels  label.Set         `json:"labels,omitempty"`
}

// PKeyState says whether a P_Key may be given out.
type PKeyState string

// States of a P_Key. One without a record was never given out.
const (
	PKeyUsed        PKeyState = "used"        // belongs to a cluster
	PKeyQuarantined PKeyState = "quarantined" // its cluster is gone, its absence not proven
	PKeyAbsent      PKeyState = "absent"      // proven absent everywhere at Since
	PKeyAdopted     PKeyState = "adopted"     // of no cluster, and ports have it that were adopted
)

// PKeyRecord is the history of one P_Key.
type PKeyRecord struct {
	State   PKeyState `json:"state"`
	Cluster string    `json:"cluster"` // present or last owner
	Since   time.Time `json:"since"`
	// Tenant is that of Cluster. Records that earlier releases wrote have none.
	Tenant string `json:"tenant,omitempty"`
}

// Tenants holds tenants by name.
func Tenants() store.Collection[Tenant] { return store.NewCollection[Tenant]("tenants", 1) }

// Clusters holds clusters by full name.
func Clusters() store.Collection[Cluster] { return store.NewCollection[Cluster]("clusters", 1) }

// PKeys holds P_Keys that were ever given out, by "0x" and four digits.
func PKeys() store.Collection[PKeyRecord] { return store.NewCollection[PKeyRecord]("pkeys", 1) }

// ValidName refuses a name of the wrong form; kind is for the error.
func ValidName(kind, s string) error {
	if clustername.IsLabel(s) {
		return nil
	}
	return refusal.New(refusal.Invalid, codeName, "use "+clustername.LabelForm, "%s name %q", kind, refusal.Clip(s))
}

// FindTenant reads the tenant with a name. A credential that is confined to tenants has no others.
func FindTenant(ctx context.Context, r store.Reader, tenant string) (Tenant, error) {
	if err := ValidName("tenant", tenant); err != nil {
		return Tenant{}, err
	}
	if s := scopeOf(ctx); s.confined() && !slices.Contains(s.Tenants, tenant) {
		return Tenant{}, noTenant(tenant)
	}
	rec, err := Tenants().Get(ctx, r, tenant)
	if errors.Is(err, store.ErrNotFound) {
		return Tenant{}, noTenant(tenant)
	}
	return rec.Value, err
}

func noTenant(name string) *refusal.Error {
	return refusal.New(refusal.NotFound, codeNoTenant, "create it first", "no tenant %q", name)
}

// FindCluster reads the cluster with a full name, whatever the credential: a caller that names one is held to its own by Owned.
func FindCluster(ctx context.Context, r store.Reader, cluster string) (Cluster, error) {
	if err := ValidCluster(cluster); err != nil {
		return Cluster{}, err
	}
	rec, err := Clusters().Get(ctx, r, cluster)
	if errors.Is(err, store.ErrNotFound) {
		return Cluster{}, noCluster(cluster)
	}
	return rec.Value, err
}

func noCluster(name string) *refusal.Error {
	return refusal.New(refusal.NotFound, codeNoCluster, "list clusters to see their names, or create it first", "no cluster %q", name)
}

// UsesOf returns the P_Keys of the shared clusters that a cluster uses.
func UsesOf(c *Cluster, lookUp func(name string) (Cluster, error)) ([]ib.PKey, error) {
	var out []ib.PKey
	for _, name := range c.Uses {
		with, err := lookUp(name)
		if err != nil {
			return nil, fmt.Errorf("cluster %s, which %s uses: %w", name, c.Name, err)
		}
		out = append(out, with.PKey.Base())
	}
	return out, nil
}

// version names this cluster, and no later one that has the same name.
func (c *Cluster) version() string { return strconv.FormatInt(c.Created.UnixNano(), 36) }

// version names this tenant with its quota, and no later one that has the same name.
func (t *Tenant) version() string {
	v := strconv.FormatInt(t.Created.UnixNano(), 36)
	if t.Changes > 0 {
		v += "." + strconv.FormatInt(t.Changes, 10)
	}
	return v
}

func (c *Cluster) same(ctx context.Context) error {
	return ifmatch.Check(ctx, "cluster", c.Name, c.version(), "it was made again since, and has P_Key "+c.PKey.String())
}

func (t *Tenant) same(ctx context.Context) error {
	return ifmatch.Check(ctx, "tenant", t.Name, t.version(), "it was made again since, or its quota was changed")
}
