// Package chain is the entries of the audit log as they are chained, without the store that keeps them: for
// programs that verify a log which they were given.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Entry is one link of the chain.
type Entry struct {
	Seq    uint64    `json:"seq"` // from 1, without gaps
	Time   time.Time `json:"time"`
	Actor  string    `json:"actor"`            // who: a credential's name, "agent:HOST" once its TPM answered, "source:ADDRESS" before, or "service"
	Action string    `json:"action"`           // what, for example "host.assign"
	Object string    `json:"object"`           // of what, for example "host/compute-01"
	Code   string    `json:"code,omitempty"`   // reason code, for refusals and decisions
	Detail string    `json:"detail,omitempty"` // one sentence; never a secret
	Reason string    `json:"reason,omitempty"` // why, in the words of the actor
	// Request is the id of the request that it was done for, as the log of the service has it, and Source the address that the
	// request came from; empty: it was done for none, or the request came by a socket of the machine.
	Request string `json:"request,omitempty"`
	Source  string `json:"source,omitempty"`
	Before  string `json:"before,omitempty"` // digest of the object's record before, empty: did not exist
	After   string `json:"after,omitempty"`  // and after
	Prev    string `json:"prev"`             // Hash of the entry before, empty in the first
	Hash    string `json:"hash"`             // of all of the above
}

// BranchAction is the action of the entry by which an operator accepted a state that was rolled back: the log goes on from
// it, on another branch. It also does so from an entry by which an operator accepted a break (AcceptAction). Anchors of
// entries that are gone or altered are then no longer a fault of the log.
const BranchAction = "audit.branch"

// Head is the end of the chain.
type Head struct {
	Seq    uint64 `json:"seq"`
	Hash   string `json:"hash"`
	Branch uint64 `json:"branch,omitempty"` // how many entries began another branch
}

// After returns the head of a chain that ended at h and goes on with e, whose Seq and Hash are set.
func (h Head) After(e *Entry) Head {
	next := Head{Seq: e.Seq, Hash: e.Hash, Branch: h.Branch}
	if e.Action == BranchAction || e.Action == AcceptAction {
		next.Branch++
	}
	return next
}

// Sum returns the hash that belongs to the entry: the SHA-256 of its JSON with an empty Hash, in
// hexadecimal. Field order is that of the struct, so the bytes are always the same.
func (e Entry) Sum() (string, error) {
	e.Hash = ""
	b, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("digest of audit entry %d: %w", e.Seq, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Causes of a Break.
const (
	Altered    = "altered"     // an entry is not as it was written
	Cut        = "cut"         // entries are missing
	RolledBack = "rolled-back" // the log is whole, and is not the one that was verified before
)

// Break is the error about a log that is not whole.
type Break struct {
	Cause    string // Altered, Cut or RolledBack
	Seq      uint64 // of the first entry that does not fit; of the first that is missing
	Text     string
	From, To Head // the last entry that was verified before, and the one that the log goes on from
}

// Error implements error.
func (b *Break) Error() string { return b.Text }

// broken returns the break of the chain before what follows the entry to.
func (c *Chain) broken(cause string, seq uint64, to Head, format string, args ...any) error {
	return &Break{Cause: cause, Seq: seq, Text: fmt.Sprintf(format, args...), From: c.head, To: to}
}

// Chain verifies entries one after the other, in the order of the log. The zero Chain is before the first.
type Chain struct{ head Head }

// Head returns the last entry that was verified.
func (c *Chain) Head() Head { return c.head }

// Add verifies that e is the next entry of the chain and is as it was written. The error is a *Break where it is not.
func (c *Chain) Add(e *Entry) error {
	if e.Seq != c.head.Seq+1 {
		return c.broken(Cut, c.head.Seq+1, Head{e.Seq - min(1, e.Seq), e.Prev, c.head.Branch}, "audit entry %d is missing: found %d after %d", c.head.Seq+1, e.Seq, c.head.Seq)
	}
	if e.Prev != c.head.Hash {
		return c.broken(Altered, e.Seq, Head{c.head.Seq, e.Prev, c.head.Branch}, "audit entry %d does not follow entry %d: the chain was cut there", e.Seq, c.head.Seq)
	}
	sum, err := e.Sum()
	if err != nil {
		return err
	}
	if sum != e.Hash {
		return c.broken(Altered, e.Seq, Head{e.Seq, e.Hash, c.head.Branch}, "audit entry %d was altered: its hash is %.12s, that of its content is %.12s", e.Seq, e.Hash, sum)
	}
	c.head = c.head.After(e)
	return nil
}

// End verifies that the chain ends at head. The error is a *Break.
func (c *Chain) End(head Head) error {
	if c.head != head {
		return c.broken(Cut, c.head.Seq+1, head, "audit chain ends at entry %d with hash %.12s, its head says %d and %.12s: entries were removed",
			c.head.Seq, c.head.Hash, head.Seq, head.Hash)
	}
	return nil
}
