package events

import (
	"context"
	"slices"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// ended is a pair of types: the one begins what the other ends. With same, both have the same causes, and only what has the same
// cause ends.
type ended struct {
	begin, end string
	same       bool
}

// pairs lists what lasts. Types in no pair report a moment.
func pairs() []ended {
	return []ended{
		{BrakeEngaged, BrakeEnded, true},
		{EvidenceOutdated, EvidenceCurrent, true},
		{AuditBroken, AuditWhole, false},
		{FabricBlind, FabricSeen, false},
		{AnchorsFailing, AnchorsWritten, true},
		{StoreShort, StoreRoom, false},
		{ClockJump, ClockSteady, false},
		{WebhookFailing, WebhookDelivers, true},
		{DriftFound, DriftEnded, true},
		{IsolationLost, IsolationRegained, false},
		{IsolationUnproven, IsolationRegained, false},
	}
}

// EndOf returns the type that ends what a type begins, and whether only what has the same cause ends. Empty: it reports a moment.
func EndOf(begin string) (end string, sameCause bool) {
	all := pairs()
	i := slices.IndexFunc(all, func(p ended) bool { return p.begin == begin })
	if i < 0 {
		return "", false
	}
	return all[i].end, all[i].same
}

// BegunBy returns the types of what a type ends; none: it ends nothing.
func BegunBy(end string) []string {
	var out []string
	for _, p := range pairs() {
		if p.end == end {
			out = append(out, p.begin)
		}
	}
	return out
}

// Lasting returns the newest event of a type and cause that no later one ended; nil: there is none. An empty cause: of any. It is for what
// is about no host: a service that starts ends what it reported before, and is not so any more.
func Lasting(ctx context.Context, r store.Reader, begin, cause string) (*v1.Event, error) {
	end, same := EndOf(begin)
	began, err := newest(ctx, r, begin, cause)
	if err != nil || began == nil {
		return nil, err
	}
	if !same {
		cause = ""
	}
	ended, err := newest(ctx, r, end, cause)
	if err != nil || ended != nil && !ended.Last.Before(began.Last) {
		return nil, err
	}
	return began, nil
}

// newest returns the newest event of a type and cause.
func newest(ctx context.Context, r store.Reader, kind, cause string) (*v1.Event, error) {
	list, _, err := rows().List(ctx, r, kind+"/")
	var out *v1.Event
	at := time.Time{}
	for i := range list {
		if e := &list[i].Value.Event; (cause == "" || e.Cause == cause) && e.Last.After(at) {
			out, at = e, e.Last
		}
	}
	return out, err
}
