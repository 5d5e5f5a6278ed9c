package tpm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
)

// StoredAK is an attestation key as it may be kept while its boot lasts: the private
// half is wrapped by the EK, so it is of no use without this TPM, and none while the
// key's register holds something else.
type StoredAK struct {
	Public  []byte `json:"public"`  // TPMT_PUBLIC
	Private []byte `json:"private"` // TPM2B_PRIVATE without its size
}

// Stored returns the key to be kept.
func (a *AK) Stored() StoredAK { return StoredAK{Public: a.public, Private: a.private} }

// LoadAK loads a key that was kept. It must be one that NewAK makes for the register
// and value. One that is not, or was made in another TPM, is ErrStoredAK. Close must
// be called.
func (k *Keys) LoadAK(ctx context.Context, s StoredAK, pcr int, value []byte) (*AK, error) {
	if max(len(s.Public), len(s.Private)) > attest.MaxTPMStructure {
		return nil, fmt.Errorf("TPM: load an attestation key: %w: more than %d bytes", ErrStoredAK, attest.MaxTPMStructure)
	}
	name, err := attest.AKName(s.Public, attest.PCRPolicy(pcr, value))
	if err != nil {
		return nil, fmt.Errorf("TPM: load an attestation key: %w: %v", ErrStoredAK, err)
	}
	loaded, err := tpm2.Load{
		ParentHandle: k.ek.auth(), InPrivate: tpm2.TPM2BPrivate{Buffer: s.Private}, InPublic: tpm2.BytesAs2B[tpm2.TPMTPublic](s.Public),
	}.Execute(k.t.with(ctx))
	if isAnswer(err) {
		return nil, fmt.Errorf("TPM: load an attestation key: %w (%v)", ErrStoredAK, err)
	}
	if err != nil {
		return nil, explain("load an attestation key", err)
	}
	a := &AK{
		k: k, handle: tpm2.NamedHandle{Handle: loaded.ObjectHandle, Name: loaded.Name},
		public: s.Public, private: s.Private, pcr: pcr,
	}
	if !bytes.Equal(a.Name(), name) {
		return nil, errors.Join(fmt.Errorf("TPM: load an attestation key: %w: it is loaded under another name", ErrBroken), a.Close(ctx))
	}
	return a, nil
}

// isAnswer reports that the TPM itself refused what is about the key.
func isAnswer(err error) bool {
	for _, code := range []tpm2.TPMRC{tpm2.TPMRCIntegrity, tpm2.TPMRCSize, tpm2.TPMRCInsufficient, tpm2.TPMRCBinding, tpm2.TPMRCHash, tpm2.TPMRCValue} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// Boot reads how often the TPM was reset, and restarted since, and its clock. The answer is not signed: it is for a host
// that asks its own TPM.
func (t *TPM) Boot(ctx context.Context) (attest.Boot, error) {
	rsp, err := tpm2.ReadClock{}.Execute(t.with(ctx))
	if err != nil {
		return attest.Boot{}, explain("read the clock", err)
	}
	c := rsp.CurrentTime.ClockInfo
	return attest.Boot{Reset: c.ResetCount, Restart: c.RestartCount, Clock: c.Clock, Safe: c.Safe}, nil
}
