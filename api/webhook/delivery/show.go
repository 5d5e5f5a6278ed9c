package delivery

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// List returns the webhooks and how they are.
func (s *Service) List(ctx context.Context) (*v1.Webhooks, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out := &v1.Webhooks{Items: []v1.Webhook{}}
	for i := range s.o.Webhooks {
		h := &s.o.Webhooks[i]
		now, err := store.Optional(states().Get(ctx, snap, h.Name))
		if err != nil {
			return nil, refusal.Explain(err)
		}
		waits, _, err := letters(ctx, snap, waiting(), h.Name)
		if err != nil {
			return nil, refusal.Explain(err)
		}
		gone, _, err := letters(ctx, snap, dead(), h.Name)
		if err != nil {
			return nil, refusal.Explain(err)
		}
		out.Items = append(out.Items, v1.Webhook{
			Name: h.Name, Kind: h.kind(), URL: h.URL, Types: h.Filter.Types, Severity: h.Filter.Severity, Position: now.Position,
			Delivered: now.Sent, Failing: now.Failing, Error: now.Error, Waiting: len(waits), Dead: len(gone),
		})
	}
	return out, nil
}

// DeadLetters returns the messages to a webhook that are not tried any more, the oldest first.
func (s *Service) DeadLetters(ctx context.Context, name string) (*v1.DeadLetters, error) {
	if _, err := s.find(name); err != nil {
		return nil, err
	}
	list, _, err := letters(ctx, s.o.Store, dead(), name)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out := &v1.DeadLetters{Items: []v1.DeadLetter{}}
	for i := range list {
		l := &list[i]
		d := v1.DeadLetter{ID: l.ID, Type: l.Type, Severity: l.Severity, First: l.First, Attempts: l.Attempts, Error: l.Error}
		if err := json.Unmarshal(l.Body, &d.Message); err != nil {
			return nil, fmt.Errorf("dead letter %s: %w", l.ID, err)
		}
		out.Items = append(out.Items, d)
	}
	return out, nil
}

// Replay has dead letters sent once more, those with the ids or all.
func (s *Service) Replay(ctx context.Context, actor, name string, in v1.Replay) (*v1.Replayed, error) {
	if _, err := s.find(name); err != nil {
		return nil, err
	}
	var out *v1.Replayed
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		out = &v1.Replayed{}
		list, _, err := letters(ctx, tx, dead(), name)
		if err != nil {
			return err
		}
		for _, id := range in.IDs {
			if !slices.ContainsFunc(list, func(l letter) bool { return l.ID == id }) {
				return &refusal.Error{
					Code: unknown, Status: refusal.NotFound, Detail: fmt.Sprintf("webhook %s has no dead letter %q", name, refusal.ClipTo(id, 128)),
					Hint: "portcullis webhook dead-letters " + name + " shows those that there are",
				}
			}
		}
		now := s.o.Now().UTC().Round(0)
		for i := range list {
			l := list[i]
			if len(in.IDs) > 0 && !slices.Contains(in.IDs, l.ID) {
				continue
			}
			l.First, l.Next, l.Attempts, l.Replayed = now, now.Add(together), 0, true
			dead().Delete(tx, keyOf(name, l.ID))
			if err := waiting().Put(tx, keyOf(name, l.ID), l); err != nil {
				return err
			}
			out.Count++
		}
		if out.Count == 0 {
			return nil
		}
		return audit.Append(ctx, tx, audit.Entry{
			Time: now, Actor: actor, Action: "webhook.replay", Object: "webhook/" + name, Code: "ok", Detail: fmt.Sprintf("%d dead letters; %s", out.Count, in.Reason),
		})
	})
	return out, refusal.Explain(err)
}

// Test sends a message that is about no event, once, and returns what came of it.
func (s *Service) Test(ctx context.Context, actor, name string) (*v1.WebhookTest, error) {
	h, err := s.find(name)
	if err != nil {
		return nil, err
	}
	var random [8]byte
	rand.Read(random[:])
	now := s.o.Now().UTC().Round(0)
	id := "test-" + hex.EncodeToString(random[:])
	body, err := json.Marshal(v1.CloudEvent{
		SpecVersion: "1.0", ID: id, Source: "/portcullis", Type: "portcullis.webhook.test", Subject: "webhook/" + name, Time: now,
		DataContentType: "application/json", Severity: events.Info,
		Data: v1.Event{ID: id, Type: "webhook.test", Severity: events.Info, By: events.ByService, Cause: "test", First: now, Last: now, Count: 1, Seen: "a test by " + actor},
	})
	if err != nil {
		return nil, err
	}
	out := &v1.WebhookTest{ID: id}
	if err := h.Sender.Send(ctx, id, now, body); err != nil {
		out.Error = refusal.ClipTo(err.Error(), maxError)
	}
	out.Took = s.o.Now().Sub(now).Round(time.Millisecond).String()
	return out, nil
}
