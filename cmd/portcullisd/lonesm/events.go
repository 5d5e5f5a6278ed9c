package lonesm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/sm"
)

// cause is what the work under way goes back to.
type cause struct {
	mu    sync.Mutex
	at    time.Time // zero: nothing is under way
	sent  uint64    // requests before it
	ended bool      // settled since: the next event is a new cause
}

// begin says that something was asked for.
func (c *cause) begin(now time.Time, sent uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || c.ended {
		c.at, c.sent, c.ended = now, sent, false
	}
}

// forget says that nothing follows from what was begun last.
func (c *cause) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// event takes the first event after the fabric was settled, or the traps just
// before it, for the cause of what follows.
func (c *cause) event(now time.Time, e sm.Event, wire *meter) {
	switch e.(type) {
	case *sm.StateChanged, *sm.PortPlaced, *sm.PortGone, *sm.NodeUnreachable, *sm.NodeBack, *sm.Routed,
		*sm.MembershipApplied, *sm.MembershipRemoved, *sm.Settled:
	default:
		return // reports, from which nothing follows
	}
	if trap, ok := wire.lately(now); ok {
		c.begin(trap.first, trap.sent)
		return
	}
	c.begin(now, wire.requests())
}

// until ends the work and says how long it took.
func (c *cause) until(now time.Time, sent uint64) (time.Duration, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	return now.Sub(c.at), sent - c.sent
}

// eventLine is an event as a line of JSON. Fields say what it is about.
type eventLine struct {
	Time   time.Time         `json:"time"`
	Event  string            `json:"event"`
	Level  string            `json:"level"`
	Text   string            `json:"text,omitempty"`
	State  string            `json:"state,omitempty"` // of this subnet manager, where that changed
	Fields map[string]string `json:"fields,omitempty"`
	*settledLine
	Lost uint64 `json:"lost,omitempty"` // lines that the reader was too slow for

	event sm.Event // of which the above is made when it is written
}

// complete says what the event is.
func (l *eventLine) complete() {
	l.Event, l.Level, l.Text = query.EventName(l.event), query.LevelName(l.event), l.event.String()
	switch e := l.event.(type) {
	case *sm.StateChanged:
		l.State = e.State.String()
	case *sm.Settled:
		return // settledLine has all
	}
	l.Fields = query.EventFields(l.event)
}

// settledLine is what a settled fabric has more. Seconds and SMPs count from
// the event that caused the work.
type settledLine struct {
	Revision int64   `json:"revision"`
	Cause    string  `json:"cause"`
	SMPs     uint64  `json:"smps"`
	Repeated uint64  `json:"repeated,omitempty"` // of SMPs, as they were not answered in time
	Seconds  seconds `json:"seconds"`
}

// maxLines is how many lines may wait for the reader: the bring-up of forty
// thousand hosts.
const maxLines = 1 << 16

// eventLines writes events without making the subnet manager wait.
type eventLines struct {
	lines chan eventLine
	lost  atomic.Uint64
}

func newEventLines() *eventLines { return &eventLines{lines: make(chan eventLine, maxLines)} }

// event takes an event to be written. Those for which there is no room are
// counted.
func (l *eventLines) event(now time.Time, e sm.Event, since *cause, sent uint64) {
	line := eventLine{Time: now.UTC(), event: e}
	if s, ok := e.(*sm.Settled); ok {
		took, smps := since.until(now, sent)
		line.settledLine = &settledLine{Revision: s.Revision, Cause: s.Cause, SMPs: smps, Repeated: min(s.Repeated, smps), Seconds: secondsOf(took)}
	}
	select {
	case l.lines <- line:
	default:
		l.lost.Add(1)
	}
}

// write writes lines until ctx ends, then what waits.
func (l *eventLines) write(ctx context.Context, w io.Writer) error {
	e := terminal.NewEncoder(w)
	for {
		select {
		case line := <-l.lines:
			if err := l.put(e, line); err != nil {
				return err
			}
		case <-ctx.Done():
			for {
				select {
				case line := <-l.lines:
					if err := l.put(e, line); err != nil {
						return err
					}
				default:
					return nil
				}
			}
		}
	}
}

func (l *eventLines) put(e *json.Encoder, line eventLine) error {
	line.complete()
	line.Lost = l.lost.Swap(0)
	if err := e.Encode(line); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
