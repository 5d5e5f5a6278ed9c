package storage

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
)

// remoteEvery is how often an etcd of the site's own is asked whether it serves.
const remoteEvery = 2 * time.Second

// FollowRemote reports, until ctx ends, whether an etcd of the site's own serves. Its sizes are the site's own to watch.
func FollowRemote(ctx context.Context, st *store.Store, tell func(etcd.Health)) {
	tick := time.NewTicker(remoteEvery)
	defer tick.Stop()
	for {
		var now etcd.Health
		if _, err := st.Snapshot(ctx); err != nil && ctx.Err() == nil {
			now.Away = fmt.Errorf("%w: %v", store.ErrAway, err)
		}
		tell(now)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
