package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "portcullis/api/v1"
)

// Ready asks the service whether it is ready, with the client's credential: roles that may see the details have them.
func (c *Client) Ready(ctx context.Context) (*v1.Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := c.asksReady(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.authenticate(req); err != nil {
		return nil, err
	}
	ready, _, err := c.readiness(c.http, req)
	return ready, err
}

// Metrics writes the metrics of the service to w. It may take as long as ctx allows. After an error w may hold a part of them.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	return save(ctx, c, w, "metrics", getMetrics, nil)
}

// asksReady is a request for readiness, without a credential.
func (c *Client) asksReady(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if c.userAgent != "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	return req, nil
}

// readiness sends a request for readiness, and returns the answer with the time that the service's clock showed.
func (c *Client) readiness(h *http.Client, req *http.Request) (*v1.Readiness, time.Time, error) {
	resp, err := h.Do(req)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask %s: %w", c.asked(), err)
	}
	defer resp.Body.Close()
	var ready v1.Readiness
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReadiness))
	if err == nil {
		err = json.Unmarshal(data, &ready)
	}
	wanted := resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusServiceUnavailable
	if err != nil || !wanted || ready.Ready != (resp.StatusCode == http.StatusOK) {
		return nil, time.Time{}, fmt.Errorf("ask %s: %s, and the answer is not that of Portcullis", c.asked(), resp.Status)
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask %s: its answer has no date: %w", c.asked(), err)
	}
	return &ready, at, nil
}
