package main

import (
	"context"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/readiness"
)

// roomRetry is the pause before an event that the store did not take is recorded again.
const roomRetry = time.Minute

// roomCause returns the cause of the event that the store runs short: "" where it has room.
func roomCause(h etcd.Health) string {
	switch {
	case h.Short != nil:
		return "removals"
	case h.Warning != "":
		return "soon"
	default:
		return ""
	}
}

// watchRoom records, until ctx ends, that the store runs short of room, and that it has room again.
func (s *service) watchRoom(ctx context.Context) error {
	for recorded := ""; ; {
		recorded = s.roomEvent(ctx, time.Now(), recorded)
		select {
		case <-ctx.Done():
			return nil
		case <-s.storeHealth.News:
		case <-time.After(roomRetry):
		}
	}
}

// roomEvent records an event where the cause is not the recorded one, and returns the cause recorded last.
func (s *service) roomEvent(ctx context.Context, now time.Time, recorded string) string {
	h := s.storeHealth.Now()
	cause := roomCause(h)
	if h.Away != nil || cause == recorded {
		return recorded
	}
	e := v1.Event{
		Type: events.StoreShort, By: events.ByService, Cause: cause,
		Expected: "records that take less than 70 % of store_quota, and space on the disk", Seen: h.Warning,
		Do: "remove what is not needed, free space on the disk, or raise store_quota and start the service again",
	}
	if cause == "" {
		e = v1.Event{Type: events.StoreRoom, By: events.ByService, Cause: "room"}
	}
	if _, err := s.store.Update(ctx, func(tx *store.Tx) error { return events.Tell(ctx, tx, now, e) }); err != nil {
		s.log.Error("an event about the room of the store was not recorded", "error", err)
		return recorded
	}
	return cause
}

// warned adds to the condition of a store that serves what runs short.
func warned(all []v1.Condition, warning string) []v1.Condition {
	for i := range all {
		if c := &all[i]; c.Name == readiness.Store && c.OK {
			c.Detail = warning
		}
	}
	return all
}
