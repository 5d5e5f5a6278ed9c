package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"fmt"
	"math/big"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/ek"
	"portcullis/attest/tpmwire"
)

// attestation is a TPMS_ATTEST that a host sent, and the values that it must have.
type attestation struct {
	what      string // for people: quote, certification, seal quote
	raw       []byte
	signature []byte
	key       *attestationKey
	ekName    []byte
	ekDigest  string
	kind      tpm2.TPMST
	extra     []byte // extraData
}

// open checks signature, magic, type, qualifying data and signer, in that order, and returns the structure.
func (a *attestation) open() (*tpm2.TPMSAttest, *Refusal) {
	if r := a.checkSignature(); r != nil {
		return nil, r
	}
	s, err := tpmwire.Read[tpm2.TPMSAttest](a.raw)
	if err != nil {
		return nil, refuse(ReasonParse, "%s: %v", a.what, err)
	}
	switch {
	case s.Magic != tpm2.TPMGeneratedValue:
		return nil, refuse(ReasonMagic, "%s begins with 0x%08x, not with TPM_GENERATED", a.what, uint32(s.Magic))
	case s.Type != a.kind:
		return nil, refuse(ReasonType, "%s is of type 0x%04x, want 0x%04x", a.what, uint16(s.Type), uint16(a.kind))
	case !bytes.Equal(s.ExtraData.Buffer, a.extra):
		return nil, refuse(ReasonNonce, "the %s is not for this session with this statement over this connection", a.what)
	}
	return s, a.checkSigner(s)
}

// checkSignature verifies the signature over the raw bytes, before they are parsed. Only ECDSA with SHA-256 is known.
func (a *attestation) checkSignature() *Refusal {
	sig, err := tpmwire.Read[tpm2.TPMTSignature](a.signature)
	if err != nil {
		return refuse(ReasonParse, "signature of the %s: %v", a.what, err)
	}
	if sig.SigAlg != tpm2.TPMAlgECDSA {
		return refuse(ReasonAlgorithm, "signature scheme 0x%04x of the %s, want ECDSA", uint16(sig.SigAlg), a.what)
	}
	ecc, err := sig.Signature.ECDSA()
	if err != nil {
		return refuse(ReasonParse, "signature of the %s: %v", a.what, err)
	}
	if ecc.Hash != tpm2.TPMAlgSHA256 {
		return refuse(ReasonAlgorithm, "signature hash 0x%04x of the %s, want SHA-256", uint16(ecc.Hash), a.what)
	}
	if len(ecc.SignatureR.Buffer) > coordinateSize || len(ecc.SignatureS.Buffer) > coordinateSize {
		return refuse(ReasonSignature, "signature numbers of the %s are longer than %d bytes", a.what, coordinateSize)
	}
	if !a.key.signed(a.raw, ecc) {
		return refuse(ReasonSignature, "the %s is not signed by key %x", a.what, a.key.name)
	}
	return nil
}

func (k *attestationKey) signed(raw []byte, sig *tpm2.TPMSSignatureECC) bool {
	sum := sha256.Sum256(raw)
	return ecdsa.Verify(k.key, sum[:], new(big.Int).SetBytes(sig.SignatureR.Buffer), new(big.Int).SetBytes(sig.SignatureS.Buffer))
}

// checkSigner recomputes the qualified name: the AK is a child of this EK in the endorsement hierarchy, so its signed
// structures carry the true boot counters.
func (a *attestation) checkSigner(s *tpm2.TPMSAttest) *Refusal {
	want, err := ek.ChildQualifiedName(a.ekName, a.key.name)
	if err != nil {
		return refuse(ReasonSigner, "%v", err)
	}
	if !bytes.Equal(s.QualifiedSigner.Buffer, want) {
		return refuse(ReasonSigner, "the AK that signed the %s is not a child of EK %s", a.what, a.ekDigest)
	}
	return nil
}

// checkSelection wants the one selection that was asked for. The signed mask
// alone says which registers the values belong to.
func checkSelection(what string, s *tpm2.TPMSAttest, pcrs []int) *Refusal {
	info, err := s.Attested.Quote()
	if err != nil {
		return refuse(ReasonParse, "%s: %v", what, err)
	}
	sel := info.PCRSelect.PCRSelections
	switch {
	case len(sel) != 1:
		return refuse(ReasonSelection, "%s: %d PCR selections, want 1", what, len(sel))
	case sel[0].Hash != tpm2.TPMAlgSHA256:
		return refuse(ReasonSelection, "%s: PCR bank 0x%04x, want SHA-256", what, uint16(sel[0].Hash))
	case !bytes.Equal(sel[0].PCRSelect, pcrMask(pcrs)):
		return refuse(ReasonSelection, "%s: PCR mask %x, want %x", what, sel[0].PCRSelect, pcrMask(pcrs))
	}
	return nil
}

// registersOf returns the digest of the quoted registers, or nil if s is no quote.
func registersOf(s *tpm2.TPMSAttest) []byte {
	info, err := s.Attested.Quote()
	if err != nil {
		return nil
	}
	return info.PCRDigest.Buffer
}

// pcrMask is the TPMS_PCR_SELECTION mask of the registers.
func pcrMask(pcrs []int) []byte {
	mask := make([]byte, pcrMaskLen)
	for _, n := range pcrs {
		mask[n/8] |= 1 << (n % 8)
	}
	return mask
}

func bootOf(s *tpm2.TPMSAttest) Boot {
	c := s.ClockInfo
	return Boot{Reset: c.ResetCount, Restart: c.RestartCount, Clock: c.Clock, Safe: c.Safe}
}

func firmwareOf(s *tpm2.TPMSAttest) string { return fmt.Sprintf("%016x", s.FirmwareVersion) }
