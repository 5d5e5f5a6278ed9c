package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	v1 "portcullis/api/v1"
)

// Events gives what happened to locks and evidence, the last first.
func (c *Client) Events(ctx context.Context, q v1.EventQuery) (*v1.Events, error) {
	values := query(url.Values{})
	values.set("type", q.Type)
	values.set("host", q.Host)
	values.set("severity", q.Severity)
	if !q.Since.IsZero() {
		values.set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit > 0 {
		values.set("limit", strconv.Itoa(q.Limit))
	}
	var out v1.Events
	return answer(&out, c.get(ctx, "/v1/events"+values.String(), &out))
}
