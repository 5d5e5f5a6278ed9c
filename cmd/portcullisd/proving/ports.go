package proving

import (
	"context"

	"portcullis/api/isolation"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// portList names the list in cursors.
const portList = "isolation-ports"

// Ports implements api.IsolationProver. The credential of a tenant is shown ports that were its tenant's when the fabric was read
// and whose hosts are its tenant's now, and nothing that says something of others.
func (p *Prover) Ports(ctx context.Context, q v1.IsolationPortQuery) (*v1.IsolationPorts, error) {
	own, err := p.owned(ctx, q.Tenant)
	if err != nil {
		return nil, err
	}
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	if now.found == nil {
		why := ""
		if now.failed != nil && own == nil {
			why = now.failed.Error()
		}
		return nil, notExamined(why)
	}
	age, most := max(0, p.Now().Sub(now.found.Bounds.Begun)), p.Pace.MaxAge()
	var shown []v1.IsolationPortVerdict
	for i := range now.ports {
		row := now.ports[i]
		if age > most && row.Verdict == v1.Isolated {
			row.Verdict, row.Held, row.Cause = v1.Unproven, "", v1.PortOld
		}
		if q.Host != "" && row.Host != q.Host || q.Tenant != "" && row.Tenant != q.Tenant || q.Verdict != "" && row.Verdict != q.Verdict {
			continue
		}
		if own != nil {
			if row.Tenant == "" || own.CheckTenant(row.Tenant) != nil || !own.HasHost(row.Host) {
				continue
			}
			row.Other, row.Detail = "", ""
		}
		shown = append(shown, row)
	}
	list, err := page.Cut(portList, q.PageQuery, shown, isolation.PortKey)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	b := &now.found.Bounds
	return &v1.IsolationPorts{
		Begun: b.Begun, Ended: b.Ended, Age: age.Seconds(), MaxAge: most.Seconds(), Current: age <= most, Items: list.Items, Next: list.Next,
	}, nil
}

// owned returns what the credential of a tenant has, nil for one of all tenants, and refuses a tenant of others.
func (p *Prover) owned(ctx context.Context, tenant string) (*tenancy.Owned, error) {
	if !tenancy.Confined(ctx) {
		return nil, nil
	}
	snap, err := p.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	own, err := tenancy.OwnedBy(ctx, snap)
	if err == nil && tenant != "" {
		err = own.CheckTenant(tenant)
	}
	return own, err
}
