package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"portcullis/api/audit/anchor"
	"portcullis/api/review"
	v1 "portcullis/api/v1"
)

const (
	// judgeRetry is the pause before the state is compared with its anchors again.
	judgeRetry = time.Second
	// flushTime bounds how long the end of the service waits for the last anchors.
	flushTime = 8 * time.Second
)

// newAnchors makes what anchors the audit log, and holds the state against what is anchored of it. It returns before ctx
// ends only when that is done: a state that was rolled back must be in review before anything of it counts.
func (s *service) newAnchors(ctx context.Context) error {
	c := s.config
	s.anchors = anchor.New(anchor.Options{
		Store: s.store, Sinks: append([]anchor.Sink{anchor.Journal{Log: s.log}}, s.parts.Anchors...), Every: c.Audit.Every, Tell: c.Audit.TellAfter, Service: c.ServiceName(),
		Alone: len(c.Etcd.Endpoints) == 0 && c.Cluster.Name == "", Log: s.log,
	})
	for {
		err := s.anchors.Judge(ctx)
		if err == nil {
			return nil
		}
		s.log.Error("the state is not held against its anchors yet, and nothing of it counts before", "error", err, "retry_in", judgeRetry)
		notify(s.log, "STATUS=waits for the store, to compare the audit log with its anchors")
		select {
		case <-time.After(judgeRetry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flushAnchors anchors what was decided last, at the end of the service.
func (s *service) flushAnchors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	s.anchors.Flush(ctx)
}

// anchorsCondition says which sinks lack the head of the audit log. The service does its job though.
func (s *service) anchorsCondition(now time.Time) []v1.Condition {
	if s.anchors == nil {
		return nil
	}
	var lacking []string
	for _, a := range s.anchors.States() {
		if !a.Since.IsZero() && a.Err != nil && now.Sub(a.Since) >= s.config.Audit.TellAfter {
			lacking = append(lacking, fmt.Sprintf("%s lacks the head of the audit log since %s: %v", a.Name, a.Since.UTC().Format(time.RFC3339), a.Err))
		}
	}
	if s.anchors.Held() {
		lacking = append(lacking, "nothing is anchored before the review of the state has ended")
	}
	return []v1.Condition{{Name: "anchors", OK: true, Detail: strings.Join(lacking, "; ")}}
}

// reviewDetail says why a state is in review.
func reviewDetail(m *review.Mark) string {
	text := "in review since " + m.Since.Format(time.RFC3339) + ": only what backup and fabric agree on is granted; portcullis restore review"
	if len(m.Recovered) > 0 {
		text = "in review since " + m.Since.Format(time.RFC3339) + ": " + m.From() + "; only what it and the fabric agree on is granted; portcullis restore review"
	}
	if m.RolledBack != nil {
		text = "in review since " + m.Since.Format(time.RFC3339) + ": the state was rolled back: " + m.RolledBack.String() +
			"; only what it and the fabric agree on is granted; portcullis restore review"
	}
	return text
}
