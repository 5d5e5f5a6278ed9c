package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Tenant is a customer. Names are lower-case DNS labels, 1 to 63 characters.
type Tenant struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Version string    `json:"version" doc:"for If-Match: names this tenant with its quota, and no later one of the same name"`
	PKeys   []string  `json:"p_keys,omitempty" doc:"ranges that its clusters get P_Keys out of; a credential that has them all may change the tenant"`

	Set    string            `json:"set,omitempty" doc:"set that it was created for, by portcullis apply; absent: none"`
	Labels map[string]string `json:"labels,omitempty" doc:"values by key; they grant nothing"`

	Quota    *TenantQuota `json:"quota,omitempty" doc:"the most that it may have; absent: no bounds"`
	Use      TenantUse    `json:"use" doc:"what it has"`
	Exceeded []string     `json:"exceeded,omitempty" enum:"hosts,clusters,p_keys" doc:"what it has more of than its quota says: nothing is taken away, and more is refused"`
}

// TenantQuota is the most that a tenant may have. What is left out has no bound, and 0 means none.
type TenantQuota struct {
	Hosts    *int `json:"hosts,omitempty" minimum:"0" maximum:"1000000" doc:"hosts in its clusters, and released ones until the release is proven"`
	Clusters *int `json:"clusters,omitempty" minimum:"0" maximum:"1000000" doc:"clusters, shared ones included"`
	PKeys    *int `json:"p_keys,omitempty" minimum:"0" maximum:"1000000" doc:"P_Keys of its clusters, and of deleted clusters until proven absent everywhere"`
}

// TenantUse is what a tenant has of that which a quota bounds.
type TenantUse struct {
	Hosts     int `json:"hosts" doc:"hosts in its clusters, and those of releasing"`
	Releasing int `json:"releasing" doc:"of hosts, those that were released and whose P_Keys are not proven absent from their switch ports"`
	Clusters  int `json:"clusters" doc:"clusters, shared ones included"`
	PKeys     int `json:"p_keys" doc:"P_Keys of its clusters, and of deleted clusters until proven absent everywhere"`
}

// Cluster is a set of hosts of one tenant that share one partition.
type Cluster struct {
	Name    string    `json:"name" doc:"in full: NAME, which is common to all tenants, or TENANT.NAME, the tenant's own"`
	Tenant  string    `json:"tenant"`
	PKey    ib.PKey   `json:"p_key"` // allocated by the service alone
	Hosts   []string  `json:"hosts"` // assigned hosts, sorted
	Created time.Time `json:"created"`
	Version string    `json:"version" doc:"for If-Match: names this cluster, and no later one of the same name"`

	Shared bool     `json:"shared,omitempty" doc:"a service that several tenants use: hosts of the clusters that use it are limited members"`
	Uses   []string `json:"uses,omitempty" doc:"shared clusters that its hosts are limited members of"`
	Users  []string `json:"users,omitempty" doc:"of a shared cluster: those that use it"`

	Labels  map[string]string `json:"labels,omitempty" doc:"values by key; they grant nothing"`
	Set     string            `json:"set,omitempty" doc:"set that it was created for, by portcullis apply; absent: none"`
	UseSets map[string]string `json:"use_sets,omitempty" doc:"of uses that began for a set: the set, by the shared cluster"`
}

// ClusterUse is how a cluster uses a shared one.
type ClusterUse struct {
	Membership string `json:"membership,omitempty" enum:"limited,full" doc:"limited, the default; full is refused, for tenants could reach each other then"`
	Set        string `json:"set,omitempty" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" doc:"set that the use begins for; one that is there keeps its own"`
}

// Memberships of a partition.
const (
	MembershipLimited = "limited"
	MembershipFull    = "full"
)

// NewTenant names a tenant to be created.
type NewTenant struct {
	Name string `json:"name" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"`

	PKeys []string `json:"p_keys,omitempty" maxItems:"16" doc:"ranges, as 0x0100-0x01ff, that its clusters get P_Keys out of; none: those of the credential, if it has any"`

	Set    string            `json:"set,omitempty" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" doc:"set that it is created for"`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"values by key, as labels of Kubernetes are written"`
}

// NewCluster names a cluster and its tenant. A credential of the role tenant leaves Shared, Set and Labels out.
type NewCluster struct {
	Name   string `json:"name" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$" doc:"TENANT.NAME, the tenant's own, or NAME, common to all tenants; to a credential of one tenant, NAME is short for TENANT.NAME"`
	Tenant string `json:"tenant,omitempty" maxLength:"63" doc:"absent: that of the name, or the one tenant of the credential"`

	Shared bool `json:"shared,omitempty" doc:"other clusters may use it, with their hosts as limited members"`

	// PKey is for credentials with a range of P_Keys, and has to be in it. Of a credential of the role tenant, the ranges are those
	// of the tenant.
	PKey *ib.PKey `json:"p_key,omitempty" doc:"take this P_Key, which has to be one of the credential's, or for the role tenant of the tenant's; none: the service chooses"`

	Set    string            `json:"set,omitempty" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" doc:"set that it is created for"`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"values by key, as labels of Kubernetes are written"`
}

// QuarantinedPKey is a P_Key that must not be given out yet: its cluster is
// gone and it has not been proven absent everywhere.
type QuarantinedPKey struct {
	PKey    ib.PKey   `json:"p_key"`
	Since   time.Time `json:"since"`
	Waiting []string  `json:"waiting"` // what is not proven, one sentence each
}
