package settle

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/admission"
	"portcullis/api/fabric/owed"
	"portcullis/api/store"
	"portcullis/api/store/memory"
)

// recorder keeps the removals that it records, once it does not refuse them any more.
type recorder struct {
	refusals []error // of the first calls
	got      []admission.Ordered
}

func (r *recorder) Record(_ context.Context, o admission.Ordered) (int64, error) {
	if len(r.refusals) > 0 {
		err := r.refusals[0]
		r.refusals = r.refusals[1:]
		return 0, err
	}
	r.got = append(r.got, o)
	return 7, nil
}

// A removal that the store does not take waits, readiness says so, and each cause is logged once. A store that is away is
// logged by others.
func TestSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := owed.New(slog.New(slog.DiscardHandler))
		began := time.Now().UTC()
		k.AddRemoval(owed.Removal{Host: "h1", Cluster: "train", Epoch: 3, Actor: "olga", Time: began, Reason: "it is loud"})
		refused := errors.New("the record is damaged")
		r := &recorder{refusals: []error{store.ErrAway, refused, refused}}
		var log bytes.Buffer
		var waits []string
		s := &Settler{
			Owed: k, Store: store.New(memory.New(time.Now), ""), Recorder: r, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Waits: func(detail string) { waits = append(waits, detail) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*every+every/2)
		defer cancel()
		s.Run(ctx)
		if d := cmp.Diff([]admission.Ordered{{Host: "h1", Cluster: "train", Epoch: 3, Actor: "olga", Time: began, Reason: "it is loud"}}, r.got); d != "" {
			t.Errorf("recorded (-want +got):\n%s", d)
		}
		if len(waits) != 5 || waits[4] != "" {
			t.Fatalf("waits %q", waits)
		}
		for _, w := range waits[:3] {
			if !strings.HasPrefix(w, "0 facts, 1 removals and 0 entries of the audit log wait ") || !strings.HasSuffix(w, " for the store since "+began.Format(time.RFC3339)) {
				t.Errorf("waits %q", w)
			}
		}
		if n := strings.Count(log.String(), "does not take what it is owed"); n != 1 {
			t.Errorf("the log says it %d times, want once:\n%s", n, &log)
		}
	})
}
