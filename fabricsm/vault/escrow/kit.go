// Package escrow makes and opens offline kits, from which all keys of a fabric
// are recovered when its store is lost. A kit is a file for age (age-encryption.org)
// and one or more recipients: the program age opens it as well.
package escrow

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/plain"
)

const (
	format  = "portcullis escrow kit"
	version = 2 // 1 has no neighbours
	// MaxSize bounds a kit, opened or not: three keys for each of a full subnet's
	// devices and classes take 150 MB.
	MaxSize = 256 << 20
)

// Contents has the contents of a kit.
type Contents struct {
	Fabric  string    // name of the vault the keys are from
	Made    time.Time // when
	Master  keys.Master
	Check   vault.CheckKey // the key of Digests
	Records []keys.Record
	Cycles  []keys.Cycle
	Behind  map[ib.Place]ib.GUID // which switch is behind a port, by the GUID of its port 0
}

// kit is the text inside, in clear.
type kit struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Fabric  string    `json:"fabric"`
	Made    time.Time `json:"made"`
	Master  string    `json:"master,omitempty"` // hexadecimal
	Check   string    `json:"check"`            // hexadecimal
	// Records have no derived keys: they can be derived from Master again.
	Records []plain.Record `json:"records"`
	Cycles  []keys.Cycle   `json:"cycles,omitempty"`
	Behind  []neighbour    `json:"behind,omitempty"`
	// Digest is the SHA-256 of all this, with no digest.
	Digest string `json:"digest"`
}

// neighbour is the text of one entry of Contents.Behind.
type neighbour struct {
	Place ib.Place `json:"place"`
	GUID  ib.GUID  `json:"guid"`
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
		return errors.New("escrow kit: there is no recipient: no key could open it")
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
		Master: hex.EncodeToString(c.Master.Reveal()), Cycles: c.Cycles, Records: make([]plain.Record, 0, len(c.Records)),
	}
	for i := range c.Records {
		r := &c.Records[i]
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("escrow kit: %w", err)
		}
		if err := c.derives(r); err != nil {
			return nil, err
		}
		k.Records = append(k.Records, plain.Of(r, derived))
	}
	for at, guid := range c.Behind {
		k.Behind = append(k.Behind, neighbour{at, guid})
	}
	slices.SortFunc(k.Behind, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	digest, err := k.digest()
	if err != nil {
		return nil, err
	}
	k.Digest = digest
	return json.MarshalIndent(k, "", " ")
}

func derived(h keys.Held) bool { return h.Origin == keys.OriginDerived }

// derives refuses a record with a derived key that the master does not produce.
func (c *Contents) derives(r *keys.Record) error {
	for _, h := range []keys.Held{r.Current, r.Pending, r.Previous} {
		if h.IsZero() || !derived(h) {
			continue
		}
		if c.Master.IsZero() || c.Master.Derive(r.Kind, r.GUID, h.Epoch) != h.Key {
			return fmt.Errorf("escrow kit: %v of %v is not what the master derives for epoch %d; the store is not of one piece", r.Kind, r.GUID, h.Epoch)
		}
	}
	return nil
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

// Open opens a kit, checks it completely and derives the derived keys.
func Open(r io.Reader, identities ...age.Identity) (*Contents, error) {
	opened, err := age.Decrypt(armor.NewReader(io.LimitReader(r, 2*MaxSize)), identities...)
	if noMatch, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fmt.Errorf("escrow kit: it is for none of the %d identities given; name that of one of its recipients", len(noMatch.Errors))
	}
	if err != nil {
		return nil, fmt.Errorf("escrow kit: it does not open: %w; take another copy", err)
	}
	text, err := io.ReadAll(io.LimitReader(opened, MaxSize))
	defer clear(text)
	if err != nil {
		return nil, fmt.Errorf("escrow kit: it was changed or cut short: %w; take another copy", err)
	}
	return decode(text)
}

// errNoKit contains nothing of the text, because the text may hold keys.
var errNoKit = errors.New("escrow kit: it opens, and is not what this program writes")

func decode(text []byte) (*Contents, error) {
	var v struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if json.Unmarshal(text, &v) != nil || v.Format != format {
		return nil, errNoKit
	}
	if v.Version < 1 || v.Version > version {
		return nil, fmt.Errorf("escrow kit: it is of version %d, and this program knows up to %d; install the version that made it", v.Version, version)
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
	c := &Contents{Fabric: k.Fabric, Made: k.Made, Cycles: k.Cycles, Behind: make(map[ib.Place]ib.GUID)}
	for _, n := range k.Behind {
		if !n.Place.Switch.Valid() || !n.GUID.Valid() {
			return nil, errNoKit
		}
		c.Behind[n.Place] = n.GUID
	}
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

// record reads a record, and derives its derived keys: for these no key is written, and for all others one is.
func (c *Contents) record(p *plain.Record) (keys.Record, error) {
	for _, h := range []*plain.Held{p.Current, p.Pending, p.Previous} {
		if h != nil && (h.Origin == keys.OriginDerived) != (h.Key == "") {
			return keys.Record{}, errNoKit
		}
	}
	r, ok := p.Read(func(h *plain.Held) (keys.Key, bool) {
		if c.Master.IsZero() || !p.Kind.Valid() {
			return keys.Key{}, false
		}
		return c.Master.Derive(p.Kind, p.GUID, h.Epoch), true
	})
	if !ok {
		return keys.Record{}, errNoKit
	}
	return r, nil
}
