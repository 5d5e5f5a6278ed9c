package admission

import (
	"context"

	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// checkOwned refuses a host that is in no cluster of the tenants of the credential just as one that does not exist, and looks
// at no record of it.
func (s *Service) checkOwned(ctx context.Context, n store.Snapshot, id string) error {
	own, err := tenancy.OwnedBy(ctx, n)
	if err == nil && !own.HasHost(id) {
		err = inventory.NoHost(id)
	}
	return err
}

// named is gather of a host that the caller has named.
func (s *Service) named(ctx context.Context, tx *store.Tx, id string) (*facts, error) {
	if tenancy.Confined(ctx) {
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		if err := s.checkOwned(ctx, snap, id); err != nil {
			return nil, err
		}
	}
	return s.gather(ctx, tx, id)
}

// shown is hostView for the credential of the caller.
func shown(ctx context.Context, f *facts, d decision) *v1.Host {
	h := hostView(f, d)
	if tenancy.Confined(ctx) {
		return forTenant(h)
	}
	return h
}

// forTenant returns what the tenant is shown of a host that it has. What is left out may say something of other hosts and their
// tenants, of those that had the host before, or by which rules a host is accepted: the tenant may be the adversary.
func forTenant(h *v1.Host) *v1.Host {
	out := &v1.Host{
		ID: h.ID, EK: h.EK, Class: h.Class, HCAs: make([]v1.HCA, 0, len(h.HCAs)),
		Cluster: h.Cluster, Tenant: h.Tenant, Epoch: h.Epoch, Rack: h.Rack,
		Status: v1.HostStatus{
			Phase: h.Status.Phase, State: h.Status.State, Since: h.Status.Since, PKey: h.Status.PKey, Window: h.Status.Window,
			Attested: h.Status.Attested, Sealed: h.Status.Sealed, Guards: make([]v1.Guard, 0, len(h.Status.Guards)),
		},
	}
	for _, g := range h.Status.Guards {
		if !g.Met {
			g.Detail = tenantDetail(g.Name)
		}
		out.Status.Guards = append(out.Status.Guards, g)
	}
	for _, a := range h.HCAs {
		ports := make([]v1.HCAPort, 0, len(a.Ports))
		for _, p := range a.Ports {
			one := v1.HCAPort{Num: p.Num, GUID: p.GUID, Cabled: p.Cabled, PKeys: p.PKeys}
			if p.Seen == p.Cabled { // elsewhere it may be another's port
				one.Seen = p.Seen
			}
			ports = append(ports, one)
		}
		out.HCAs = append(out.HCAs, v1.HCA{NodeGUID: a.NodeGUID, SystemImageGUID: a.SystemImageGUID, Ports: ports})
	}
	return out
}

// tenantDetail says to a tenant what a guard that is not met waits for.
func tenantDetail(guard string) string {
	switch guard {
	case v1.GuardAssigned:
		return "not assigned to a cluster"
	case v1.GuardAttested:
		return "no evidence of the host counts now"
	case v1.GuardSealed:
		return "the host was not handed over yet"
	case v1.GuardCabled:
		return "inventory names no switch port for a port of the host"
	case v1.GuardSeen:
		return "a port of the host is not seen where it is cabled"
	case v1.GuardProgrammed:
		return "the tables of its ports are not read back as they are to be"
	default:
		return "the operator of the fabric knows why"
	}
}
