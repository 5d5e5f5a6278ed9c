package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	v1 "portcullis/api/v1"
)

// Hosts lists all hosts, sorted by id.
func (c *Client) Hosts(ctx context.Context) ([]v1.Host, error) {
	return c.HostsOf(ctx, v1.HostQuery{})
}

// HostsOf lists the hosts that q asks for, of all pages; q.Limit is how many a page has.
func (c *Client) HostsOf(ctx context.Context, q v1.HostQuery) ([]v1.Host, error) {
	return all[v1.Host](ctx, c, "/v1/hosts", hostQuery(q, v1.ViewFull))
}

// HostSummaries is HostsOf with each host in one line.
func (c *Client) HostSummaries(ctx context.Context, q v1.HostQuery) ([]v1.HostSummary, error) {
	return all[v1.HostSummary](ctx, c, "/v1/hosts", hostQuery(q, v1.ViewSummary))
}

// HostIDs is HostsOf with ids alone.
func (c *Client) HostIDs(ctx context.Context, q v1.HostQuery) ([]v1.HostID, error) {
	return all[v1.HostID](ctx, c, "/v1/hosts", hostQuery(q, v1.ViewID))
}

// HostIDPage lists the ids of one page, for callers that need only a few.
func (c *Client) HostIDPage(ctx context.Context, q v1.HostQuery) ([]string, error) {
	var page v1.List[v1.HostID]
	err := c.get(ctx, "/v1/hosts"+hostQuery(q, v1.ViewID).String(), &page)
	ids := make([]string, len(page.Items))
	for i, h := range page.Items {
		ids[i] = h.ID
	}
	return ids, err
}

func hostQuery(q v1.HostQuery, view string) query {
	v := query{}
	if view != v1.ViewFull {
		v.set("view", view)
	}
	v.set("tenant", q.Tenant)
	v.set("cluster", q.Cluster)
	v.set("phase", string(q.Phase))
	v.set("rack", q.Rack)
	v.set("prefix", q.Prefix)
	return v.page(q.PageQuery)
}

// Host returns one host.
func (c *Client) Host(ctx context.Context, id string) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.get(ctx, "/v1/hosts/"+url.PathEscape(id), &out))
}

// Assign assigns a host to a cluster and opens its provisioning window.
func (c *Client) Assign(ctx context.Context, id string, a v1.Assignment) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(id)+"/assign", a, &out))
}

// Release withdraws a host's admission. The host is released when its phase
// is quarantined again.
func (c *Client) Release(ctx context.Context, id string) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(id)+"/release", nil, &out))
}

// Fence withdraws a host's admission and marks its switch ports as unhealthy. The socket of
// a subnet manager takes it; the API does not.
func (c *Client) Fence(ctx context.Context, id string, in v1.Fence) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(id)+"/fence", in, &out))
}

// ResolveGUID records which host has the GUIDs that a host and others claim.
func (c *Client) ResolveGUID(ctx context.Context, id string, in v1.GUIDResolved) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(id)+"/guid-resolved", in, &out))
}

// AcknowledgeClear says that a host's TPM was cleared on purpose.
func (c *Client) AcknowledgeClear(ctx context.Context, id string, a v1.TPMCleared) (*v1.Host, error) {
	var out v1.Host
	return answer(&out, c.post(ctx, "/v1/hosts/"+url.PathEscape(id)+"/tpm-cleared", a, &out))
}

// Import hands in inventory and cabling files, all or nothing.
// Rows that need a second person are staged under the ticket.
func (c *Client) Import(ctx context.Context, files []v1.InventoryFile, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	path := "/v1/inventory/import"
	if dryRun {
		path += "?dry_run=true"
	}
	var out v1.ImportReport
	return answer(&out, c.post(ctx, path, v1.InventoryUpload{Files: files, RepairTicket: t}, &out))
}

// RemoveHost takes a host out of inventory.
func (c *Client) RemoveHost(ctx context.Context, id string, in v1.HostRemoval) error {
	return c.call(ctx, c.http, http.MethodDelete, "/v1/hosts/"+url.PathEscape(id), in, nil)
}

// ExportInventory returns all inventory as a file that Import takes.
func (c *Client) ExportInventory(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.send(ctx, c.http, http.MethodGet, "/v1/inventory/export")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	return data, nil
}

// Repairs lists rows of inventory that wait for a second person, by host.
func (c *Client) Repairs(ctx context.Context) ([]v1.Repair, error) {
	return all[v1.Repair](ctx, c, "/v1/inventory/repairs", query{})
}

// Repair returns the row of a host that waits for a second person.
func (c *Client) Repair(ctx context.Context, host string) (*v1.Repair, error) {
	var out v1.Repair
	return answer(&out, c.get(ctx, "/v1/inventory/repairs/"+url.PathEscape(host), &out))
}

// ConfirmRepair puts a row that another operator staged into force.
func (c *Client) ConfirmRepair(ctx context.Context, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	var out v1.Repair
	return answer(&out, c.post(ctx, "/v1/inventory/repairs/"+url.PathEscape(host)+"/confirm", in, &out))
}

// CancelRepair ends a row that waits for a second person.
func (c *Client) CancelRepair(ctx context.Context, host string, in v1.RepairCancel) (*v1.Repair, error) {
	var out v1.Repair
	return answer(&out, c.post(ctx, "/v1/inventory/repairs/"+url.PathEscape(host)+"/cancel", in, &out))
}

// DeniedEKs lists the EKs of TPMs that were replaced, the newest first.
func (c *Client) DeniedEKs(ctx context.Context) ([]v1.DeniedEK, error) {
	return all[v1.DeniedEK](ctx, c, "/v1/inventory/denied", query{})
}

// Tenants lists tenants, sorted by name.
func (c *Client) Tenants(ctx context.Context) ([]v1.Tenant, error) {
	return all[v1.Tenant](ctx, c, "/v1/tenants", query{})
}

// Tenant returns one tenant.
func (c *Client) Tenant(ctx context.Context, name string) (*v1.Tenant, error) {
	var out v1.Tenant
	return answer(&out, c.get(ctx, "/v1/tenants/"+url.PathEscape(name), &out))
}

// CreateTenant makes a tenant.
func (c *Client) CreateTenant(ctx context.Context, t v1.NewTenant) (*v1.Tenant, error) {
	var out v1.Tenant
	return answer(&out, c.post(ctx, "/v1/tenants", t, &out))
}

// DeleteTenant removes a tenant that has no cluster.
func (c *Client) DeleteTenant(ctx context.Context, name string) error {
	return c.delete(ctx, "/v1/tenants/"+url.PathEscape(name))
}

// Clusters lists all clusters, sorted by name.
func (c *Client) Clusters(ctx context.Context) ([]v1.Cluster, error) {
	return c.ClustersOf(ctx, v1.ClusterQuery{})
}

// ClustersOf lists the clusters that q asks for, of all pages.
func (c *Client) ClustersOf(ctx context.Context, q v1.ClusterQuery) ([]v1.Cluster, error) {
	v := query{}
	v.set("tenant", q.Tenant)
	return all[v1.Cluster](ctx, c, "/v1/clusters", v.page(q.PageQuery))
}

// Cluster returns one cluster.
func (c *Client) Cluster(ctx context.Context, name string) (*v1.Cluster, error) {
	var out v1.Cluster
	return answer(&out, c.get(ctx, "/v1/clusters/"+url.PathEscape(name), &out))
}

// CreateCluster makes a cluster; the service chooses its P_Key.
func (c *Client) CreateCluster(ctx context.Context, n v1.NewCluster) (*v1.Cluster, error) {
	var out v1.Cluster
	return answer(&out, c.post(ctx, "/v1/clusters", n, &out))
}

// Use has the hosts of a cluster use a shared one, as limited members.
func (c *Client) Use(ctx context.Context, cluster, shared string) (*v1.Cluster, error) {
	var out v1.Cluster
	return answer(&out, c.call(ctx, c.http, http.MethodPut, "/v1/clusters/"+url.PathEscape(cluster)+"/uses/"+url.PathEscape(shared), v1.ClusterUse{}, &out))
}

// StopUse ends that.
func (c *Client) StopUse(ctx context.Context, cluster, shared string) (*v1.Cluster, error) {
	var out v1.Cluster
	return answer(&out, c.call(ctx, c.http, http.MethodDelete, "/v1/clusters/"+url.PathEscape(cluster)+"/uses/"+url.PathEscape(shared), nil, &out))
}

// DeleteCluster removes a cluster that has no host.
func (c *Client) DeleteCluster(ctx context.Context, name string) error {
	return c.delete(ctx, "/v1/clusters/"+url.PathEscape(name))
}

// QuarantinedPKeys lists P_Keys that may not be given out yet.
func (c *Client) QuarantinedPKeys(ctx context.Context) ([]v1.QuarantinedPKey, error) {
	return all[v1.QuarantinedPKey](ctx, c, "/v1/pkeys/quarantined", query{})
}

// Fabric returns the fabric as the subnet manager sees it.
func (c *Client) Fabric(ctx context.Context) (*v1.Fabric, error) {
	var out v1.Fabric
	return answer(&out, c.get(ctx, "/v1/fabric", &out))
}

// SM returns the state of the subnet manager.
func (c *Client) SM(ctx context.Context) (*v1.SM, error) {
	var out v1.SM
	return answer(&out, c.get(ctx, "/v1/sm", &out))
}

// Brakes says which memberships are kept although automatic causes would take them.
func (c *Client) Brakes(ctx context.Context) (*v1.Brakes, error) {
	var out v1.Brakes
	return answer(&out, c.get(ctx, "/v1/admission/brake", &out))
}

// ReleaseBrake has automatic causes take the memberships that are kept now.
func (c *Client) ReleaseBrake(ctx context.Context, in v1.BrakeRelease) (*v1.Brakes, error) {
	var out v1.Brakes
	return answer(&out, c.post(ctx, "/v1/admission/brake/release", in, &out))
}

// Clock says how the clock of the service's machine stands to the highest time that was seen.
func (c *Client) Clock(ctx context.Context) (*v1.Clock, error) {
	var out v1.Clock
	return answer(&out, c.get(ctx, "/v1/clock", &out))
}

// SetClock has the recorded time be what the machine shows.
func (c *Client) SetClock(ctx context.Context, in v1.ClockSet) (*v1.Clock, error) {
	var out v1.Clock
	return answer(&out, c.post(ctx, "/v1/clock/set", in, &out))
}

// StepDown has the leader end its term as Subnet Manager, for another instance to lead.
func (c *Client) StepDown(ctx context.Context, in v1.StepDown) error {
	return c.post(ctx, "/v1/sm/step-down", in, nil)
}

// ForgetUnseen holds the nodes that are out of sight for gone, and answers what they were.
func (c *Client) ForgetUnseen(ctx context.Context, in v1.SightAccept) (*v1.Sight, error) {
	var out v1.Sight
	return answer(&out, c.post(ctx, "/v1/sm/forget", in, &out))
}

// Version says what the service runs.
func (c *Client) Version(ctx context.Context) (*v1.Version, error) {
	var out v1.Version
	return answer(&out, c.get(ctx, "/version", &out))
}

// answer returns nil instead of a half-filled value beside an error.
func answer[T any](v *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}
