package agent

import (
	"crypto/rand"
	"encoding/hex"
)

// traceOf names a run, so that what the agent logs and what the service traces are found together.
type traceOf struct {
	id   [16]byte
	span [8]byte
}

// newTrace returns a trace of its own, at random.
func newTrace() (t traceOf) {
	rand.Read(t.id[:])
	rand.Read(t.span[:])
	return t
}

// String returns the id of the trace, 32 hexadecimal digits.
func (t traceOf) String() string { return hex.EncodeToString(t.id[:]) }

// parent returns the traceparent of requests (W3C Trace Context). It says that the trace is not recorded: the agent sends no
// spans, and must not have others record theirs.
func (t traceOf) parent() string {
	return "00-" + t.String() + "-" + hex.EncodeToString(t.span[:]) + "-00"
}
