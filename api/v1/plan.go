package v1

import "portcullis/fabricsm/ib"

// Wanted is what a caller wants there to be. What it does not name stays as it is, unless Prune says otherwise.
type Wanted struct {
	Set      string `json:"set,omitempty" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" doc:"name of a set: what is created for it has this name, and only that is moved or pruned for it"`
	Prune    bool   `json:"prune,omitempty" doc:"also remove what was created for the set and is not named here; needs set"`
	Selector string `json:"selector,omitempty" maxLength:"1024" doc:"with prune: remove only tenants and clusters whose labels meet it, and what is in those clusters"`
	TakeOver bool   `json:"take_over,omitempty" doc:"also move hosts that were not assigned for the set"`

	Tenants     []WantedTenant     `json:"tenants,omitempty" maxItems:"10000"`
	Clusters    []WantedCluster    `json:"clusters,omitempty" maxItems:"32766"`
	Assignments []WantedAssignment `json:"assignments,omitempty" maxItems:"32766"`
}

// WantedTenant is a tenant that is to be there.
type WantedTenant struct {
	Name  string       `json:"name" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"`
	PKeys []string     `json:"p_keys,omitempty" maxItems:"16" doc:"ranges, as 0x0100-0x01ff; none: as it is, or those of the credential when it is created"`
	Quota *WantedQuota `json:"quota,omitempty" doc:"absent: the quota stays as it is"`

	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"that it is to have; others stay"`
}

// Unlimited is the bound of a WantedQuota that is none.
const Unlimited = -1

// WantedQuota is what the quota of a tenant is to be. What is left out stays as it is.
type WantedQuota struct {
	Hosts    *int `json:"hosts,omitempty" minimum:"-1" maximum:"1000000" doc:"-1: no bound"`
	Clusters *int `json:"clusters,omitempty" minimum:"-1" maximum:"1000000" doc:"-1: no bound"`
	PKeys    *int `json:"p_keys,omitempty" minimum:"-1" maximum:"1000000" doc:"-1: no bound"`
}

// WantedCluster is a cluster that is to be there.
type WantedCluster struct {
	Name   string   `json:"name" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"`
	Tenant string   `json:"tenant" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"`
	Shared bool     `json:"shared,omitempty" doc:"other clusters may use it"`
	Uses   []string `json:"uses,omitempty" maxItems:"128" doc:"shared clusters that it uses"`
	PKey   *ib.PKey `json:"p_key,omitempty" doc:"the P_Key that it has, or is to have; none: any"`

	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"that it is to have; others stay"`
}

// WantedAssignment names hosts that are to be in a cluster.
type WantedAssignment struct {
	Cluster string   `json:"cluster" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"`
	Hosts   []string `json:"hosts" minItems:"1" maxItems:"40000" nullable:"false" doc:"ids of hosts"`
	Window  int      `json:"window_seconds,omitempty" minimum:"60" maximum:"86400" doc:"how long a host that is assigned now may provision; 3600 when absent"`

	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"that each of the hosts is to have; others stay"`
}

// Plan is how what is there differs from what is wanted, and what changes that, in a safe order. To make a plan changes nothing.
type Plan struct {
	Changes   []PlannedChange `json:"changes" nullable:"false" doc:"in the order in which they are safe: what takes away comes first"`
	Conflicts []PlanNote      `json:"conflicts" nullable:"false" doc:"what is wanted and cannot be had; a plan with conflicts has no changes"`
	Kept      []PlanNote      `json:"kept,omitempty" doc:"what was created for the set, is not wanted and is not removed, and why"`
	Removals  int             `json:"removals" doc:"how many of the changes take something away"`
}

// PlanNote is a sentence about an object.
type PlanNote struct {
	Object string `json:"object" doc:"tenant/NAME, cluster/NAME or host/ID"`
	Detail string `json:"detail"`
}

// Verbs of a PlannedChange.
const (
	PlanStopUse       = "stop-use"
	PlanRelease       = "release"
	PlanDeleteCluster = "delete-cluster"
	PlanDeleteTenant  = "delete-tenant"
	PlanCreateTenant  = "create-tenant"
	PlanSetQuota      = "set-quota"
	PlanCreateCluster = "create-cluster"
	PlanUse           = "use"
	PlanAssign        = "assign"
	PlanLabel         = "label"
)

// PlannedChange is one request to the service, which the caller sends.
type PlannedChange struct {
	Verb    string `json:"verb" enum:"stop-use,release,delete-cluster,delete-tenant,create-tenant,set-quota,create-cluster,use,assign,label"`
	Object  string `json:"object" doc:"tenant/NAME, cluster/NAME or host/ID"`
	Name    string `json:"name" doc:"of the tenant, cluster or host"`
	Detail  string `json:"detail" doc:"what the change does, in a sentence"`
	Version string `json:"version,omitempty" doc:"for If-Match; absent: an earlier change creates the object"`
	Removes bool   `json:"removes,omitempty" doc:"it takes something away"`
	Waits   bool   `json:"waits,omitempty" doc:"the host leaves another cluster: it is assigned when that is proven"`

	Keys  []string `json:"keys" nullable:"false" doc:"names of what this change completes"`
	After []string `json:"after,omitempty" doc:"keys of earlier changes: when one of them failed, this one is not made"`

	Shared     string            `json:"shared,omitempty" doc:"of a use: the shared cluster"`
	Tenant     *NewTenant        `json:"tenant,omitempty" doc:"body of create-tenant"`
	Quota      *TenantQuota      `json:"quota,omitempty" doc:"body of set-quota"`
	Cluster    *NewCluster       `json:"cluster,omitempty" doc:"body of create-cluster"`
	Use        *ClusterUse       `json:"use,omitempty" doc:"body of use"`
	Assignment *Assignment       `json:"assignment,omitempty" doc:"body of assign"`
	Labels     map[string]string `json:"labels,omitempty" doc:"of a label: those that are set; version is that of the labels then"`
}
