package main

import (
	"fmt"
	"time"

	"portcullis/api/audit/verifier"
	"portcullis/cmd/portcullisd/readiness"
)

// verifyEvery is the pause between two verifications of the audit log.
const verifyEvery = time.Hour

// newVerifier makes what verifies the audit log.
func (s *service) newVerifier() *verifier.Verifier {
	s.status.Set(readiness.Audit, "")
	return verifier.New(verifier.Options{
		Store: s.store, Every: verifyEvery, Service: s.config.ServiceName(), Shared: s.config.Shared(), Log: s.log,
		OnState: func(now verifier.State) { s.status.Set(readiness.Audit, auditDetail(&now)) },
	})
}

// auditDetail says what /readyz shows of the audit log.
func auditDetail(now *verifier.State) string {
	if now.Broken == nil {
		return ""
	}
	good := "no verification before found it whole"
	if !now.Good.IsZero() {
		good = fmt.Sprintf("it was whole at %s with %d entries", now.Good.UTC().Format(time.RFC3339), now.Head.Seq)
	}
	more := ""
	if n := len(now.Open); n > 1 {
		more = fmt.Sprintf(", and %d more breaks", n-1)
	}
	return fmt.Sprintf("the audit log is not whole (%s) since %s: %s%s; %s", now.Broken.Cause, now.Since.UTC().Format(time.RFC3339), now.Broken.Text, more, good)
}
