// Package feed streams events as they happen, and from where a client that was cut off had them.
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/sse"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Bounds of streams.
const (
	maxOfOne = 8   // streams of one credential
	maxAll   = 128 // streams of an instance
	ahead    = 256 // messages that wait for a client
	// tooSlow is how long a client may leave no room for the next message.
	tooSlow = 10 * time.Second
)

// Names of messages.
const (
	Begin = "begin" // the first of a stream: v1.EventsBegin
	Event = "event" // v1.Event
	Gap   = "gap"   // v1.EventsGap
	End   = "end"   // the last of a stream, unless the client is gone: v1.EventsEnd

	Violations = "violations" // v1.EventsViolations, without an id
)

// Reasons of gaps.
const (
	Foreign = "foreign" // the position is of another store, or none at all
	Later   = "later"   // the store does not have the position yet: it was put back
	TooOld  = "too-old" // events after the position were removed for their age
	Merged  = "merged"  // single changes are no longer kept: an event that happened several times is one message
)

// Reasons of ends.
const (
	Slow       = "slow"       // the client did not read
	Stopping   = "stopping"   // the instance stops
	Credential = "credential" // the credential ended
	NoStore    = "store"      // the store does not answer
)

// Service streams events. Make one with New.
type Service struct {
	events.Book
	// Violations returns a number that is another one when the list of violations in the fabric has changed, and an error
	// while this instance does not see it. It is called often. Nil: it never sees it. Set it before the first stream.
	Violations func() (uint64, error)

	log *slog.Logger

	mu   sync.Mutex
	open map[string]int // streams, by credential
	all  int
}

// New returns a service that streams the events of a store.
func New(s *store.Store, log *slog.Logger) *Service {
	return &Service{Book: events.Book{Store: s}, log: log, open: map[string]int{}}
}

// Query says what a stream has.
type Query struct {
	v1.EventQuery
	After string              // id of an event after which the stream begins; empty: it begins now
	Form  func(*v1.Event) any // of the data of an event; nil: the event itself

	Violations bool // the stream has messages about violations
}

// Stream is one client's.
type Stream struct {
	C   <-chan sse.Message
	end string // of C; to be read after C is closed
}

// Last returns the message that says why the stream ended.
func (s *Stream) Last(ctx context.Context, how sse.End) sse.Message {
	reason := ""
	switch {
	case how == sse.Drained:
		reason = s.end
	case how == sse.Stopped:
		reason = Stopping
	case how == sse.Over && errors.Is(ctx.Err(), context.DeadlineExceeded):
		reason = Credential
	}
	return message(End, "", v1.EventsEnd{Reason: reason, Do: cures[reason]})
}

// Watch opens a stream for a credential. It ends with ctx, and after its channel was closed.
func (s *Service) Watch(ctx context.Context, credential string, q *Query) (*Stream, error) {
	if err := s.enter(credential); err != nil {
		return nil, err
	}
	series, err := events.SeriesOf(ctx, s.Store)
	var now events.Position
	if err == nil {
		now, err = series.Now(ctx, s.Store)
	}
	if err != nil {
		s.leave(credential)
		return nil, refusal.Explain(err)
	}
	c := make(chan sse.Message, ahead)
	out := &Stream{C: c}
	go func() {
		defer close(c)
		defer s.leave(credential) // a client whose stream has ended may begin another one
		w := &writer{feed: s, series: series, query: *q, to: c}
		out.end = w.run(ctx, now)
	}()
	return out, nil
}

func (s *Service) enter(credential string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[credential] >= maxOfOne:
		return refusal.New(refusal.Limited, v1.CodeRateLimited, "end another one first", "credential %s has %d streams of events open, as many as it may have", credential, maxOfOne)
	case s.all >= maxAll:
		return refusal.New(refusal.Limited, v1.CodeRateLimited, "ask another instance, or try again later", "%d streams of events are open, as many as an instance has", maxAll)
	}
	s.open[credential]++
	s.all++
	return nil
}

func (s *Service) leave(credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.open[credential]--; s.open[credential] == 0 {
		delete(s.open, credential)
	}
}

// writer makes the messages of one stream.
type writer struct {
	feed   *Service
	series events.Series
	query  Query
	to     chan<- sse.Message
	at     events.Position // of what was sent last, or was none that the query asks for
}

// run writes messages until the stream ends, and returns why.
func (w *writer) run(ctx context.Context, now events.Position) string {
	gap := w.start(now)
	if end := w.put(ctx, message(Begin, w.at.String(), v1.EventsBegin{Position: w.at.String(), Resumed: w.query.After != "" && gap == ""})); end != "" {
		return end
	}
	if gap != "" {
		if end := w.gap(ctx, gap); end != "" {
			return end
		}
	}
	defer w.besides(ctx)()
	for {
		end, err := w.follow(ctx)
		if !errors.Is(err, store.ErrCompacted) {
			return end
		}
		if end := w.catchUp(ctx); end != "" {
			return end
		}
	}
}

// start sets where the stream begins, and returns the reason of a gap before that; empty: there is none.
func (w *writer) start(now events.Position) (gap string) {
	w.at = now
	if w.query.After == "" {
		return ""
	}
	from, ok := events.ParsePosition(w.query.After)
	switch {
	case !ok || from.Series != w.series.ID:
		return Foreign
	case from.Revision > now.Revision:
		return Later
	}
	w.at = from
	if from.Revision < w.series.Removed {
		return TooOld
	}
	return ""
}

// follow sends single changes. Its error is that of the store.
func (w *writer) follow(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for b := range w.series.Watch(ctx, w.feed.Store, w.at) {
		if end := w.putAll(ctx, b.Changes); end != "" {
			return end, nil
		}
		if b.Err != nil {
			return w.failed(b.Err), b.Err
		}
	}
	return NoStore, nil
}

// catchUp sends what happened where single changes are no longer kept.
func (w *writer) catchUp(ctx context.Context) string {
	list, now, err := w.series.Since(ctx, w.feed.Store, w.at)
	if err != nil {
		return w.failed(err)
	}
	if slices.ContainsFunc(list, func(c events.Change) bool { return c.Merged && events.Matches(&w.query.EventQuery, &c.Event) }) {
		if end := w.gap(ctx, Merged); end != "" {
			return end
		}
	}
	end := w.putAll(ctx, list)
	if end == "" {
		w.at = now
	}
	return end
}

func (w *writer) failed(err error) string {
	if err != nil && !errors.Is(err, store.ErrCompacted) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		w.feed.log.Warn("a stream of events ends: the store does not answer", "err", err)
	}
	return NoStore
}

func (w *writer) putAll(ctx context.Context, list []events.Change) string {
	for i := range list {
		c := &list[i]
		if events.Matches(&w.query.EventQuery, &c.Event) {
			if end := w.put(ctx, message(Event, c.Position.String(), w.form(&c.Event))); end != "" {
				return end
			}
		}
		w.at = c.Position
	}
	return ""
}

func (w *writer) form(e *v1.Event) any {
	if w.query.Form == nil {
		return e
	}
	return w.query.Form(e)
}

func (w *writer) gap(ctx context.Context, reason string) string {
	return w.put(ctx, message(Gap, w.at.String(), v1.EventsGap{Reason: reason, Detail: details[reason], Do: cures[reason]}))
}

// put sends a message, and returns why the stream ends; empty: it does not.
func (w *writer) put(ctx context.Context, m sse.Message) string {
	select {
	case w.to <- m:
		return ""
	default:
	}
	late := time.NewTimer(tooSlow)
	defer late.Stop()
	select {
	case w.to <- m:
		return ""
	case <-late.C:
		return Slow
	case <-ctx.Done():
		return NoStore // no client reads it: the context says more
	}
}

// message makes a message of v, which JSON has a form of.
func message(name, id string, v any) sse.Message {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("events/feed: encode %T: %v", v, err))
	}
	return sse.Message{Event: name, ID: id, Data: data}
}
