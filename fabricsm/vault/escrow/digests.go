package escrow

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Digests is a list of all keys of a store without the keys themselves. It can be taken to a kit, to prove that the kit has
// the same keys. The digests are keyed by the check key, which only the store and its kits have. Without it an attacker
// cannot even test guessed keys against them.
type Digests struct {
	Fabric string    `json:"fabric"`
	Made   time.Time `json:"made"`
	Keys   []Digest  `json:"keys"`
	Seal   string    `json:"seal,omitempty"` // 64 hexadecimal digits: an HMAC under the check key over all this
}

// Digest is one key of a device.
type Digest struct {
	Kind   keys.Kind   `json:"kind"`
	GUID   ib.GUID     `json:"guid"`
	Epoch  keys.Epoch  `json:"epoch"`
	Origin keys.Origin `json:"origin"`
	Digest string      `json:"digest"` // 32 hexadecimal digits
}

// digestOf returns the first 16 bytes of an HMAC-SHA-256 over kind, GUID, epoch and key.
func digestOf(check []byte, kind keys.Kind, guid ib.GUID, epoch keys.Epoch, k keys.Key) string {
	mac := hmac.New(sha256.New, check)
	b := append([]byte("portcullis key digest\x00"), byte(kind))
	b = binary.BigEndian.AppendUint64(b, uint64(guid))
	b = binary.BigEndian.AppendUint32(b, uint32(epoch))
	mac.Write(binary.BigEndian.AppendUint64(b, k.Reveal()))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Digests lists the contents.
func (c *Contents) Digests() *Digests {
	check := c.Check.Reveal()
	d := &Digests{Fabric: c.Fabric, Made: c.Made, Keys: []Digest{}}
	for i := range c.Records {
		r := &c.Records[i]
		for _, h := range []keys.Held{r.Current, r.Pending, r.Previous} {
			if !h.IsZero() {
				d.Keys = append(d.Keys, Digest{r.Kind, r.GUID, h.Epoch, h.Origin, digestOf(check, r.Kind, r.GUID, h.Epoch, h.Key)})
			}
		}
	}
	d.Seal = d.seal(c.Check)
	return d
}

// Missing is a key of the store that a kit does not provide.
type Missing struct {
	Kind  keys.Kind  `json:"kind"`
	GUID  ib.GUID    `json:"guid"`
	Epoch keys.Epoch `json:"epoch"`
}

// Rehearsal is the result of a comparison of a kit with the keys of a store.
type Rehearsal struct {
	Fabric  string    `json:"fabric"`
	KitMade time.Time `json:"kit_made"`
	Listed  time.Time `json:"listed"`
	Keys    int       `json:"keys"`    // in the list
	Derived int       `json:"derived"` // given by the master, and equal
	Stored  int       `json:"stored"`  // in the kit itself, and equal
	Devices int       `json:"devices"`
	Missing []Missing `json:"missing"` // not in the kit, or another there
}

// Rehearse compares a kit with the list of a store. Keys that were derived after the kit was made count: the master derives
// them.
func (c *Contents) Rehearse(d *Digests) (*Rehearsal, error) {
	if c.Fabric != d.Fabric {
		return nil, fmt.Errorf("rehearsal: the kit is of fabric %s, and the list of %.40q; name the kit of that fabric", c.Fabric, d.Fabric)
	}
	if len(d.Keys) == 0 {
		return nil, errors.New("rehearsal: the list has no keys, which proves nothing; make it from the running store")
	}
	if err := c.checkSeal(d); err != nil {
		return nil, err
	}
	check, have := c.Check.Reveal(), make(map[string]bool)
	for _, k := range c.Digests().Keys {
		have[k.Digest] = true
	}
	out := &Rehearsal{Fabric: c.Fabric, KitMade: c.Made, Listed: d.Made, Keys: len(d.Keys), Missing: []Missing{}}
	devices := make(map[ib.GUID]bool)
	for _, k := range d.Keys {
		if k.GUID != 0 {
			devices[k.GUID] = true
		}
		switch {
		case k.Origin == keys.OriginDerived && !c.Master.IsZero() && k.Kind.Valid() &&
			digestOf(check, k.Kind, k.GUID, k.Epoch, c.Master.Derive(k.Kind, k.GUID, k.Epoch)) == k.Digest:
			out.Derived++
		case k.Origin != keys.OriginDerived && have[k.Digest]:
			out.Stored++
		default:
			out.Missing = append(out.Missing, Missing{k.Kind, k.GUID, k.Epoch})
		}
	}
	out.Devices = len(devices)
	slices.SortFunc(out.Missing, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.GUID, b.GUID)) })
	return out, nil
}

// Ahead adds, to each record whose key is derived, the key of a later epoch as
// Pending: for a kit that is older than the last rotation. The device is on one
// of the two.
func (c *Contents) Ahead(epoch keys.Epoch, now time.Time) {
	for i := range c.Records {
		r := &c.Records[i]
		if r.Current.Origin == keys.OriginDerived && r.Newest() < epoch && !c.Master.IsZero() {
			r.Previous = keys.Held{}
			r.Pending = keys.Held{Key: c.Master.Derive(r.Kind, r.GUID, epoch), Epoch: epoch, Origin: keys.OriginDerived, Since: now}
		}
	}
}
