package locks

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// Binding is what files of settings are bound to at least. A file is always bound to
// as much as its adapter can be held to.
type Binding uint8

// Bindings, from loose to tight. The zero Binding stands for the tightest.
const (
	BoundBoard     Binding = iota + 1 // each adapter of a PSID takes the file
	BoundDevice                       // one adapter takes it, as often as it is applied
	BoundChallenge                    // one adapter takes it, once
)

var bindingNames = []string{BoundBoard: v1.BoundBoard, BoundDevice: v1.BoundDevice, BoundChallenge: v1.BoundChallenge}

func (b Binding) String() string {
	if b >= BoundBoard && b <= BoundChallenge {
		return bindingNames[b]
	}
	return fmt.Sprintf("binding %d", uint8(b))
}

// ParseBinding reads a setting.
func ParseBinding(s string) (Binding, error) {
	i := slices.Index(bindingNames, s)
	if i < int(BoundBoard) {
		return 0, fmt.Errorf("%q: want challenge, device or board", s)
	}
	return Binding(i), nil
}

// Draws reports whether adapters shall draw challenges, for files that are bound to them.
func (s *Service) Draws() bool { return s.o.Signer != nil }

// offer is what an agent has of an adapter that a file can be bound to, checked.
type offer struct {
	to    Binding
	mac   uint64
	nonce [32]byte
}

// readOffer reads it. Nothing of it is believed that attested evidence does not say as
// well: PSID and base MAC. Whether a card drew the challenge only that card knows; if it
// did not, no card takes the file.
func readOffer(a *v1.LockAdapter, attested *attestation.AttestedAdapter) (o offer, err error) {
	malformed := func(format string, args ...any) (offer, error) {
		return offer{}, refuse(refusal.Invalid, "lock_challenge", "update the agent", "adapter %v: "+format, append([]any{a.NodeGUID}, args...)...)
	}
	foreign := func(what, said, read string) (offer, error) {
		return offer{}, refuse(refusal.Refused, "lock_adapter", "attest again; if it stays, find out whose adapter it is",
			"adapter %v: its %s is %q by the order's request, and %q by the evidence", a.NodeGUID, what, said, read)
	}
	if len(a.Less) > maxLess || strings.ContainsFunc(a.Less, func(r rune) bool { return r < ' ' || r > '~' }) {
		return malformed("the reason for a looser binding is longer than %d characters, or not printable", maxLess)
	}
	o.to = BoundBoard
	if a.Device != "" {
		if o.mac, err = readMAC(a.Device); err != nil {
			return malformed("device: %v", err)
		}
		if a.Device != attested.BaseMAC {
			return foreign("base MAC", a.Device, attested.BaseMAC)
		}
		o.to = BoundDevice
	}
	c := a.Challenge
	if c == nil {
		return o, nil
	}
	mac, err := readMAC(c.Device)
	if err != nil {
		return malformed("device of the challenge: %v", err)
	}
	nonce, err := hex.DecodeString(c.Nonce)
	switch {
	case err != nil || len(nonce) != len(o.nonce) || strings.ToLower(c.Nonce) != c.Nonce:
		return malformed("the challenge is not 64 lower-case hexadecimal digits")
	case [32]byte(nonce) == [32]byte{}:
		return malformed("the challenge is all zeros: it was not drawn at random")
	case c.Device != attested.BaseMAC:
		return foreign("base MAC", c.Device, attested.BaseMAC)
	case c.PSID != attested.PSID:
		return foreign("PSID", c.PSID, attested.PSID)
	}
	return offer{to: BoundChallenge, mac: mac, nonce: [32]byte(nonce)}, nil
}

// maxLess bounds what an agent says of why there is no challenge.
const maxLess = 300

func readMAC(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 16, 48)
	if err != nil || len(s) != 12 || strings.ToLower(s) != s || v == 0 {
		return 0, errors.New("want a MAC of 12 lower-case hexadecimal digits")
	}
	return v, nil
}

// least is what files are bound to at least.
func (s *Service) least() Binding { return cmp.Or(s.o.Binding, BoundChallenge) }

// bind has the file that is asked for bound to what is offered, notes it, and sees to
// it that no challenge is signed twice.
func (s *Service) bind(ctx context.Context, tx *store.Tx, rec *Record, a *v1.LockAdapter, of offer, file *profile.Order) error {
	if of.to < s.least() {
		why := cmp.Or(a.Less, "its agent does not say why; update it")
		return refuse(refusal.Refused, "lock_binding",
			"see whether its firmware can draw challenges (docs/understand/lock.md, \"Which adapters a file is for\"); locks.binding of the service says what files are bound to at least",
			"adapter %v: the site binds files of settings to a %v, and this adapter can be held to its %v alone: %s", a.NodeGUID, s.least(), of.to, why)
	}
	rec.Bound = &Bound{To: of.to.String(), PSID: a.PSID, Less: a.Less}
	switch of.to {
	case BoundDevice:
		file.Card.Device = nvconfig.DeviceID(of.mac)
		rec.Bound.PSID, rec.Bound.Device = "", fmt.Sprintf("%012x", of.mac)
	case BoundChallenge:
		c := nvconfig.NewChallenge(of.mac, of.nonce)
		file.Challenge = &c
		rec.Bound.Device, rec.Bound.Challenge = fmt.Sprintf("%012x", of.mac), hex.EncodeToString(of.nonce[:])
		return s.spend(ctx, tx, rec)
	case BoundBoard:
	}
	return nil
}

// signed is a challenge that a file was signed for.
type signed struct {
	GUID ib.GUID   `json:"guid"`
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

// challenges holds those that were signed, by their hexadecimal digits.
func challenges() store.Collection[signed] { return store.NewCollection[signed]("lock-challenges", 1) }

// maxSpent is how many challenges of each adapter are kept, so that none of them is
// signed again. An adapter draws each at random, and has one out at a time.
const maxSpent = 64

// spend notes the challenge of an order as signed, and refuses one that was.
func (s *Service) spend(ctx context.Context, tx *store.Tx, rec *Record) error {
	nonce := rec.Bound.Challenge
	was, err := challenges().Get(ctx, tx, nonce)
	switch {
	case err == nil:
		return refuse(refusal.Refused, "lock_challenge", "have the adapter draw another: run the agent again",
			"adapter %v: a file was signed for its challenge at %s already, for adapter %v of host %s", rec.GUID, was.Value.Time.Format(time.RFC3339), was.Value.GUID, was.Value.Host)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	rec.Spent = append(rec.Spent, nonce)
	for len(rec.Spent) > maxSpent {
		challenges().Delete(tx, rec.Spent[0])
		rec.Spent = rec.Spent[1:]
	}
	return challenges().Put(tx, nonce, signed{GUID: rec.GUID, Host: rec.Host, Time: rec.Ordered})
}
