package vault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// MasterName is the name of the record with the Master of derived keys.
const MasterName = "master"

// RecordName is the name under which the record of a key is sealed:
// "key/KIND/GUID".
func RecordName(kind keys.Kind, guid ib.GUID) string { return fmt.Sprintf("key/%v/%v", kind, guid) }

// plainRecord is a keys.Record with its keys in clear. It never leaves this
// package but sealed.
type plainRecord struct {
	Kind     keys.Kind  `json:"kind"`
	GUID     ib.GUID    `json:"guid"`
	Place    ib.Place   `json:"place,omitzero"`
	Current  *plainHeld `json:"current,omitempty"`
	Pending  *plainHeld `json:"pending,omitempty"`
	Previous *plainHeld `json:"previous,omitempty"`
	Retired  bool       `json:"retired,omitzero"`
	Floor    keys.Epoch `json:"floor,omitzero"`
}

type plainHeld struct {
	Key    string      `json:"key"` // 16 hexadecimal digits
	Epoch  keys.Epoch  `json:"epoch"`
	Origin keys.Origin `json:"origin"`
	Since  time.Time   `json:"since"`
}

func plainOf(h keys.Held) *plainHeld {
	if h.IsZero() {
		return nil
	}
	return &plainHeld{fmt.Sprintf("%016x", h.Key.Reveal()), h.Epoch, h.Origin, h.Since}
}

func (p *plainHeld) held() (keys.Held, bool) {
	if p == nil {
		return keys.Held{}, true
	}
	v, err := strconv.ParseUint(p.Key, 16, 64)
	return keys.Held{Key: keys.New(v), Epoch: p.Epoch, Origin: p.Origin, Since: p.Since}, err == nil && len(p.Key) == 16
}

// SealRecord seals the record of a key under RecordName.
func (v *Vault) SealRecord(r keys.Record) (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	plain, err := json.Marshal(plainRecord{
		r.Kind, r.GUID, r.Place, plainOf(r.Current), plainOf(r.Pending), plainOf(r.Previous), r.Retired, r.Floor,
	})
	if err != nil {
		return "", fmt.Errorf("vault: seal %s: %w", RecordName(r.Kind, r.GUID), err)
	}
	defer clear(plain)
	return v.Seal(RecordName(r.Kind, r.GUID), uint32(r.Newest()), plain)
}

// OpenRecord opens the record of a key.
func (v *Vault) OpenRecord(kind keys.Kind, guid ib.GUID, sealed string) (keys.Record, error) {
	name := RecordName(kind, guid)
	plain, epoch, err := v.Open(name, sealed)
	if err != nil {
		return keys.Record{}, err
	}
	defer clear(plain)
	var p plainRecord
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return keys.Record{}, &Error{name, "it opens, and is not what this program writes", "install the version that wrote it"}
	}
	r := keys.Record{Kind: p.Kind, GUID: p.GUID, Place: p.Place, Retired: p.Retired, Floor: p.Floor}
	var ok [3]bool
	r.Current, ok[0] = p.Current.held()
	r.Pending, ok[1] = p.Pending.held()
	r.Previous, ok[2] = p.Previous.held()
	if ok != [3]bool{true, true, true} || r.Kind != kind || r.GUID != guid || uint32(r.Newest()) != epoch {
		return keys.Record{}, &Error{name, "it opens, and is not what this program writes", "install the version that wrote it"}
	}
	if err := r.Check(); err != nil {
		return keys.Record{}, &Error{name, err.Error(), "recover the key from the escrow kit"}
	}
	return r, nil
}

// OpenMaster opens a Master that was sealed under MasterName.
func (v *Vault) OpenMaster(sealed string) (keys.Master, error) {
	plain, _, err := v.Open(MasterName, sealed)
	if err != nil {
		return keys.Master{}, err
	}
	defer clear(plain)
	return keys.NewMaster(plain)
}
