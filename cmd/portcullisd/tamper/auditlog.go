package tamper

import (
	"fmt"
	"time"

	"portcullis/api/audit/verifier"
)

// VerifyEvery is the pause between two verifications of the audit log.
const VerifyEvery = time.Hour

// AuditDetail returns what /readyz shows of the audit log: "" while it is whole.
func AuditDetail(now *verifier.State) string {
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
