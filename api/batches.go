package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/batch"
	v1 "portcullis/api/v1"
)

type assignBatchInput struct{ Body v1.AssignBatch }

type releaseBatchInput struct{ Body v1.ReleaseBatch }

func batchRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "assign-hosts", method: http.MethodPost, path: "/v1/batches/assign", tag: "hosts", access: accessTenancy,
		summary: "Assign several hosts to a cluster, each by itself: the answer says of each whether it was assigned",
	}, func(ctx context.Context, in *assignBatchInput) (*bodyOutput[v1.Batch], error) {
		return doBatch(ctx, s, batch.ToAssign(&in.Body), nil, func(ctx context.Context, id string) (*v1.Host, error) {
			return s.backend.Lifecycle.Assign(ctx, actor(ctx), id, in.Body.Assignment)
		})
	})
	register(s, a, operation{
		id: "release-hosts", method: http.MethodPost, path: "/v1/batches/release", tag: "hosts", access: accessTenancy,
		summary: "Withdraw the admission of several hosts, each by itself, if their number is confirmed",
	}, func(ctx context.Context, in *releaseBatchInput) (*bodyOutput[v1.Batch], error) {
		guard := func() error {
			return batch.Confirmed(ctx, &in.Body, s.backend.Lifecycle.Host, s.tenancy.Cluster)
		}
		return doBatch(ctx, s, batch.ToRelease(&in.Body), guard, func(ctx context.Context, id string) (*v1.Host, error) {
			return s.backend.Lifecycle.Release(ctx, actor(ctx), id)
		})
	})
}

// doBatch handles each host of a batch. The batch counts against the rate of its credential as requests for its hosts do. guard, unless nil, refuses it as a whole.
func doBatch(ctx context.Context, s *Server, hosts []batch.Host, guard func() error, do func(ctx context.Context, id string) (*v1.Host, error)) (*bodyOutput[v1.Batch], error) {
	s.known.Spend(actor(ctx), time.Now(), len(hosts)-1)
	err := batch.Check(hosts)
	if err == nil && guard != nil {
		err = guard()
	}
	if err != nil {
		return nil, err
	}
	out, faults := batch.Do(ctx, hosts, do)
	if err := errors.Join(faults...); err != nil {
		noteFault(ctx, err)
	}
	return &bodyOutput[v1.Batch]{out}, nil
}
