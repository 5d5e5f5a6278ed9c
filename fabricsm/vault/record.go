package vault

import (
	"bytes"
	"encoding/json"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault/plain"
)

// MasterName is the name of the record with the Master of derived keys.
const MasterName = "master"

// RecordName is the name under which the record of a key is sealed:
// "key/KIND/GUID".
func RecordName(kind keys.Kind, guid ib.GUID) string { return fmt.Sprintf("key/%v/%v", kind, guid) }

// SealRecord seals the record of a key under RecordName.
func (v *Vault) SealRecord(r keys.Record) (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	text, err := json.Marshal(plain.Of(&r, nil))
	if err != nil {
		return "", fmt.Errorf("vault: seal %s: %w", RecordName(r.Kind, r.GUID), err)
	}
	defer clear(text)
	return v.Seal(RecordName(r.Kind, r.GUID), uint32(r.Newest()), text)
}

// OpenRecord opens the record of a key.
func (v *Vault) OpenRecord(kind keys.Kind, guid ib.GUID, sealed string) (keys.Record, error) {
	name := RecordName(kind, guid)
	text, epoch, err := v.Open(name, sealed)
	if err != nil {
		return keys.Record{}, err
	}
	defer clear(text)
	foreign := &Error{name, "it opens, and is not what this program writes", "install the version that wrote it"}
	var p plain.Record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return keys.Record{}, foreign
	}
	r, ok := p.Read(nil)
	if !ok || r.Kind != kind || r.GUID != guid || uint32(r.Newest()) != epoch {
		return keys.Record{}, foreign
	}
	if err := r.Check(); err != nil {
		return keys.Record{}, &Error{name, err.Error(), "recover the key from the escrow kit"}
	}
	return r, nil
}

// OpenMaster opens a Master that was sealed under MasterName.
func (v *Vault) OpenMaster(sealed string) (keys.Master, error) {
	text, _, err := v.Open(MasterName, sealed)
	if err != nil {
		return keys.Master{}, err
	}
	defer clear(text)
	return keys.NewMaster(text)
}
