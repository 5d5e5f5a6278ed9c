package storage

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	v1 "portcullis/api/v1"
)

// roomRetry is the pause before an event that the store did not take is recorded again.
const roomRetry = time.Minute

// Room records that the store runs short of room, and that it has room again.
type Room struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() etcd.Health // how the store is
	News  <-chan struct{}    // has a token after each change of Now
	// Instance is the name of this one of several, empty where it is alone.
	Instance string
}

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

// Watch records events until ctx ends.
func (r *Room) Watch(ctx context.Context) {
	for recorded := r.before(ctx); ; {
		recorded = r.event(ctx, time.Now(), recorded)
		select {
		case <-ctx.Done():
			return
		case <-r.News:
		case <-time.After(roomRetry):
		}
	}
}

// expected says what an event expects, and of which instance it is.
func (r *Room) expected() string {
	text := "records that take less than 70 % of store_quota, and space on the disk"
	if r.Instance != "" {
		text += " of instance " + r.Instance
	}
	return text
}

// before returns the cause that an earlier run of this instance recorded last: to raise store_quota takes a new start, and what was recorded
// before ends after it.
func (r *Room) before(ctx context.Context) string {
	for {
		switch was, err := events.Lasting(ctx, r.Store, events.StoreShort, ""); {
		case err == nil && (was == nil || was.Expected != r.expected()):
			return ""
		case err == nil:
			return was.Cause
		case ctx.Err() == nil:
			r.Log.Error("events about the room of the store were not read", "error", err, "retry_in", roomRetry)
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(roomRetry):
		}
	}
}

// event records an event where the cause is not the recorded one, and returns the cause recorded last.
func (r *Room) event(ctx context.Context, now time.Time, recorded string) string {
	h := r.Now()
	cause := roomCause(h)
	if h.Away != nil || cause == recorded {
		return recorded
	}
	e := v1.Event{
		Type: events.StoreShort, By: events.ByService, Cause: cause,
		Expected: r.expected(), Seen: h.Warning,
		Do: "remove what is not needed, free space on the disk, or raise store_quota and start the service again",
	}
	if cause == "" {
		e = v1.Event{Type: events.StoreRoom, By: events.ByService, Cause: "room"}
	}
	if _, err := r.Store.Update(ctx, func(tx *store.Tx) error { return events.Record(ctx, tx, now, e) }); err != nil {
		r.Log.Error("an event about the room of the store was not recorded", "error", err)
		return recorded
	}
	return cause
}
