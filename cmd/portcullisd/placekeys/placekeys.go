// Package placekeys has the M_Key that may be shown at each place of the fabric, of the stored keys of devices.
package placekeys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/receipt"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// Book has the M_Key of each place. It does not change.
type Book struct {
	Epochs []receipt.Epoch // the newest, of each kind of key

	placed map[ib.Place]ib.MKey
	byPort map[ib.GUID]ib.MKey
	behind map[ib.Place]ib.GUID
}

// Open opens the stored M_Keys: sealed returns all facts that are stored. root is nil if devices get no keys.
func Open(sealed func() ([]sm.Fact, error), root func() (vault.Root, error)) (*Book, error) {
	k := &Book{Epochs: []receipt.Epoch{{Kind: keys.MKey.String()}}, placed: map[ib.Place]ib.MKey{}, byPort: map[ib.GUID]ib.MKey{}, behind: map[ib.Place]ib.GUID{}}
	if root == nil {
		return k, nil
	}
	facts, err := sealed()
	if err != nil {
		return nil, err
	}
	r, err := root()
	if err != nil {
		return nil, err
	}
	c, err := keystore.Read(facts, r)
	switch {
	case errors.Is(err, keystore.ErrNoVault):
		return k, nil // the Subnet Manager has just been started for the first time
	case err != nil:
		return nil, fmt.Errorf("open the keys of devices: %w", err)
	}
	k.behind, k.Epochs = c.Behind, epochsOf(c)
	for i := range c.Records {
		rec := &c.Records[i]
		if rec.Kind != keys.MKey || rec.Current.IsZero() {
			continue
		}
		key := rec.Current.Key.M()
		if rec.Place.IsZero() {
			k.byPort[rec.GUID] = key
		} else {
			k.placed[rec.Place] = key
		}
	}
	return k, nil
}

// epochsOf returns the newest epoch of each kind of key of devices.
func epochsOf(c *keystore.Contents) []receipt.Epoch {
	newest := map[keys.Kind]keys.Epoch{keys.MKey: 0}
	for i := range c.Records {
		r := &c.Records[i]
		newest[r.Kind] = max(newest[r.Kind], r.Current.Epoch)
	}
	out := make([]receipt.Epoch, 0, len(newest))
	for kind, epoch := range newest {
		out = append(out, receipt.Epoch{Kind: kind.String(), Epoch: uint64(epoch)})
	}
	slices.SortFunc(out, func(a, b receipt.Epoch) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// At returns the M_Key that may be shown at a place: the one that is bound to it, or the one of the switch that the Subnet Manager
// has proven to be there. The zero place is the port with the GUID own. No key is the zero M_Key.
func (k *Book) At(place ib.Place, own ib.GUID) ib.MKey {
	if place.IsZero() {
		return k.byPort[own]
	}
	if key, ok := k.placed[place]; ok {
		return key
	}
	if guid, ok := k.behind[place]; ok {
		return k.byPort[guid]
	}
	return ib.MKey{}
}
