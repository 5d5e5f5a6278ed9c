package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	v1 "portcullis/api/v1"
)

// Audit asks about the audit log.
type Audit struct{ c *Client }

// Audit returns the operations about the audit log.
func (c *Client) Audit() Audit { return Audit{c} }

// Head returns number and hash of the last entry of the audit log.
func (g Audit) Head(ctx context.Context) (*v1.AuditHead, error) {
	return ask[v1.AuditHead](ctx, g.c, getAuditHead, nil)
}

// Breaks returns where the audit log is not what was written, by the last verification.
func (g Audit) Breaks(ctx context.Context) (*v1.AuditBreaks, error) {
	return ask[v1.AuditBreaks](ctx, g.c, getAuditBreaks, nil)
}

// AcceptBreak accepts a break of the audit log, and returns those that are known then.
func (g Audit) AcceptBreak(ctx context.Context, in v1.AuditAccept) (*v1.AuditBreaks, error) {
	return ask[v1.AuditBreaks](ctx, g.c, acceptAuditBreak, in)
}

// Entries returns pages of the audit log, in the order that q asks for, until the last.
func (g Audit) Entries(ctx context.Context, q v1.AuditQuery) iter.Seq2[*v1.AuditEntries, error] {
	return func(yield func(*v1.AuditEntries, error) bool) {
		for {
			v := query{}.page(v1.PageQuery{After: q.After, Limit: q.Limit})
			v.flag("newest", q.Newest)
			v.set("actor", q.Actor)
			v.set("action", q.Action)
			v.set("object", q.Object)
			for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
				if !t.IsZero() {
					v.set(name, t.UTC().Format(time.RFC3339Nano))
				}
			}
			page, err := find[v1.AuditEntries](ctx, g.c, listAudit, nil, v)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// Events returns the events of locks and evidence on all pages, the last one first.
func (g Audit) Events(ctx context.Context, q v1.EventQuery) (*v1.Events, error) {
	v := eventQuery(q.Type, q.Host, q.Severity)
	if !q.Since.IsZero() {
		v.set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	v.page(q.PageQuery)
	items, err := all[v1.Event](ctx, g.c, listEvents, v)
	return answer(&v1.Events{Items: items}, err)
}

func eventQuery(kind, host, severity string) query {
	v := query{}
	v.set("type", kind)
	v.set("host", host)
	v.set("severity", severity)
	return v
}

// EventMessage is one message of a stream of events. One of the pointers is set.
type EventMessage struct {
	Position string // behind it: a stream that is to go on begins after it
	Event    *v1.Event
	Begin    *v1.EventsBegin
	Gap      *v1.EventsGap
	End      *v1.EventsEnd
}

// WatchEvents returns events as they happen, after the position in q or from now on. The sequence ends after the first error, and with
// io.ErrUnexpectedEOF when the service ends the stream: a caller goes on with another one after the last Position.
func (g Audit) WatchEvents(ctx context.Context, q v1.EventWatch) iter.Seq2[*EventMessage, error] {
	return func(yield func(*EventMessage, error) bool) {
		v := eventQuery(q.Type, q.Host, q.Severity)
		v.set("after", q.After)
		for m, err := range messages(ctx, g.c, watchEvents, v) {
			out := &EventMessage{}
			if err == nil {
				out, err = eventMessage(m)
			}
			if err != nil {
				yield(nil, fmt.Errorf("watch events: %w", err))
				return
			}
			if out != nil && !yield(out, nil) {
				return
			}
		}
	}
}

// eventMessage returns nil for a message of a kind that later services may have.
func eventMessage(m *message) (*EventMessage, error) {
	out := &EventMessage{Position: m.id}
	var into any
	switch m.event {
	case "event":
		into = &out.Event
	case "begin":
		into = &out.Begin
	case "gap":
		into = &out.Gap
	case "end":
		into = &out.End
	default:
		return nil, nil
	}
	return answer(out, json.Unmarshal(m.data, into))
}
