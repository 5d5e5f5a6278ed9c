package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/store"
)

// TestStartWaitsForStore: while the store is away, a start asks it again; it ends with any
// other error, and when the end is asked for.
func TestStartWaitsForStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := ""
		w := &Waiter{Log: slog.New(slog.DiscardHandler), Status: func(line string) { said = line }}
		away, other := fmt.Errorf("read: %w", store.ErrAway), errors.New("no such revision")
		for _, tt := range []struct {
			name    string
			answers []error
			want    error
		}{
			{"it answers", []error{nil}, nil},
			{"it is away for a while", []error{away, away, fmt.Errorf("read: %w", context.DeadlineExceeded), nil}, nil},
			{"it lacks what is asked for", []error{away, other}, other},
		} {
			said = ""
			calls, began := 0, time.Now()
			err := w.Answered(t.Context(), tt.name, func() error { calls++; return tt.answers[calls-1] })
			if !errors.Is(err, tt.want) || err != nil && tt.want == nil || calls != len(tt.answers) {
				t.Errorf("%s: %v after %d calls, want %v after %d", tt.name, err, calls, tt.want, len(tt.answers))
			}
			if waited := time.Since(began); waited != time.Duration(len(tt.answers)-1)*Pause {
				t.Errorf("%s: it waited for %v", tt.name, waited)
			}
			if want := "waits for the store, " + tt.name; len(tt.answers) > 1 && said != want {
				t.Errorf("the status says %q, want %q", said, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*Pause+Pause/2)
		defer cancel()
		if err := w.Answered(ctx, "for ever", func() error { return away }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end is asked for: %v", err)
		}
	})
}

// A member that cannot follow the cluster's list rests and tries again, and ends with its context.
func TestFollowRevoked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, calls := time.Now(), 0
		FollowRevoked(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			if calls++; calls == 3 {
				cancel()
			}
			return store.ErrAway
		})
		if calls != 3 || time.Since(began) != 2*revokedPause {
			t.Errorf("%d calls within %v", calls, time.Since(began))
		}
	})
}
