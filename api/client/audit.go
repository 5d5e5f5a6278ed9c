package client

import (
	"context"
	"iter"
	"time"

	v1 "portcullis/api/v1"
)

// Audit returns pages of the audit log, in the order that q asks for, until the last.
func (c *Client) Audit(ctx context.Context, q v1.AuditQuery) iter.Seq2[*v1.AuditEntries, error] {
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
			var page v1.AuditEntries
			if err := c.get(ctx, "/v1/audit"+v.String(), &page); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&page, nil) || page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// AuditHead returns number and hash of the last entry of the audit log.
func (c *Client) AuditHead(ctx context.Context) (*v1.AuditHead, error) {
	var out v1.AuditHead
	return answer(&out, c.get(ctx, "/v1/audit/head", &out))
}

// AuditBreaks returns where the audit log is not what was written, by the last verification.
func (c *Client) AuditBreaks(ctx context.Context) (*v1.AuditBreaks, error) {
	var out v1.AuditBreaks
	return answer(&out, c.get(ctx, "/v1/audit/breaks", &out))
}

// AcceptAuditBreak accepts a break of the audit log, and returns those that are known then.
func (c *Client) AcceptAuditBreak(ctx context.Context, in v1.AuditAccept) (*v1.AuditBreaks, error) {
	var out v1.AuditBreaks
	return answer(&out, c.post(ctx, "/v1/audit/breaks/accept", in, &out))
}
