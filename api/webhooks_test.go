package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook/delivery"
)

// closed is a server that takes no message.
type closed struct{}

func (closed) Send(context.Context, string, time.Time, []byte) error {
	return errors.New("connection refused")
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	hooks := delivery.New(delivery.Options{
		Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.DiscardHandler),
		Webhooks: []delivery.Webhook{{Name: "siem", URL: "https://siem.test/", Sender: closed{}, Filter: delivery.Filter{Severity: "warning"}}},
	})
	f := newFixture(t, unlimited, func(o *api.Options) { o.Webhooks = hooks })
	var list v1.Webhooks
	if w := f.do("GET", "/v1/webhooks", f.viewer, ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &list) != nil || len(list.Items) != 1 || list.Items[0].Name != "siem" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var dead v1.DeadLetters
	if w := f.do("GET", "/v1/webhooks/siem/dead-letters", f.viewer, ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &dead) != nil || dead.Items == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var test v1.WebhookTest
	if w := f.do("POST", "/v1/webhooks/siem/test", f.operator, ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &test) != nil || test.Error != "connection refused" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do("POST", "/v1/webhooks/siem/replay", f.operator, `{"reason":"r"}`); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantProblem(t, f.do("POST", "/v1/webhooks/siem/replay", f.operator, `{"ids":["none"],"reason":"r"}`), 404, "webhook_unknown")
	wantProblem(t, f.do("POST", "/v1/webhooks/siem/test", f.viewer, ""), 403, v1.CodeForbidden)
	wantProblem(t, f.do("GET", "/v1/webhooks/other/dead-letters", f.viewer, ""), 404, "webhook_unknown")
	bare := newFixture(t)
	wantProblem(t, bare.do("GET", "/v1/webhooks", bare.viewer, ""), 503, v1.CodeUnavailable)
	wantProblem(t, bare.do("POST", "/v1/webhooks/siem/test", bare.operator, ""), 503, v1.CodeUnavailable)
}
