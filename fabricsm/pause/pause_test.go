package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("it ended after %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if pause.For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("it outlasts its context: %v", time.Since(began))
		}
		if pause.For(ctx, 0) {
			t.Error("a context that has ended is not noticed")
		}
	})
}
