package admission

import (
	"context"
	"fmt"

	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// compared compares the state with the fabric, and returns the revision that it compared.
func (s *Service) compared(ctx context.Context) (*comparison, store.Snapshot, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, snap, refusal.Explain(err)
	}
	c, err := compareState(ctx, snap)
	return c, snap, refusal.Explain(err)
}

// Review compares the restored state with the fabric. Without a review it is not active.
func (s *Service) Review(ctx context.Context) (*v1.Review, error) {
	c, snap, err := s.compared(ctx)
	if err != nil {
		return nil, err
	}
	out := &v1.Review{Differences: []v1.ReviewDifference{}}
	if c.mark == nil {
		return out, nil
	}
	out.Active, out.Since, out.Taken, out.Revision, out.Agreed = true, c.mark.Since, c.mark.Taken, c.mark.Revision, c.agreed
	out.Audit = (*v1.AuditHead)(&c.mark.Audit)
	out.RolledBack, out.Recovered = showRolledBack(c.mark.RolledBack), c.mark.Recovered
	clusters, _, err := tenancy.Clusters().List(ctx, snap, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	byKey := map[ib.PKey]*tenancy.Cluster{}
	for i := range clusters {
		byKey[clusters[i].Value.PKey.Base()] = &clusters[i].Value
	}
	for i := range c.differ {
		out.Differences = append(out.Differences, c.show(&c.differ[i], byKey))
	}
	return out, nil
}

func (c *comparison) show(d *review.Difference, clusters map[ib.PKey]*tenancy.Cluster) v1.ReviewDifference {
	host := c.hosts[d.Host]
	v := v1.ReviewDifference{
		Kind: string(d.Kind), Host: d.Host, Rack: host.Rack, GUID: d.GUID, Place: d.Place, Switch: c.nodes[d.Place.Switch],
		SwitchPort: uint8(d.Place.Port), PKey: d.PKey,
	}
	for _, a := range host.HCAs {
		for _, p := range a.Ports {
			if p.GUID == d.GUID || d.GUID == 0 && p.Cable == d.Place {
				v.Adapter = fmt.Sprintf("%v/%d", a.NodeGUID, p.Num)
			}
		}
	}
	if f := c.byPlace[d.Place]; f != nil {
		v.Node, v.Switch = f.Node, f.Switch
	}
	if cl := clusters[d.PKey.Base()]; cl != nil {
		v.Cluster, v.Tenant = cl.Name, cl.Tenant
	}
	if dec, ok := c.decisions[d.Host]; ok && d.Host != "" {
		v.Decision = "rejected"
		if dec.Approved {
			v.Decision = "approved"
		}
	}
	return v
}

func showRolledBack(r *review.RolledBack) *v1.RolledBack {
	if r == nil {
		return nil
	}
	return &v1.RolledBack{
		Found: r.Found, Cause: r.Cause, Source: r.Source, Anchored: r.Anchor.Time,
		Anchor: v1.AuditHead{Seq: r.Anchor.Seq, Hash: r.Anchor.Hash, Branch: r.Anchor.Branch}, Head: v1.AuditHead(r.Head),
	}
}
