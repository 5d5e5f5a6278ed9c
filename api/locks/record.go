package locks

import (
	"fmt"
	"time"

	"portcullis/api/locks/lockkey"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Record is what is known of the lock of one adapter. No key is in it: keys are
// derived from GUID and epoch.
type Record struct {
	GUID ib.GUID `json:"guid"` // node GUID, as inventory has it
	Host string  `json:"host"` // that was last given an order for it
	// Epoch is that of the last key that was given out. It is written down before
	// the key leaves the service, so that no key is ever in an adapter that is not
	// known here.
	Epoch lockkey.Epoch `json:"epoch"`
	// Proven is the last epoch of which evidence showed that it is in force; 0:
	// none, or the adapter was opened since.
	Proven  lockkey.Epoch `json:"proven"`
	Ordered time.Time     `json:"ordered"`           // when the last order was given
	Shown   time.Time     `json:"shown,omitzero"`    // when Proven was
	File    string        `json:"file,omitempty"`    // hex SHA-256 of the signed file of the last order
	Version uint32        `json:"version,omitzero"`  // of that file; versions only grow
	Bound   *Bound        `json:"bound,omitempty"`   // which adapters take that file
	Spent   []string      `json:"spent,omitempty"`   // challenges that files were signed for, the oldest first
	Open    *Decision     `json:"open,omitempty"`    // the adapter is to be opened, and not locked
	Opened  bool          `json:"opened,omitempty"`  // the last order was to open it permanently
	Drawing bool          `json:"drawing,omitempty"` // the last order was to open it, to draw a challenge for the next, and it was not proven locked since
	Held    *Held         `json:"held,omitempty"`    // what evidence showed with Proven; nil: it was not kept
}

// Held is what evidence showed of a lock that is in force, to compare with what is
// seen next.
type Held struct {
	Method string            `json:"method"`
	File   string            `json:"file,omitempty"`
	Items  map[string]string `json:"items,omitempty"` // current values in hex, by address
}

// settled reports whether evidence showed the last lock that was ordered: whatever is found otherwise now, no order of ours
// explains it.
func (r *Record) settled() bool { return r.Proven > 0 && r.Proven == r.Epoch }

// Bound says which adapters take a file of settings, as v1.LockBinding does.
type Bound struct {
	To        string `json:"to"`
	PSID      string `json:"psid,omitempty"`
	Device    string `json:"device,omitempty"`
	Challenge string `json:"challenge,omitempty"`
	Less      string `json:"less,omitempty"`
}

// String is for the audit log.
func (b *Bound) String() string {
	switch b.To {
	case v1.BoundChallenge:
		return fmt.Sprintf("challenge %s of device %s, board %s", b.Challenge, b.Device, b.PSID)
	case v1.BoundDevice:
		return "device " + b.Device
	default:
		return "board " + b.PSID
	}
}

// Decision is an operator's: an adapter leaves.
type Decision struct {
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

// Records holds each adapter's Record by node GUID.
func Records() store.Collection[Record] { return store.NewCollection[Record]("locks", 1) }

// maxHeld bounds the keys that one order has.
const maxHeld = 32

// held are the epochs that the adapter may be locked with: all since the last
// that was proven, and that one, the newest first.
func (r *Record) held() []lockkey.Epoch {
	var out []lockkey.Epoch
	for e := r.Epoch; e > 0 && e >= r.Proven && len(out) < maxHeld; e-- {
		out = append(out, e)
	}
	return out
}

// next is the epoch of the next key. While none of many was proven the last one
// is given out again: more than an order has room for must not be in doubt.
func (r *Record) next() lockkey.Epoch {
	if r.Epoch > 0 && r.Epoch-max(r.Proven, 1) >= maxHeld-1 {
		return r.Epoch
	}
	return r.Epoch + 1
}
