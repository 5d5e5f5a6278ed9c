package storage

import (
	"context"
	"log/slog"
	"time"
)

// revokedPause is how long FollowRevoked rests when the store does not answer.
const revokedPause = 5 * time.Second

// FollowRevoked keeps this member's list of revoked certificates up to the cluster's until ctx ends. follow does so while
// the store answers.
func FollowRevoked(ctx context.Context, log *slog.Logger, follow func(context.Context) error) {
	for {
		err := follow(ctx)
		if ctx.Err() != nil {
			return
		}
		log.Warn("the cluster's list of revoked certificates is not followed; trying again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(revokedPause):
		}
	}
}
