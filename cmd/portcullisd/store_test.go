package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/store"
)

// TestStartWaitsForStore: while the store is away, a start asks it again; it ends with any
// other error, and when the end is asked for.
func TestStartWaitsForStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{log: slog.New(slog.DiscardHandler)}
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
			calls, began := 0, time.Now()
			err := s.answered(t.Context(), tt.name, func() error { calls++; return tt.answers[calls-1] })
			if !errors.Is(err, tt.want) || err != nil && tt.want == nil || calls != len(tt.answers) {
				t.Errorf("%s: %v after %d calls, want %v after %d", tt.name, err, calls, tt.want, len(tt.answers))
			}
			if waited := time.Since(began); waited != time.Duration(len(tt.answers)-1)*judgeRetry {
				t.Errorf("%s: it waited for %v", tt.name, waited)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*judgeRetry+judgeRetry/2)
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		err := s.answered(ctx, "for ever", func() error { return away })
		if err == nil || ended(ctx, group, err) != nil {
			t.Errorf("the end is asked for: %v, then %v, want nil", err, ended(ctx, group, err))
		}
		if err := ended(t.Context(), group, other); !errors.Is(err, other) {
			t.Errorf("a start that failed ends with %v", err)
		}
	})
}
