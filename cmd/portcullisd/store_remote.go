package main

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/portcullisd/readiness"
)

// remoteEvery is how often an etcd of the site's own is asked whether it serves.
const remoteEvery = 2 * time.Second

// followRemote reports, until ctx ends, whether an etcd of the site's own serves. Its
// sizes are the site's own to watch.
func (s *service) followRemote(ctx context.Context, health *readiness.StoreHealth) error {
	if len(s.config.Etcd.Endpoints) == 0 {
		return nil
	}
	tick := time.NewTicker(remoteEvery)
	defer tick.Stop()
	for {
		var now etcd.Health
		if _, err := s.store.Snapshot(ctx); err != nil && ctx.Err() == nil {
			now.Away = fmt.Errorf("%w: %v", store.ErrAway, err)
		}
		health.Tell(now)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
