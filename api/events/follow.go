package events

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// retryPause is how long Follow rests when the store does not answer.
const retryPause = time.Second

// Follow writes each event to log when it is reported, and calls counted for each that happens, until ctx ends. It outlives
// every failure of the store. Events from before it began, or while the store did not answer, are in the list alone. Rows
// whose last time is long ago are removed when it begins.
func Follow(ctx context.Context, s *store.Store, log *slog.Logger, counted func(*v1.Event)) {
	for ctx.Err() == nil {
		err := follow(ctx, s, log, counted)
		if ctx.Err() != nil {
			return
		}
		log.Error("events are not followed", "err", err, "retry_in", retryPause)
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}

func follow(ctx context.Context, s *store.Store, log *slog.Logger, counted func(*v1.Event)) error {
	if _, err := SeriesOf(ctx, s); err != nil {
		return err
	}
	if err := prune(ctx, s, time.Now().Add(-kept)); err != nil {
		return err
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	for ev := range rows().Watch(ctx, s, snap.Revision) {
		if ev.Err != nil {
			return ev.Err
		}
		if ev.Deleted {
			continue
		}
		r := &ev.Value
		counted(&r.Event)
		if r.Told == r.Count {
			log.Log(ctx, level(r.Severity), Text(&r.Event), attributes(&r.Event)...)
		}
	}
	return errors.New("watch ended")
}

// prune drops rows of which nothing happened since.
func prune(ctx context.Context, s *store.Store, since time.Time) error {
	list, _, err := rows().List(ctx, s, "")
	if err != nil {
		return err
	}
	for i := range list {
		if !list[i].Value.Last.Before(since) {
			continue
		}
		key := list[i].Key
		_, err := s.Update(ctx, func(tx *store.Tx) error {
			r, err := rows().Get(ctx, tx, key)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil || !r.Value.Last.Before(since) {
				return err
			}
			rows().Delete(tx, key)
			return removed(ctx, tx, r.Modified)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func level(severity string) slog.Level {
	switch severity {
	case Critical:
		return slog.LevelError
	case Warning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// attributes are the fields of the journal.
func attributes(e *v1.Event) []any {
	out := []any{"event", e.Type, "severity", e.Severity, "cause", e.Cause, "by", e.By, "count", e.Count}
	if e.Host != "" {
		out = append(out, "host", e.Host)
	}
	if e.Adapter != 0 {
		out = append(out, "guid", e.Adapter)
	}
	return out
}
