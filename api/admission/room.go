package admission

import (
	"context"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
)

// roomFor refuses to have a cluster use another one when the tables of a host of it
// have no room for one P_Key more: that host would lose all it has.
func (s *Service) roomFor(ctx context.Context, tx *store.Tx, c, with *tenancy.Cluster) error {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, id := range c.Hosts {
		f, err := s.gather(ctx, snap, id)
		if err != nil {
			return err
		}
		f.uses = append(f.uses, with.PKey.Base())
		if problem := checkCapacity(f); problem != "" {
			return refusal.New(refusal.Conflict, "capacity", "release hosts, or have the cluster use fewer others", "host %s of cluster %s: %s", id, c.Name, problem)
		}
	}
	return nil
}
