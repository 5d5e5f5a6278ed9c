package inputs_test

import (
	"io"
	"log/slog"
	"testing"

	"portcullis/api/audit"
	"portcullis/api/fabric/owed"
	"portcullis/api/reason"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/fabricsm/ib"
)

// TestReasonOfMark: the audit log has the reason of the request, or else the words of the mark.
func TestReasonOfMark(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	record := inputs.AuditMarks(st, owed.New(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err := record(t.Context(), "olga", ib.Place{}, &v1.HealthMark{Mark: v1.MarkUnhealthy, Reason: "dirty cable"}); err != nil {
		t.Fatal(err)
	}
	if err := record(reason.With(t.Context(), "cable 7 is new"), "olga", ib.Place{}, &v1.HealthMark{Mark: v1.MarkNone}); err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[uint64]string{1: "dirty cable", 2: "cable 7 is new"} {
		e, err := audit.Get(t.Context(), st, seq)
		if err != nil || e.Reason != want {
			t.Errorf("entry %d: %+v, %v; want reason %q", seq, e, err, want)
		}
	}
}
