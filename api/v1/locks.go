package v1

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"portcullis/fabricsm/ib"
)

// LockRequest asks for orders for the adapters of a host.
type LockRequest struct {
	Adapters []LockAdapter `json:"adapters" minItems:"1" maxItems:"64"`
}

// LockAdapter is an adapter as the agent found it. Its content grants nothing: the key is that of the node GUID, which
// inventory must have for the host.
type LockAdapter struct {
	NodeGUID ib.GUID `json:"node_guid"`
	PSID     string  `json:"psid" maxLength:"16"`
	Ports    int     `json:"ports" minimum:"1" maximum:"254"`
	// Device and Challenge are what a file of settings for this adapter can be bound to.
	Device    string         `json:"device,omitempty" pattern:"^[0-9a-f]{12}$" doc:"base MAC of manufacture; absent: a file for it is bound to its board alone"`
	Challenge *LockChallenge `json:"challenge,omitempty" doc:"what it drew; absent: a file for it is bound to less"`
	Less      string         `json:"less,omitempty" maxLength:"300" doc:"why there is no challenge, or no device"`
	Locked    bool           `json:"locked,omitempty" doc:"MLOCK is locked: it draws nothing before it is open"`
	Settings  []LockSetting  `json:"settings" maxItems:"256" doc:"what the adapter knows, and values of the factory, which a file for it is made from"`
}

// LockChallenge is the challenge that an adapter drew, as the adapter reported it. A file that is signed for it is good on
// that adapter, and until it draws again or is reset.
type LockChallenge struct {
	Device string `json:"device" pattern:"^[0-9a-f]{12}$" doc:"base MAC"`
	PSID   string `json:"psid" minLength:"1" maxLength:"16"`
	Nonce  string `json:"nonce" pattern:"^[0-9a-f]{64}$" doc:"32 bytes"`
}

// Bindings of a file of settings, from loose to tight.
const (
	BoundBoard     = "board"
	BoundDevice    = "device"
	BoundChallenge = "challenge"
)

// LockBinding says which adapters take a file.
type LockBinding struct {
	To        string `json:"to" enum:"board,device,challenge" doc:"board: each with that PSID; device: one; challenge: one, once"`
	PSID      string `json:"psid,omitempty" doc:"of the board; a file for a device does not name it"`
	Device    string `json:"device,omitempty" doc:"base MAC"`
	Challenge string `json:"challenge,omitempty" doc:"what it drew, 64 hexadecimal digits"`
	Less      string `json:"less,omitempty" doc:"why it is bound to no more, as the agent says"`
}

// LockSetting is one setting of an adapter.
type LockSetting struct {
	Address   uint32 `json:"address" doc:"dword 1 of the item's header: class and index"`
	Supported *bool  `json:"supported,omitempty" doc:"absent: not known"`
	Default   []byte `json:"default,omitempty" maxLength:"700" doc:"the factory's value as the adapter answered: header and data"`
}

// LockOrders say what to do with the adapters of a host.
type LockOrders struct {
	Orders []LockOrder `json:"orders"`
	// Profile is the site's profile of settings in YAML; empty: the product's.
	Profile string `json:"profile"`
	Report  string `json:"report" doc:"ticket to say once what became of the orders"`
}

// LockOrder is for one adapter. Its keys are for its lock alone.
type LockOrder struct {
	NodeGUID ib.GUID   `json:"node_guid"`
	Action   string    `json:"action" enum:"lock,unlock,open" doc:"unlock: the adapter leaves, and stays open; open: it is to draw a challenge for an order that is asked for next"`
	File     []byte    `json:"file,omitempty" doc:"signed settings for this adapter; absent: they are written plainly"`
	Lock     LockKey   `json:"lock,omitzero" doc:"to lock with"`
	Held     []LockKey `json:"held,omitempty" doc:"it may be locked with, newest first"`
}

// LockReport is an agent's report of the outcome of its orders. It is a host's word: it is reported, and nothing follows
// from it.
type LockReport struct {
	Adapters []LockOutcome `json:"adapters" minItems:"1" maxItems:"64"`
}

// LockOutcome is what became of one order.
type LockOutcome struct {
	NodeGUID ib.GUID     `json:"node_guid"`
	Code     string      `json:"code" enum:"done,unreadable,foreign,out-of-band,refused,not-compliant,reset,firewall,not-held,not-ours,challenge,order" doc:"done, or what failed: foreign: locked with a key that is none of ours; not-ours: it does not open with the key it was locked with"`
	Detail   string      `json:"detail,omitempty" maxLength:"512" doc:"the agent's words"`
	Found    []LockFound `json:"found,omitempty" maxItems:"256" doc:"settings as they were once the adapter was open, before any was written"`
}

// LockDone is the code of an order that was carried out.
const LockDone = "done"

// LockFound is a setting as it was found.
type LockFound struct {
	Class    uint8  `json:"class"`
	Index    uint32 `json:"index"`
	Port     uint8  `json:"port,omitzero"`
	Host     uint8  `json:"host,omitzero"`
	Function uint8  `json:"function,omitzero"`
	Current  string `json:"current" maxLength:"1400" doc:"value in force, in hexadecimal digits"`
	Next     string `json:"next,omitempty" maxLength:"1400" doc:"value after the next reset"`
}

// Actions of an order.
const (
	ActionLock   = "lock"
	ActionUnlock = "unlock"
	ActionOpen   = "open"
)

// LockKey is a key and which one it is.
type LockKey struct {
	Epoch uint32        `json:"epoch"`
	Key   LockKeySecret `json:"key"`
}

// LockKeySecret carries a key in a message, 16 hexadecimal digits. It prints
// as ib.LockKey does.
type LockKeySecret struct{ Key ib.LockKey }

func (s LockKeySecret) String() string             { return s.Key.String() }
func (s LockKeySecret) GoString() string           { return s.Key.GoString() }
func (s LockKeySecret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.Key.String()) }

// LogValue implements slog.LogValuer.
func (s LockKeySecret) LogValue() slog.Value { return slog.StringValue(s.Key.String()) }

// MarshalText reveals the key: for messages over TLS to an attested host alone.
func (s LockKeySecret) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%016x", s.Key.Reveal()), nil
}

// UnmarshalText reads 16 hexadecimal digits.
func (s *LockKeySecret) UnmarshalText(b []byte) error {
	var v uint64
	if len(b) != 16 {
		return fmt.Errorf("lock key of %d characters, want 16", len(b))
	}
	if _, err := fmt.Sscanf(string(b), "%016x", &v); err != nil {
		return fmt.Errorf("lock key is not 16 hexadecimal digits")
	}
	s.Key = ib.NewLockKey(v)
	return nil
}

// Lock is how the lock of an adapter stands. No key is in it.
type Lock struct {
	NodeGUID ib.GUID      `json:"node_guid"`
	Host     string       `json:"host" doc:"that was last given an order for it"`
	State    string       `json:"state" enum:"ordered,proven,opening" doc:"ordered: no evidence has shown the last key yet; proven: it has; opening: an operator decided that the adapter leaves"`
	Epoch    uint32       `json:"epoch" doc:"of the last key that was given out"`
	Proven   uint32       `json:"proven" doc:"last epoch that evidence showed; 0: none"`
	Check    string       `json:"check" doc:"first 8 hexadecimal digits of the SHA-256 of the key of that epoch: a rehearsal of recovery compares it"`
	Ordered  time.Time    `json:"ordered"`
	Shown    time.Time    `json:"shown,omitzero"`
	File     string       `json:"file,omitempty" doc:"SHA-256 of the file that was signed for it"`
	Version  uint32       `json:"version,omitzero" doc:"of that file"`
	Bound    *LockBinding `json:"bound,omitempty" doc:"which adapters take that file"`
	OpenedBy string       `json:"opened_by,omitempty"`
	Reason   string       `json:"reason,omitempty"`
}

// LockQuery says which locks are asked for. Empty fields ask for all.
type LockQuery struct {
	Host string `query:"host" maxLength:"128" doc:"only of this host"`
	PageQuery
}

// LockRelease decides that an adapter leaves: it is opened permanently at its next provisioning, and gets no key.
type LockRelease struct {
	Reason string `json:"reason" minLength:"1" maxLength:"512"`
}
