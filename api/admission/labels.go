package admission

import (
	"context"

	"portcullis/api/hostlabel"
	"portcullis/api/label"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// HostLabels returns what there is to do with the labels of hosts. No decision of s reads them.
func HostLabels(s *Service) *hostlabel.Service {
	return &hostlabel.Service{Store: s.o.Store, Refusals: s.refusals, Now: s.now}
}

// withLabels adds the labels of a host to what is shown of it.
func withLabels(ctx context.Context, r store.Reader, h *v1.Host) (err error) {
	h.Labels, err = hostlabel.Shown(ctx, r, h.ID)
	return err
}

// chosen returns which of some hosts, given by their records, a selector chooses, and the labels of all by host id.
func chosen[R any](ctx context.Context, n store.Snapshot, s label.Selector, recs []store.Record[R]) ([]bool, map[string]label.Set, error) {
	ids := make([]string, len(recs))
	for i := range recs {
		ids[i] = recs[i].Key
	}
	labels, err := hostlabel.Of(ctx, n, ids)
	out := make([]bool, len(recs))
	for i, id := range ids {
		out[i] = s.Matches(labels[id])
	}
	return out, labels, err
}
