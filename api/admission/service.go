package admission

import (
	"context"

	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
)

// Service is the API's work without its protocol. Methods are safe for
// concurrent use and for several Services over one store. Refusals are *Error.
type Service struct{}

// ImportInventory takes the files into the inventory, all or nothing.
func (s *Service) ImportInventory(ctx context.Context, actor string, files []inventory.File, dryRun bool) (*v1.ImportReport, error) {
	return nil, errSkeleton()
}

// Hosts lists every host of the inventory, sorted by id.
func (s *Service) Hosts(ctx context.Context) ([]v1.Host, error) { return nil, errSkeleton() }

// Host gives one host.
func (s *Service) Host(ctx context.Context, id string) (*v1.Host, error) { return nil, errSkeleton() }

// HostStatusByToken gives the host whose latest accepted evidence earned the
// token.
func (s *Service) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	return nil, errSkeleton()
}

// Watch sends the host now and after each change until ctx ends.
func (s *Service) Watch(ctx context.Context, host string) (<-chan *v1.Host, error) {
	return nil, errSkeleton()
}

// Assign wants the host in a cluster and opens its provisioning window.
func (s *Service) Assign(ctx context.Context, actor, host string, a v1.Assignment) (*v1.Host, error) {
	return nil, errSkeleton()
}

// Release withdraws the host's admission.
func (s *Service) Release(ctx context.Context, actor, host string) (*v1.Host, error) {
	return nil, errSkeleton()
}

// Tenants lists tenants, sorted by name.
func (s *Service) Tenants(ctx context.Context) ([]v1.Tenant, error) { return nil, errSkeleton() }

// CreateTenant records a new tenant.
func (s *Service) CreateTenant(ctx context.Context, actor string, n v1.NewTenant) (*v1.Tenant, error) {
	return nil, errSkeleton()
}

// DeleteTenant removes a tenant that has no cluster.
func (s *Service) DeleteTenant(ctx context.Context, actor, name string) error { return errSkeleton() }

// Clusters lists clusters, sorted by name.
func (s *Service) Clusters(ctx context.Context) ([]v1.Cluster, error) { return nil, errSkeleton() }

// Cluster gives one cluster.
func (s *Service) Cluster(ctx context.Context, name string) (*v1.Cluster, error) {
	return nil, errSkeleton()
}

// CreateCluster records a new cluster and gives it a P_Key of its own.
func (s *Service) CreateCluster(ctx context.Context, actor string, n v1.NewCluster) (*v1.Cluster, error) {
	return nil, errSkeleton()
}

// DeleteCluster removes a cluster that has no host; its P_Key is quarantined.
func (s *Service) DeleteCluster(ctx context.Context, actor, name string) error { return errSkeleton() }

// QuarantinedPKeys lists the P_Keys that must not be given out yet, and why.
func (s *Service) QuarantinedPKeys(ctx context.Context) ([]v1.QuarantinedPKey, error) {
	return nil, errSkeleton()
}

// Fabric gives what the subnet manager last published.
func (s *Service) Fabric(ctx context.Context) (*v1.Fabric, error) { return nil, errSkeleton() }

// SM gives the state of the subnet manager.
func (s *Service) SM(ctx context.Context) (*v1.SM, error) { return nil, errSkeleton() }

func errSkeleton() error {
	return refusal(Unavailable, "not_ready", "", "the admission service is not ready")
}
