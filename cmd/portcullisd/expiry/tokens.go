package expiry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Refusals records requests with tokens that have ended. It implements api.EndedTokens.
type Refusals struct {
	Store *store.Store
	Log   *slog.Logger
}

// RefusedToken implements api.EndedTokens: it writes to log and audit log that a token was shown which has ended.
func (r *Refusals) RefusedToken(ctx context.Context, token, source string, ended time.Time) {
	r.Log.Warn("a token that has ended was refused", "token", token, "ended", stampUTC(ended), "source", source)
	_, err := r.Store.Update(ctx, func(tx *store.Tx) error {
		return audit.Append(ctx, tx, audit.Entry{
			Time: time.Now(), Actor: token, Action: "token.refuse", Object: "token/" + token, Code: "token_ended",
			Detail: fmt.Sprintf("shown from %s; it ended at %s", source, stampUTC(ended)),
		})
	})
	if err != nil {
		r.Log.Error("that a token was refused which has ended was not recorded", "error", err)
	}
}

func stampUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// tokensTold is what the last event said of tokens, by cause.
type tokensTold map[string]string

// tokensEvent records an event that lists which tokens end soon, and which have ended, once for each such list.
func (w *Watcher) tokensEvent(ctx context.Context, now time.Time, told tokensTold) {
	lists := map[string][]string{}
	for _, p := range w.Tokens().All() {
		switch {
		case p.Ended(now):
			lists["ended"] = append(lists["ended"], fmt.Sprintf("%q at %s", p.Name, stampUTC(p.Expires)))
		case p.Soon(now):
			lists["soon"] = append(lists["soon"], fmt.Sprintf("%q at %s", p.Name, stampUTC(p.Expires)))
		}
	}
	for _, cause := range []string{"ended", "soon"} {
		seen := strings.Join(lists[cause], ", ")
		if seen == told[cause] {
			continue
		}
		if seen == "" {
			delete(told, cause)
			continue
		}
		w.Log.Warn("operator tokens", "cause", cause, "tokens", seen)
		_, err := w.Store.Update(ctx, func(tx *store.Tx) error {
			return events.Record(ctx, tx, now, v1.Event{
				Type: events.TokenEnds, By: events.ByService, Cause: cause,
				Expected: "tokens that are good for 30 days more, or for a third of their life", Seen: seen,
				Do: "portcullisd token makes another one; then: systemctl reload portcullisd",
			})
		})
		if err != nil {
			w.Log.Error("that tokens end was not recorded", "error", err)
			continue
		}
		told[cause] = seen
	}
}
