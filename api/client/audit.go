package client

import (
	"context"
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
	v := query{}
	v.set("type", q.Type)
	v.set("host", q.Host)
	v.set("severity", q.Severity)
	if !q.Since.IsZero() {
		v.set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	v.page(q.PageQuery)
	items, err := all[v1.Event](ctx, g.c, listEvents, v)
	return answer(&v1.Events{Items: items}, err)
}
