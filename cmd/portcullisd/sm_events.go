package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

// eventLine is an event as a line of JSON.
type eventLine struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Text  string    `json:"text,omitempty"`
	State string    `json:"state,omitempty"` // of this subnet manager, where that changed
	*settledLine
	Lost uint64 `json:"lost,omitempty"` // lines that the reader was too slow for
}

// settledLine is what a settled fabric has more. Seconds and SMPs count from
// the event that caused the work.
type settledLine struct {
	Revision int64   `json:"revision"`
	SMPs     uint64  `json:"smps"`
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
	line := eventLine{Time: now.UTC(), Event: eventName(e), Text: e.String()}
	if s, ok := e.(*sm.StateChanged); ok {
		line.State = s.State.String()
	}
	if s, ok := e.(*sm.Settled); ok {
		took, smps := since.until(now, sent)
		line.settledLine = &settledLine{Revision: s.Revision, SMPs: smps, Seconds: secondsOf(took)}
	}
	select {
	case l.lines <- line:
	default:
		l.lost.Add(1)
	}
}

// eventName is the name of the type, in words: "port-placed".
func eventName(e sm.Event) string {
	name := reflect.TypeOf(e).Elem().Name()
	var b strings.Builder
	for i, c := range name {
		upper := 'A' <= c && c <= 'Z'
		if upper && i > 0 && !('A' <= name[i-1] && name[i-1] <= 'Z') {
			b.WriteByte('-')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}

// write writes lines until ctx ends, then what waits.
func (l *eventLines) write(ctx context.Context, w io.Writer) error {
	e := json.NewEncoder(w)
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
	line.Lost = l.lost.Swap(0)
	if err := e.Encode(line); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
