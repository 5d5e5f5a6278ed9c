package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/memory"
)

// A foreign etcd that answers is asked every two seconds until the end.
func TestFollowRemote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var told []etcd.Health
		FollowRemote(ctx, store.New(memory.New(time.Now), ""), func(h etcd.Health) { told = append(told, h) })
		if len(told) != 3 {
			t.Fatalf("told %d times within 5s, want 3", len(told))
		}
		for _, h := range told {
			if h.Away != nil {
				t.Errorf("a store that answers: %v", h.Away)
			}
		}
	})
}
