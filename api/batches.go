package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/batch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

type assignBatchInput struct{ Body v1.AssignBatch }

type releaseBatchInput struct{ Body v1.ReleaseBatch }

func batchRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "assign-hosts", method: http.MethodPost, path: "/v1/batches/assign", tag: "hosts", access: accessTenancy,
		summary: "Assign several hosts to a cluster, each by itself: the answer says of each whether it was assigned",
	}, func(ctx context.Context, in *assignBatchInput) (*bodyOutput[v1.Batch], error) {
		hosts := make([]batch.Host, len(in.Body.Hosts))
		for i, h := range in.Body.Hosts {
			hosts[i].ID = h.ID
			if h.Epoch != nil {
				hosts[i].Version = strconv.FormatInt(*h.Epoch, 10)
			}
		}
		return doBatch(ctx, s, hosts, nil, func(ctx context.Context, id string) (*v1.Host, error) {
			return s.backend.Lifecycle.Assign(ctx, actor(ctx), id, in.Body.Assignment)
		})
	})
	register(s, a, operation{
		id: "release-hosts", method: http.MethodPost, path: "/v1/batches/release", tag: "hosts", access: accessTenancy,
		summary: "Withdraw the admission of several hosts, each by itself, if their number is confirmed",
	}, func(ctx context.Context, in *releaseBatchInput) (*bodyOutput[v1.Batch], error) {
		hosts := make([]batch.Host, len(in.Body.Hosts))
		for i, h := range in.Body.Hosts {
			hosts[i] = batch.Host{ID: h.ID, Version: strconv.FormatInt(h.Epoch, 10)}
		}
		confirmed := func() error {
			if in.Body.Confirm == len(hosts) {
				return nil
			}
			return unconfirmed(ctx, s, in.Body.Confirm, hosts)
		}
		return doBatch(ctx, s, hosts, confirmed, func(ctx context.Context, id string) (*v1.Host, error) {
			return s.backend.Lifecycle.Release(ctx, actor(ctx), id)
		})
	})
}

// doBatch handles each host of a batch. The batch counts against the rate of its credential as requests for its hosts do. guard, unless nil, refuses it as a whole.
func doBatch(ctx context.Context, s *Server, hosts []batch.Host, guard func() error, do func(ctx context.Context, id string) (*v1.Host, error)) (*bodyOutput[v1.Batch], error) {
	s.known.Spend(actor(ctx), time.Now(), len(hosts)-1)
	if err := batch.Check(hosts); err != nil {
		return nil, err
	}
	if guard != nil {
		if err := guard(); err != nil {
			return nil, err
		}
	}
	out, faults := batch.Do(ctx, hosts, do)
	if err := errors.Join(faults...); err != nil {
		noteFault(ctx, err)
	}
	return &bodyOutput[v1.Batch]{out}, nil
}

// unconfirmed refuses a release of hosts whose number was not confirmed, and says what it would take away. Hosts that the credential may not see are as those that do not exist.
func unconfirmed(ctx context.Context, s *Server, confirmed int, hosts []batch.Host) error {
	var found []*v1.Host
	for _, h := range hosts {
		host, err := s.backend.Lifecycle.Host(ctx, h.ID)
		switch {
		case err == nil:
			found = append(found, host)
		case !refusal.IsKind(err, refusal.NotFound):
			return err
		}
	}
	return batch.Unconfirmed(confirmed, len(hosts), found, func(cluster string) (int, bool) {
		c, err := s.tenancy.Cluster(ctx, cluster)
		if err != nil {
			return 0, false
		}
		return len(c.Hosts), true
	})
}
