package main

import (
	"context"
	"time"
)

// revokedPause is how long followRevoked rests when the store does not answer.
const revokedPause = 5 * time.Second

// followRevoked keeps this member's list of revoked certificates up to the cluster's
// until ctx ends.
func (s *service) followRevoked(ctx context.Context) error {
	m := &s.parts.Cluster
	if m.Name == "" {
		return nil
	}
	for {
		err := m.FollowRevoked(ctx, s.store, s.config.Path(s.config.StateDir), s.log)
		if ctx.Err() != nil {
			return nil
		}
		s.log.Warn("the cluster's list of revoked certificates is not followed; trying again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(revokedPause):
		}
	}
}
