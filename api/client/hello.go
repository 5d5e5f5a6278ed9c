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

// maxReadiness bounds the answer to Hello.
const maxReadiness = 64 << 10

// Hello asks the service whether it is ready, and returns the time that its clock showed, in whole seconds. No credential
// is sent. An answer that is not the service's is an error.
func (ch *Channel) Hello(ctx context.Context) (*v1.Readiness, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, ch.client.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ch.client.base+"/readyz", nil)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask the service: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if ch.client.userAgent != "" {
		req.Header.Set("User-Agent", ch.client.userAgent)
	}
	resp, err := ch.http.Do(req)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask %s: %w", ch.client.asked(), err)
	}
	defer resp.Body.Close()
	var ready v1.Readiness
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReadiness))
	if err == nil {
		err = json.Unmarshal(data, &ready)
	}
	wanted := resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusServiceUnavailable
	if err != nil || !wanted || ready.Ready != (resp.StatusCode == http.StatusOK) {
		return nil, time.Time{}, fmt.Errorf("ask %s: %s, and the answer is not that of Portcullis", ch.client.asked(), resp.Status)
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("ask %s: its answer has no date: %w", ch.client.asked(), err)
	}
	return &ready, at, nil
}
