package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"portcullis/api/events"
	"portcullis/api/events/cloudevent"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// state is what is on record of a webhook. The key is its name.
type state struct {
	Position string    `json:"position"`           // events up to it were delivered, wait, or are not wanted
	Sent     time.Time `json:"sent,omitzero"`      // the last delivery
	Failing  time.Time `json:"failing,omitzero"`   // since when all attempts fail; zero: they do not
	Reported bool      `json:"reported,omitempty"` // there was an event that it fails
	Kind     string    `json:"kind,omitempty"`     // of the receiver that was reported; empty: KindWebhook
	Error    string    `json:"error,omitempty"`    // of the last attempt
}

func states() store.Collection[state] { return store.NewCollection[state]("webhook/state", 1) }

// letter is a message that was not delivered yet. The key is the name of the webhook and the id.
type letter struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"` // of the event
	Severity string          `json:"severity"`
	Body     json.RawMessage `json:"body"`
	First    time.Time       `json:"first"` // when it was to be sent first
	Next     time.Time       `json:"next"`  // when it is due again
	Attempts int             `json:"attempts"`
	Error    string          `json:"error,omitempty"`    // of the last attempt
	Replayed bool            `json:"replayed,omitempty"` // it was a dead letter
}

// waiting are the messages that wait for another attempt.
func waiting() store.Collection[letter] { return store.NewCollection[letter]("webhook/waiting", 1) }

// dead are those that are not tried any more.
func dead() store.Collection[letter] { return store.NewCollection[letter]("webhook/dead", 1) }

// compare orders messages: the oldest first, and those of one time, which were sent once more together, as their events happened.
func compare(a, b letter) int {
	x, okX := events.ParsePosition(a.ID)
	y, okY := events.ParsePosition(b.ID)
	if !okX || !okY {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.ID, b.ID))
	}
	return cmp.Or(a.First.Compare(b.First), x.Compare(y))
}

func keyOf(name, id string) string { return name + "/" + id }

// letters returns the messages of a collection that are of a webhook, the oldest first.
func letters(ctx context.Context, from store.Reader, c store.Collection[letter], name string) ([]letter, int64, error) {
	list, revision, err := c.List(ctx, from, name+"/")
	out := make([]letter, 0, len(list))
	for i := range list {
		out = append(out, list[i].Value)
	}
	slices.SortFunc(out, compare)
	return out, revision, err
}

// letterOf returns the message of an event.
func letterOf(e *v1.Event, now time.Time) (*letter, error) {
	body, err := json.Marshal(cloudevent.Of(e))
	return &letter{ID: e.ID, Type: e.Type, Severity: e.Severity, Body: body, First: now.UTC().Round(0)}, err
}

// Filter says which events a webhook has.
type Filter struct {
	Types    []string // empty: all
	Severity string   // this severe or more; empty: all
	Also     []string // types that are wanted whatever is above
}

// wants reports whether a webhook has a change. Of events that hosts cause often it has those that the audit log has, so that no host
// can cause many requests.
func (f *Filter) wants(c *events.Change) bool {
	return (c.Reported || c.Merged) && (slices.Contains(f.Also, c.Event.Type) || f.Selects(&c.Event))
}

// Selects reports whether an event is of the types and severities.
func (f *Filter) Selects(e *v1.Event) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) && events.Matches(&v1.EventQuery{Severity: f.Severity}, e)
}
