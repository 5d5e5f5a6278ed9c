// Package escrow makes and opens offline kits, from which all keys of a fabric
// are recovered when its store is lost. A kit is a file for age (age-encryption.org)
// and one or more recipients: the program age opens it as well.
package escrow

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault"
)

const (
	format  = "portcullis escrow kit"
	version = 1
	// MaxSize bounds a kit, opened or not: three keys for each of a full subnet's
	// devices and classes take 150 MB.
	MaxSize = 256 << 20
)

// Contents is what a kit holds.
type Contents struct {
	Fabric  string    // name of the vault the keys are from
	Made    time.Time // when
	Master  keys.Master
	Check   vault.CheckKey // the key of Digests
	Records []keys.Record
	Cycles  []keys.Cycle
}

// kit is the text inside, in clear.
type kit struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Fabric  string       `json:"fabric"`
	Made    time.Time    `json:"made"`
	Master  string       `json:"master,omitempty"` // hexadecimal
	Check   string       `json:"check"`            // hexadecimal
	Records []entry      `json:"records"`
	Cycles  []keys.Cycle `json:"cycles,omitempty"`
	// Digest is the SHA-256 of all this, with no digest.
	Digest string `json:"digest"`
}

type entry struct {
	Kind     keys.Kind  `json:"kind"`
	GUID     ib.GUID    `json:"guid"`
	Place    ib.Place   `json:"place,omitzero"`
	Current  *held      `json:"current,omitempty"`
	Pending  *held      `json:"pending,omitempty"`
	Previous *held      `json:"previous,omitempty"`
	Retired  bool       `json:"retired,omitzero"`
	Floor    keys.Epoch `json:"floor,omitzero"`
}

// held has no key if it is derived: the Master gives it again.
type held struct {
	Key    string      `json:"key,omitempty"` // 16 hexadecimal digits
	Epoch  keys.Epoch  `json:"epoch"`
	Origin keys.Origin `json:"origin"`
	Since  time.Time   `json:"since"`
}

// Create writes a kit. It refuses contents from which not every key would come
// back.
func Create(w io.Writer, c *Contents, recipients ...age.Recipient) error {
	text, err := c.encode()
	if err != nil {
		return err
	}
	defer clear(text)
	if len(recipients) == 0 {
		return errors.New("escrow kit: there is no recipient: nobody could open it")
	}
	a := armor.NewWriter(w)
	sealed, err := age.Encrypt(a, recipients...)
	if err != nil {
		return fmt.Errorf("escrow kit: %w", err)
	}
	if _, err = sealed.Write(text); err == nil {
		err = errors.Join(sealed.Close(), a.Close())
	}
	if err != nil {
		return fmt.Errorf("write the escrow kit: %w", err)
	}
	return nil
}

func (c *Contents) encode() ([]byte, error) {
	if c.Check.IsZero() {
		return nil, errors.New("escrow kit: there is no check key; the store is not of one piece")
	}
	k := kit{
		Format: format, Version: version, Fabric: c.Fabric, Made: c.Made.UTC(), Check: hex.EncodeToString(c.Check.Reveal()),
		Master: hex.EncodeToString(c.Master.Reveal()), Cycles: c.Cycles, Records: make([]entry, 0, len(c.Records)),
	}
	for i := range c.Records {
		r := &c.Records[i]
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("escrow kit: %w", err)
		}
		e := entry{Kind: r.Kind, GUID: r.GUID, Place: r.Place, Retired: r.Retired, Floor: r.Floor}
		var err error
		for _, p := range []struct {
			to   **held
			from keys.Held
		}{{&e.Current, r.Current}, {&e.Pending, r.Pending}, {&e.Previous, r.Previous}} {
			if *p.to, err = c.encodeHeld(r, p.from); err != nil {
				return nil, err
			}
		}
		k.Records = append(k.Records, e)
	}
	digest, err := k.digest()
	if err != nil {
		return nil, err
	}
	k.Digest = digest
	return json.MarshalIndent(k, "", " ")
}

func (c *Contents) encodeHeld(r *keys.Record, h keys.Held) (*held, error) {
	if h.IsZero() {
		return nil, nil
	}
	out := &held{Epoch: h.Epoch, Origin: h.Origin, Since: h.Since}
	if h.Origin != keys.OriginDerived {
		out.Key = fmt.Sprintf("%016x", h.Key.Reveal())
		return out, nil
	}
	if c.Master.IsZero() || c.Master.Derive(r.Kind, r.GUID, h.Epoch) != h.Key {
		return nil, fmt.Errorf("escrow kit: %v of %v is not what the master gives for epoch %d; the store is not of one piece", r.Kind, r.GUID, h.Epoch)
	}
	return out, nil
}

func (k kit) digest() (string, error) {
	k.Digest = ""
	text, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("escrow kit: %w", err)
	}
	sum := sha256.Sum256(text)
	clear(text)
	return hex.EncodeToString(sum[:]), nil
}

// Open opens a kit, checks it whole and derives what is derived.
func Open(r io.Reader, identities ...age.Identity) (*Contents, error) {
	plain, err := age.Decrypt(armor.NewReader(io.LimitReader(r, 2*MaxSize)), identities...)
	if noMatch, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fmt.Errorf("escrow kit: it is for none of the %d identities given; name that of one of its recipients", len(noMatch.Errors))
	}
	if err != nil {
		return nil, fmt.Errorf("escrow kit: it does not open: %w; take another copy", err)
	}
	text, err := io.ReadAll(io.LimitReader(plain, MaxSize))
	defer clear(text)
	if err != nil {
		return nil, fmt.Errorf("escrow kit: it was changed or cut short: %w; take another copy", err)
	}
	return decode(text)
}

// errNoKit says no more of a text than that: it may hold keys.
var errNoKit = errors.New("escrow kit: it opens, and is not what this program writes")

func decode(text []byte) (*Contents, error) {
	var v struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if json.Unmarshal(text, &v) != nil || v.Format != format {
		return nil, errNoKit
	}
	if v.Version != version {
		return nil, fmt.Errorf("escrow kit: it is of version %d, and this program knows %d; install the version that made it", v.Version, version)
	}
	var k kit
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&k) != nil {
		return nil, errNoKit
	}
	if digest, err := k.digest(); err != nil || !hmac.Equal([]byte(digest), []byte(k.Digest)) {
		return nil, errors.New("escrow kit: its digest is not that of its contents; take another copy")
	}
	c := &Contents{Fabric: k.Fabric, Made: k.Made, Cycles: k.Cycles}
	check, err := hex.DecodeString(k.Check)
	if err != nil {
		return nil, errNoKit
	}
	if c.Check, err = vault.NewCheckKey(check); err != nil {
		return nil, fmt.Errorf("escrow kit: %w", err)
	}
	if k.Master != "" {
		b, err := hex.DecodeString(k.Master)
		if err != nil {
			return nil, errNoKit
		}
		if c.Master, err = keys.NewMaster(b); err != nil {
			return nil, fmt.Errorf("escrow kit: %w", err)
		}
	}
	for i := range k.Records {
		r, err := c.record(&k.Records[i])
		if err != nil {
			return nil, err
		}
		c.Records = append(c.Records, r)
	}
	if _, err := keys.NewBook(c.Records); err != nil {
		return nil, fmt.Errorf("escrow kit: %w", err)
	}
	return c, nil
}

func (c *Contents) record(e *entry) (keys.Record, error) {
	r := keys.Record{Kind: e.Kind, GUID: e.GUID, Place: e.Place, Retired: e.Retired, Floor: e.Floor}
	for _, p := range []struct {
		from *held
		to   *keys.Held
	}{{e.Current, &r.Current}, {e.Pending, &r.Pending}, {e.Previous, &r.Previous}} {
		h := p.from
		if h == nil {
			continue
		}
		*p.to = keys.Held{Epoch: h.Epoch, Origin: h.Origin, Since: h.Since}
		switch {
		case h.Origin == keys.OriginDerived && h.Key == "" && !c.Master.IsZero() && r.Kind.Valid():
			p.to.Key = c.Master.Derive(r.Kind, r.GUID, h.Epoch)
		case h.Origin != keys.OriginDerived && len(h.Key) == 16:
			v, err := strconv.ParseUint(h.Key, 16, 64)
			if err != nil || v == 0 {
				return r, errNoKit
			}
			p.to.Key = keys.New(v)
		default:
			return r, errNoKit
		}
	}
	return r, nil
}
