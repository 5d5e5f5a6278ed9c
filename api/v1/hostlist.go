package v1

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// HostQuery says which hosts are asked for. Empty fields ask for all. Each further field leaves out more.
type HostQuery struct {
	Tenant  string `query:"tenant" maxLength:"63" doc:"hosts that are assigned to clusters of this tenant only"`
	Cluster string `query:"cluster" maxLength:"127" doc:"hosts that are assigned to this cluster only"`
	Phase   Phase  `query:"phase" enum:"quarantined,awaiting,verified,granting,admitted,releasing" doc:"hosts in this phase only"`
	Rack    string `query:"rack" maxLength:"128" doc:"hosts of this rack only, as inventory has it"`
	Prefix  string `query:"prefix" maxLength:"128" doc:"hosts whose ids begin with this only"`
	SelectorQuery
	PageQuery
}

// Views of a host in a list.
const (
	ViewFull    = "full"
	ViewSummary = "summary"
	ViewID      = "id"
)

// HostSummary is a host in one line: without its adapters, and with the first guard that it misses
// instead of all.
type HostSummary struct {
	ID      string            `json:"id"`
	Tenant  string            `json:"tenant,omitempty"`
	Cluster string            `json:"cluster,omitempty"` // wanted cluster, empty when unassigned
	Epoch   int64             `json:"epoch" doc:"number of the last assignment, 0: never assigned"`
	Phase   Phase             `json:"phase"`
	Since   time.Time         `json:"since,omitzero" doc:"of the phase; absent: the host was never assigned"`
	PKey    ib.PKey           `json:"p_key,omitzero" doc:"granted partition"`
	Rack    string            `json:"rack,omitempty" doc:"as inventory has it"`
	Labels  map[string]string `json:"labels,omitempty" doc:"values by key; not shown to tenants"`
	Why     string            `json:"why,omitempty" doc:"the first condition of admission that an assigned host misses, and what to do; or that another host claims a GUID of it"`
}

// HostID is the id of a host and nothing else.
type HostID struct {
	ID string `json:"id"`
}

// Summary returns the host in one line.
func (h *Host) Summary() HostSummary {
	return HostSummary{
		ID: h.ID, Tenant: h.Tenant, Cluster: h.Cluster, Epoch: h.Epoch, Phase: h.Status.Phase, Since: h.Status.Since,
		PKey: h.Status.PKey, Rack: h.Rack, Labels: h.Labels, Why: h.WhyNot(),
	}
}

// WhyNot is the first condition of admission that an assigned host misses; one that is admitted misses
// it at some of its ports. That another host claims a GUID of it is reported in any case.
func (h *Host) WhyNot() string {
	if c := h.Status.Conflicts; len(c) > 0 && (h.Cluster == "" || h.Status.Phase == PhaseAdmitted) {
		return fmt.Sprintf("held: GUID %v is claimed by host %s too", c[0].GUID, c[0].With)
	}
	if h.Cluster == "" {
		return ""
	}
	for _, g := range h.Status.Guards {
		if !g.Met {
			return g.Text()
		}
	}
	return ""
}

// Text is the guard in one line.
func (g Guard) Text() string {
	if g.Detail == "" {
		return g.Name
	}
	return g.Name + ": " + g.Detail
}

// ClusterQuery says which clusters are asked for. Empty fields ask for all.
type ClusterQuery struct {
	Tenant string `query:"tenant" maxLength:"63" doc:"clusters of this tenant only"`
	SelectorQuery
	PageQuery
}
