package admission

import (
	"portcullis/api/attestation"
	"portcullis/attest"
)

// Judge decides what admission relies on. Services use Strict. Drills inject others, to show what it prevents.
type Judge interface {
	attestation.Judge
	// NeedsSeal reports whether a host is admitted only after it was handed over and can attest nothing more.
	NeedsSeal() bool
	// KeepsUnseen reports whether a host keeps its memberships while a port of it is not seen.
	KeepsUnseen() bool
}

// Strict is the judge of services.
type Strict struct{}

// Review implements Judge: verdicts stay as they are.
func (Strict) Review(*attest.Verdict) {}

// Matters implements Judge: every reason does.
func (Strict) Matters(attest.Reason) bool { return true }

// NeedsReference implements Judge.
func (Strict) NeedsReference() bool { return true }

// NeedsSeal implements Judge.
func (Strict) NeedsSeal() bool { return true }

// KeepsUnseen implements Judge.
func (Strict) KeepsUnseen() bool { return true }
