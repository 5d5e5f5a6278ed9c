package proving

import (
	"context"
	"time"

	"portcullis/api/fabric/past"
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
	age, most := p.age(&now)
	var shown []v1.IsolationPortVerdict
	for i := range now.ports {
		row := now.ports[i]
		if verdict := row.Verdict; ofAge(verdict, age > most) != verdict {
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

// Past returns what is proven of each port now, for the record of how the fabric was.
func (p *Prover) Past() past.Proof {
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	if now.found == nil || !now.mine {
		return past.Proof{Why: "this instance had not examined all tenants since it led"}
	}
	return past.Proof{Begun: now.found.Bounds.Begun, MaxAge: p.Pace.MaxAge(), Ports: now.ports}
}

// age returns how old what was found is, and how old it may be.
func (p *Prover) age(k *kept) (age, most time.Duration) {
	return max(0, p.Now().Sub(k.found.Bounds.Begun)), p.Pace.MaxAge()
}

// ofAge returns what a verdict about a port counts for.
func ofAge(verdict string, old bool) string {
	if old && verdict == v1.Isolated {
		return v1.Unproven
	}
	return verdict
}

// CountPorts returns how many ports have which verdict; nil: this instance has examined none since it leads.
func (p *Prover) CountPorts() map[string]int {
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	if now.found == nil || !now.mine {
		return nil
	}
	age, most := p.age(&now)
	out := map[string]int{v1.Isolated: 0, v1.Leaks: 0, v1.Unproven: 0}
	for i := range now.ports {
		out[ofAge(now.ports[i].Verdict, age > most)]++
	}
	return out
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
