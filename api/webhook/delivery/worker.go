package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/webhook"
)

const (
	recordEvery = 50          // events after which the position is recorded at the latest
	recordAfter = time.Minute // the same, of events that are not wanted
	// refreshEvery is how often a Refresher has all events.
	refreshEvery = time.Minute
)

// worker sends the events of one webhook. One goroutine uses it.
type worker struct {
	service *Service
	hook    *Webhook
	log     *slog.Logger
	guard   Guard

	series  events.Series
	at      events.Position // of what was dealt with
	state   state           // as it is recorded, but for the position
	waits   []letter        // as they are recorded
	backlog []events.Change // that come after at

	moved    int       // events since the position was recorded
	sent     bool      // one of them was delivered
	recorded time.Time // when the position was
	fails    int       // attempts in sequence that failed because of the server
	rest     time.Time // until when none is made
	refresh  time.Time // when a Refresher is to have all events next
}

// run sends events until ctx ends or the store fails.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revision, err := w.load(ctx)
	if err != nil {
		return err
	}
	changes, added := w.series.Watch(ctx, w.service.o.Store, w.at), waiting().Watch(ctx, w.service.o.Store, revision)
	for ctx.Err() == nil {
		if err := w.settle(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(w.idle())
		more := changes
		if len(w.backlog) > 0 {
			more = nil // the messages that wait leave no room
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case b, open := <-more:
			if changes, err = w.received(ctx, &b, open, changes); err != nil {
				return err
			}
		case e, open := <-added:
			if !open || e.Err != nil {
				return errors.Join(errEnded, e.Err)
			}
			w.replayed(&e)
		}
		timer.Stop()
	}
	return nil
}

// load reads what is on record, and begins with the events from now on where nothing is. It returns the revision of the messages that
// wait.
func (w *worker) load(ctx context.Context) (int64, error) {
	st, name := w.service.o.Store, w.hook.Name
	var err error
	if w.series, err = events.SeriesOf(ctx, st); err != nil {
		return 0, err
	}
	if w.at, err = w.series.Now(ctx, st); err != nil {
		return 0, err
	}
	if w.state, err = store.Optional(states().Get(ctx, st, name)); err != nil {
		return 0, err
	}
	now := w.at
	from, known := events.ParsePosition(w.state.Position)
	switch {
	case known && from.Series == w.series.ID && from.Revision <= now.Revision:
		w.at = from
		if from.Revision < w.series.Removed {
			w.log.Warn("events that were removed for their age are not sent: read the audit log for what happened then")
		}
	case w.state.Position != "":
		w.log.Warn("the store was restored or rolled back: events from before now are not sent", "position", w.state.Position)
	}
	var revision int64
	if w.waits, revision, err = letters(ctx, st, waiting(), name); err != nil {
		return 0, err
	}
	if !w.state.Failing.IsZero() {
		w.fails = 1
	}
	w.noteWaiting()
	if w.state.Position == w.at.String() {
		return revision, nil
	}
	return revision, w.record(ctx)
}

// received takes changes, or reads all rows where single changes are no longer kept. It returns where further ones come from.
func (w *worker) received(ctx context.Context, b *events.Batch, open bool, from <-chan events.Batch) (<-chan events.Batch, error) {
	w.backlog = append(w.backlog, b.Changes...)
	switch {
	case errors.Is(b.Err, store.ErrCompacted):
		list, now, err := w.series.Since(ctx, w.service.o.Store, w.at)
		if err != nil {
			return nil, err
		}
		w.backlog = list
		return w.series.Watch(ctx, w.service.o.Store, now), nil
	case b.Err != nil:
		return nil, b.Err
	case !open && ctx.Err() == nil:
		return nil, errEnded
	}
	return from, nil
}

// replayed takes a message that an operator has sent once more.
func (w *worker) replayed(e *store.Event[letter]) {
	if e.Deleted || !e.Value.Replayed || !strings.HasPrefix(e.Key, w.hook.Name+"/") || slices.ContainsFunc(w.waits, func(l letter) bool { return l.ID == e.Value.ID }) {
		return
	}
	w.waits = append(w.waits, e.Value)
	slices.SortFunc(w.waits, compare) // those of one transaction come by their keys
	w.rest = time.Time{}              // the operator believes that the server answers
}

// settle sends all that can be sent now.
func (w *worker) settle(ctx context.Context) error {
	for ctx.Err() == nil {
		now := w.service.o.Now()
		var err error
		switch i := w.due(now); {
		case i >= 0:
			err = w.again(ctx, i)
		case len(w.backlog) > 0 && len(w.waits) < maxWaiting:
			c := w.backlog[0]
			if err = w.take(ctx, &c); err == nil {
				w.backlog = w.backlog[1:]
			}
		case w.refreshDue(now):
			err = w.refreshAll(ctx)
		default:
			if w.moved > 0 && (w.sent || now.Sub(w.recorded) >= recordAfter) {
				err = w.record(ctx)
			}
			w.noteWaiting()
			return err
		}
		if err == nil && w.moved >= recordEvery {
			err = w.record(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// due returns which message is to be sent now, -1 for none.
func (w *worker) due(now time.Time) int {
	if now.Before(w.rest) {
		return -1
	}
	return slices.IndexFunc(w.waits, func(l letter) bool { return !now.Before(l.Next) })
}

// idle returns how long there is nothing to do.
func (w *worker) idle() time.Duration {
	next, now := recordAfter, w.service.o.Now()
	if _, ok := w.hook.Sender.(Refresher); ok {
		at := w.refresh
		if at.Before(w.rest) {
			at = w.rest
		}
		next = min(next, at.Sub(now))
	}
	for i := range w.waits {
		at := w.waits[i].Next
		if at.Before(w.rest) {
			at = w.rest
		}
		next = min(next, at.Sub(now))
	}
	return max(next, time.Millisecond)
}

// take deals with an event: it is delivered, waits, or is not wanted.
func (w *worker) take(ctx context.Context, c *events.Change) error {
	if !w.hook.Filter.wants(c) {
		w.at, w.moved = c.Position, w.moved+1
		return nil
	}
	now := w.service.o.Now()
	l, err := letterOf(&c.Event, now)
	if err != nil {
		return err
	}
	if w.fails > 0 || now.Before(w.rest) {
		l.Next = now.UTC().Round(0)
	} else {
		err := w.send(ctx, l)
		if err == nil {
			w.at, w.moved, w.sent = c.Position, w.moved+1, true
			return w.delivered(ctx, nil)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.failed(l, err)
	}
	w.at = c.Position
	w.waits = append(w.waits, *l)
	return w.record(ctx, func(tx *store.Tx) error { return waiting().Put(tx, keyOf(w.hook.Name, l.ID), *l) })
}

// again sends a message that waits.
func (w *worker) again(ctx context.Context, i int) error {
	l := w.waits[i]
	switch err := w.send(ctx, &l); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		w.waits = slices.Delete(w.waits, i, i+1)
		return w.delivered(ctx, func(tx *store.Tx) error {
			waiting().Delete(tx, keyOf(w.hook.Name, l.ID))
			return nil
		})
	default:
		w.failed(&l, err)
	}
	if w.service.o.Now().Sub(l.First) < giveUp {
		w.waits[i] = l
		return w.record(ctx, func(tx *store.Tx) error { return waiting().Put(tx, keyOf(w.hook.Name, l.ID), l) })
	}
	w.waits = slices.Delete(w.waits, i, i+1)
	w.service.count(w.hook.Name, func(c *Count) { c.Dead++ })
	w.log.Warn("a message is a dead letter", "id", l.ID, "event", l.Type, "attempts", l.Attempts, "err", l.Error)
	return w.record(ctx, func(tx *store.Tx) error { return w.bury(ctx, tx, &l) })
}

// bury makes a dead letter of a message that waits.
func (w *worker) bury(ctx context.Context, tx *store.Tx, l *letter) error {
	list, _, err := letters(ctx, tx, dead(), w.hook.Name)
	if err != nil {
		return err
	}
	for len(list) >= maxDead {
		dead().Delete(tx, keyOf(w.hook.Name, list[0].ID))
		list = list[1:]
	}
	waiting().Delete(tx, keyOf(w.hook.Name, l.ID))
	return dead().Put(tx, keyOf(w.hook.Name, l.ID), *l)
}

func (w *worker) send(ctx context.Context, l *letter) error {
	err := w.hook.Sender.Send(ctx, l.ID, w.service.o.Now(), l.Body)
	if ctx.Err() == nil {
		w.service.count(w.hook.Name, func(c *Count) {
			if err == nil {
				c.Delivered++
			} else {
				c.Failed++
			}
		})
	}
	return err
}

// failed notes an attempt that failed.
func (w *worker) failed(l *letter, err error) {
	now := w.service.o.Now().UTC().Round(0)
	if w.fails == 0 && l.Attempts == 0 {
		w.log.Warn("a message was not delivered", "id", l.ID, "err", err)
	}
	l.Attempts++
	l.Error, l.Replayed = refusal.ClipTo(err.Error(), maxError), false
	l.Next = now.Add(w.service.pause(l.Attempts))
	w.state.Error = l.Error
	if webhook.AboutMessage(err) {
		return
	}
	l.Next = now // the rest is for all, and what waited longest is sent first after it
	w.away(now)
}

// away notes that the server did not take what it was sent, whatever it was.
func (w *worker) away(now time.Time) {
	w.fails++
	w.rest = now.Add(w.service.pause(w.fails))
	if w.state.Failing.IsZero() {
		w.state.Failing = now
	}
	w.noteWaiting()
}

func (w *worker) refreshDue(now time.Time) bool {
	_, ok := w.hook.Sender.(Refresher)
	return ok && !now.Before(w.rest) && !now.Before(w.refresh)
}

// refreshAll has a Refresher take all events on record.
func (w *worker) refreshAll(ctx context.Context) error {
	all, err := events.All(ctx, w.service.o.Store)
	if err != nil {
		return err
	}
	to, ok := w.hook.Sender.(Refresher)
	if !ok {
		return nil
	}
	now := w.service.o.Now().UTC().Round(0)
	w.refresh = now.Add(refreshEvery)
	err = to.Refresh(ctx, now, all)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return w.delivered(ctx, nil)
	case w.fails == 0:
		w.log.Warn("the events on record were not taken", "err", err)
	}
	w.service.count(w.hook.Name, func(c *Count) { c.Failed++ })
	w.state.Error = refusal.ClipTo(err.Error(), maxError)
	w.away(now)
	return w.record(ctx)
}

// delivered notes a delivery, and records it where change is not nil or it ends a time of failures.
func (w *worker) delivered(ctx context.Context, change func(*store.Tx) error) error {
	back := !w.state.Failing.IsZero()
	w.fails, w.rest = 0, time.Time{}
	w.state.Sent, w.state.Failing, w.state.Error = w.service.o.Now().UTC().Round(0), time.Time{}, ""
	if back {
		w.log.Info("messages are delivered again")
	}
	if change == nil && !back {
		return nil
	}
	return w.record(ctx, change)
}

// record writes the position and state, with changes, in one transaction.
func (w *worker) record(ctx context.Context, changes ...func(*store.Tx) error) error {
	now := w.service.o.Now()
	next := w.state
	next.Position = w.at.String()
	var news func(*store.Tx) error
	name, kind := w.hook.Name, w.hook.kind()
	switch {
	case !next.Reported && !next.Failing.IsZero() && now.Sub(next.Failing) >= reportAfter:
		next.Reported, next.Kind = true, kind
		e := eventOf(events.WebhookFailing, kind, name, fmt.Sprintf("none since %s: %s", next.Failing.Format(time.RFC3339), next.Error))
		news = func(tx *store.Tx) error { return events.Record(ctx, tx, now, e) }
	case next.Reported && next.Failing.IsZero():
		next.Reported = false
		seen := "a delivery at " + next.Sent.Format(time.RFC3339)
		news = func(tx *store.Tx) error { return w.service.deliversAgain(ctx, tx, name, kind, seen) }
	}
	_, err := w.service.o.Store.Update(ctx, func(tx *store.Tx) error {
		if err := w.guard(ctx, tx); err != nil {
			return err
		}
		for _, change := range append(changes, news) {
			if change == nil {
				continue
			}
			if err := change(tx); err != nil {
				return err
			}
		}
		return states().Put(tx, w.hook.Name, next)
	})
	if err != nil {
		return err
	}
	w.state, w.moved, w.sent, w.recorded = next, 0, false, now
	w.noteWaiting()
	return nil
}

// noteWaiting counts the messages that wait.
func (w *worker) noteWaiting() {
	oldest := time.Time{}
	for i := range w.waits {
		if oldest.IsZero() || w.waits[i].First.Before(oldest) {
			oldest = w.waits[i].First
		}
	}
	w.service.count(w.hook.Name, func(c *Count) { c.Waiting, c.Oldest, c.Failing = len(w.waits), oldest, w.state.Failing })
}
