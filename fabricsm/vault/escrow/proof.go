package escrow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/vault"
)

// Proof states that a kit was opened and has every key of a list. Only a program that has the check key can make one: a kit that is
// open has it, and so has a store. It has no key.
type Proof struct {
	Fabric  string    `json:"fabric"`   // name of the vault, 32 hexadecimal digits
	KitMade time.Time `json:"kit_made"` // when the kit was made
	Listed  time.Time `json:"listed"`   // when the list was made: the kit was opened then or later
	Keys    int       `json:"keys"`     // of the list, at least 1
	Devices int       `json:"devices"`  // that have them
	List    string    `json:"list"`     // the seal of the list, 64 hexadecimal digits
	Seal    string    `json:"seal"`     // 64 hexadecimal digits
}

var (
	// ErrForeignProof says that a proof was not made with the check key of the store that verifies it.
	ErrForeignProof = errors.New("the proof is not of a kit of this store, or it was altered")
	// ErrAlteredList says that a list was altered after it was made, or that it is of another store.
	ErrAlteredList = errors.New("rehearsal: the list was altered, or is not of the store that the kit is of; make it again")
	// ErrUnsealedList says that a list is of a version of this program that made no seal.
	ErrUnsealedList = errors.New("rehearsal: the list has no seal, so it proves nothing; make it again with this version")
)

// seal returns an HMAC-SHA-256 of a text, as 64 hexadecimal digits. Texts of different purposes begin differently.
func seal(check vault.CheckKey, text []byte) string {
	mac := hmac.New(sha256.New, check.Reveal())
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// seal returns what Seal of a list is to be.
func (d *Digests) seal(check vault.CheckKey) string {
	text := fmt.Appendf(nil, "portcullis list of key digests\x00%q %s\n", d.Fabric, stamp(d.Made))
	for _, k := range d.Keys {
		text = fmt.Appendf(text, "%d %d %d %q %q\n", k.Kind, k.GUID, k.Epoch, k.Origin, k.Digest)
	}
	return seal(check, text)
}

// seal returns what Seal of a proof is to be.
func (p *Proof) seal(check vault.CheckKey) string {
	return seal(check, fmt.Appendf(nil, "portcullis rehearsal of an escrow kit\x00%q %s %s %d %d %q", p.Fabric, stamp(p.KitMade), stamp(p.Listed), p.Keys, p.Devices, p.List))
}

// Prove returns the proof that the kit has every key of the list of a store. The errors are ErrUnsealedList, those of Rehearse, and
// one that says how many keys are missing.
func (c *Contents) Prove(d *Digests) (*Proof, error) {
	if d.Seal == "" {
		return nil, ErrUnsealedList
	}
	r, err := c.Rehearse(d)
	if err != nil {
		return nil, err
	}
	if len(r.Missing) > 0 {
		return nil, fmt.Errorf("rehearsal: %d of %d keys are not in the kit; make another kit", len(r.Missing), r.Keys)
	}
	p := &Proof{Fabric: c.Fabric, KitMade: c.Made.UTC(), Listed: d.Made.UTC(), Keys: r.Keys, Devices: r.Devices, List: d.Seal}
	p.Seal = p.seal(c.Check)
	return p, nil
}

// Verify returns ErrForeignProof unless the proof was made with the check key of a store.
func (p *Proof) Verify(check vault.CheckKey) error {
	if check.IsZero() || !hmac.Equal([]byte(p.seal(check)), []byte(p.Seal)) {
		return ErrForeignProof
	}
	return nil
}

// checkSeal refuses a list that was altered after it was made. One without a seal is as earlier versions made it.
func (c *Contents) checkSeal(d *Digests) error {
	if d.Seal != "" && !hmac.Equal([]byte(d.seal(c.Check)), []byte(d.Seal)) {
		return ErrAlteredList
	}
	return nil
}
