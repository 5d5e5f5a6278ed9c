package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// WebhookKeeper shows the webhooks that the configuration names, and what was not delivered. Package api/webhook/delivery implements it.
type WebhookKeeper interface {
	List(ctx context.Context) (*v1.Webhooks, error)
	DeadLetters(ctx context.Context, name string) (*v1.DeadLetters, error)
	// Replay has dead letters sent once more.
	Replay(ctx context.Context, actor, name string, in v1.Replay) (*v1.Replayed, error)
	// Test sends a message that is about no event.
	Test(ctx context.Context, actor, name string) (*v1.WebhookTest, error)
}

type (
	webhookInput struct {
		Name string `path:"name" maxLength:"63" doc:"as the configuration names the webhook"`
	}
	replayInput struct {
		Name string `path:"name" maxLength:"63" doc:"as the configuration names the webhook"`
		Body v1.Replay
	}
)

// hooks registers an operation that needs a WebhookKeeper.
func hooks[I, T any](s *Server, a huma.API, op operation, do func(WebhookKeeper, context.Context, *I) (*T, error)) {
	op.tag = "event"
	register(s, a, op, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		if s.webhooks == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "no webhooks are configured", "name them in the configuration (webhooks.to) and start the service again")
		}
		body, err := do(s.webhooks, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

func webhookRoutes(s *Server, a huma.API) {
	hooks(s, a, operation{
		id: "list-webhooks", method: http.MethodGet, path: "/v1/webhooks", access: accessAudit,
		summary: "List the webhooks that the configuration names, and how they are",
	}, func(k WebhookKeeper, ctx context.Context, _ *struct{}) (*v1.Webhooks, error) { return k.List(ctx) })
	hooks(s, a, operation{
		id: "list-dead-letters", method: http.MethodGet, path: "/v1/webhooks/{name}/dead-letters", access: accessAudit,
		summary: "List the messages to a webhook that failed for three days and are not tried any more, the oldest first",
	}, func(k WebhookKeeper, ctx context.Context, in *webhookInput) (*v1.DeadLetters, error) {
		return k.DeadLetters(ctx, in.Name)
	})
	hooks(s, a, operation{
		id: "replay-dead-letters", method: http.MethodPost, path: "/v1/webhooks/{name}/replay", access: accessOperate,
		summary: "Have dead letters of a webhook sent once more",
	}, func(k WebhookKeeper, ctx context.Context, in *replayInput) (*v1.Replayed, error) {
		return k.Replay(ctx, actor(ctx), in.Name, in.Body)
	})
	hooks(s, a, operation{
		id: "test-webhook", method: http.MethodPost, path: "/v1/webhooks/{name}/test", access: accessOperate,
		summary: "Send a message that is about no event to a webhook, once, and show what came of it",
	}, func(k WebhookKeeper, ctx context.Context, in *webhookInput) (*v1.WebhookTest, error) {
		return k.Test(ctx, actor(ctx), in.Name)
	})
}
