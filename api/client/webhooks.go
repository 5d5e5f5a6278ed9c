package client

import (
	"context"

	v1 "portcullis/api/v1"
)

// Webhooks asks about the servers that events are sent to.
type Webhooks struct{ c *Client }

// Webhooks returns the operations about webhooks.
func (c *Client) Webhooks() Webhooks { return Webhooks{c} }

// List returns the webhooks that the configuration names, and how they are.
func (g Webhooks) List(ctx context.Context) (*v1.Webhooks, error) {
	return ask[v1.Webhooks](ctx, g.c, listWebhooks, nil)
}

// DeadLetters returns the messages to a webhook that are not tried any more.
func (g Webhooks) DeadLetters(ctx context.Context, name string) (*v1.DeadLetters, error) {
	return ask[v1.DeadLetters](ctx, g.c, listDeadLetters, nil, name)
}

// Replay has dead letters of a webhook sent once more.
func (g Webhooks) Replay(ctx context.Context, name string, in v1.Replay) (*v1.Replayed, error) {
	return ask[v1.Replayed](ctx, g.c, replayDeadLetters, in, name)
}

// Test sends a message that is about no event to a webhook.
func (g Webhooks) Test(ctx context.Context, name string) (*v1.WebhookTest, error) {
	return ask[v1.WebhookTest](ctx, g.c, testWebhook, nil, name)
}
