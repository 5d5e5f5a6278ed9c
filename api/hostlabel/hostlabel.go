// Package hostlabel keeps the labels of hosts, in records of their own: what decides about hosts reads none of them. They stay with a
// host from tenant to tenant, so no credential of a tenant is shown them.
package hostlabel

import (
	"context"
	"time"

	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/label"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// Record is the labels of one host.
type Record struct {
	Labels label.Set `json:"labels"`
}

// Records holds the labels of hosts that have any, by host id.
func Records() store.Collection[Record] { return store.NewCollection[Record]("host-labels", 1) }

// Shown returns the labels of a host, and none to a credential that is confined to tenants.
func Shown(ctx context.Context, r store.Reader, id string) (label.Set, error) {
	if tenancy.Confined(ctx) {
		return nil, nil
	}
	rec, err := store.Optional(Records().Get(ctx, r, id))
	return rec.Labels, err
}

// Of returns the labels of hosts as of n, by host id, and none to a credential that is confined to tenants.
func Of(ctx context.Context, n store.Snapshot, ids []string) (map[string]label.Set, error) {
	if tenancy.Confined(ctx) {
		return nil, nil
	}
	recs, err := Records().Of(ctx, n, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]label.Set, len(recs))
	for i := range recs {
		out[recs[i].Key] = recs[i].Value.Labels
	}
	return out, nil
}

// Service is what operators do with labels of hosts. Refusals are *refusal.Error.
type Service struct {
	Store    *store.Store
	Refusals *tenancy.Refusals
	Now      func() time.Time
}

// Labels returns the labels of a host.
func (s *Service) Labels(ctx context.Context, id string) (*v1.Labels, error) {
	snap, err := s.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if tenancy.Confined(ctx) {
		return nil, inventory.NoHost(id)
	}
	if _, _, err := inventory.Find(ctx, snap, id); err != nil {
		return nil, refusal.Explain(err)
	}
	has, err := store.Optional(Records().Get(ctx, snap, id))
	if err != nil {
		return nil, refusal.Explain(err)
	}
	is := tenancy.LabelChange{Kind: "host", Name: id}
	return is.View(has.Labels), nil
}

// PatchLabels changes the labels of a host that the credential may take or has.
func (s *Service) PatchLabels(ctx context.Context, actor, id string, p label.Patch) (out *v1.Labels, err error) {
	what := audit.Change{Actor: actor, Action: "host.label", Object: "host/" + refusal.Clip(id)}
	_, err = s.Store.Update(ctx, func(tx *store.Tx) error {
		if tenancy.Confined(ctx) {
			return inventory.NoHost(id)
		}
		if _, _, err := inventory.Find(ctx, tx, id); err != nil {
			return err
		}
		rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, id))
		if err == nil {
			err = tenancy.CheckHost(ctx, id, rec.Cluster, rec.PKey)
		}
		if err != nil {
			return err
		}
		has, err := store.Optional(Records().Get(ctx, tx, id))
		if err != nil {
			return err
		}
		change := tenancy.LabelChange{Kind: "host", Name: id, Before: has.Labels}
		if err := change.Apply(ctx, p); err != nil {
			return err
		}
		out = change.View(change.After)
		if !change.Changes() {
			return nil
		}
		change.Audit(&what)
		if len(change.After) == 0 {
			Records().Delete(tx, id)
		} else if err := Records().Put(tx, id, Record{change.After}); err != nil {
			return err
		}
		return audit.Log(ctx, tx, s.Now(), &what)
	})
	return out, s.Refusals.Note(ctx, what, refusal.Explain(err))
}
