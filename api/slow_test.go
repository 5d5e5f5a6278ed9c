package api_test

import (
	"context"

	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
)

// slowBackend answers SM only when it may leave.
type slowBackend struct {
	*apitest.Backend
	entered, leave chan struct{}
}

func newSlowBackend() *slowBackend {
	return &slowBackend{apitest.NewBackend(), make(chan struct{}), make(chan struct{})}
}

func (b *slowBackend) Parts() (api.Backend, api.Tenancy) {
	parts, clusters := b.Backend.Parts()
	parts.State = b
	return parts, clusters
}

func (b *slowBackend) SM(ctx context.Context) (*v1.SM, error) {
	close(b.entered)
	select {
	case <-b.leave:
		return &v1.SM{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
