package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/leader"
	"portcullis/api/webhook/delivery"
)

const (
	// webhookRole is the role in which one of several instances sends events to webhooks.
	webhookRole = "webhooks"
	// webhookTTL is how long no event is sent after the instance that does so was killed.
	webhookTTL = 10 * time.Second
)

// startWebhooks has events sent to the webhooks that the configuration names: by this instance, or by the one of several that leads. If it
// names none, there is nothing to send and to show.
func (s *service) startWebhooks(ctx context.Context, group *errgroup.Group) *delivery.Service {
	out := delivery.New(delivery.Options{Store: s.store, Webhooks: s.parts.Webhooks, Log: s.log})
	if len(s.parts.Webhooks) == 0 {
		return out
	}
	if s.name == "" {
		group.Go(func() error { out.Run(ctx, nil); return nil })
		return out
	}
	one := leader.New(leader.Options{Store: s.store, Role: webhookRole, Instance: s.name, TTL: webhookTTL, Log: s.log})
	group.Go(func() error {
		return one.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			out.Run(ctx, t.Guard)
			return nil
		})
	})
	return out
}
