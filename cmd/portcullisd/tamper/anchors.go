// Package tamper starts what detects that the state was rolled back, that the clock was set back, or that the audit log is not
// what was written, and has readiness report it. A start goes on only when state and clock were compared with what is recorded.
package tamper

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"portcullis/api/audit/anchor"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/storage"
)

// flushTime bounds how long the end of the service waits for the last anchors, and for the last time.
const flushTime = 8 * time.Second

// Judge is what compares the state with its anchors.
type Judge interface {
	Judge(ctx context.Context) error
}

// JudgeState compares the state with what is anchored of it. It returns nil only when that is done: a state that was rolled
// back must be in review before anything of it counts. status is called with what a start waits for.
func JudgeState(ctx context.Context, j Judge, log *slog.Logger, status func(line string)) error {
	return storage.Retry(ctx, func() error { return j.Judge(ctx) }, func(err error) bool {
		log.Error("the state is not compared with its anchors yet, and nothing of it counts before", "error", err, "retry_in", storage.Pause)
		status("waits for the store, to compare the audit log with its anchors")
		return true
	})
}

// Flusher writes what was decided last.
type Flusher interface {
	Flush(ctx context.Context)
}

// Flush has f write what was decided last, at the end of the service, after ctx has ended.
func Flush(ctx context.Context, f Flusher) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	f.Flush(ctx)
}

// Anchors is what anchors the audit log.
type Anchors interface {
	States() []anchor.State
	Held() bool // nothing is anchored before a review has ended
}

// anchorsCondition returns which sinks have lacked the head of the audit log for at least after. The service does its job though.
func anchorsCondition(a Anchors, after time.Duration, now time.Time) v1.Condition {
	var lacking []string
	for _, s := range a.States() {
		if !s.Since.IsZero() && s.Err != nil && now.Sub(s.Since) >= after {
			lacking = append(lacking, fmt.Sprintf("%s lacks the head of the audit log since %s: %v", s.Name, s.Since.UTC().Format(time.RFC3339), s.Err))
		}
	}
	if a.Held() {
		lacking = append(lacking, "nothing is anchored before the review of the state has ended")
	}
	return v1.Condition{Name: "anchors", OK: true, Detail: strings.Join(lacking, "; ")}
}
