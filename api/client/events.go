package client

import (
	"context"
	"net/url"
	"time"

	v1 "portcullis/api/v1"
)

// Events returns the events of locks and evidence on all pages, the last one first.
func (c *Client) Events(ctx context.Context, q v1.EventQuery) (*v1.Events, error) {
	values := query(url.Values{})
	values.set("type", q.Type)
	values.set("host", q.Host)
	values.set("severity", q.Severity)
	if !q.Since.IsZero() {
		values.set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	values.page(q.PageQuery)
	out := &v1.Events{Items: []v1.Event{}}
	for {
		var page v1.Events
		if err := c.get(ctx, "/v1/events"+values.String(), &page); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, page.Items...)
		if page.Next == "" {
			return out, nil
		}
		values.set("after", page.Next)
	}
}
