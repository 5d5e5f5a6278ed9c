package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/ek"
	"portcullis/attest/tpmwire"
)

const (
	numPCRs    = 24 // registers of a PC client TPM
	pcrMaskLen = 3  // bytes of a selection mask
)

// quote is the part of a TPMS_ATTEST that verification looks at.
type quote struct {
	attest *tpm2.TPMSAttest
	info   *tpm2.TPMSQuoteInfo
}

// checkSignature verifies the signature over the raw bytes, before they are
// parsed. Nothing but ECDSA with SHA-256 is known.
func (v *verifier) checkSignature() *Refusal {
	sig, err := tpmwire.Read[tpm2.TPMTSignature](v.ev.Signature)
	if err != nil {
		return refuse(ReasonParse, "signature: %v", err)
	}
	if sig.SigAlg != tpm2.TPMAlgECDSA {
		return refuse(ReasonAlgorithm, "signature scheme 0x%04x, want ECDSA", uint16(sig.SigAlg))
	}
	ecc, err := sig.Signature.ECDSA()
	if err != nil {
		return refuse(ReasonParse, "signature: %v", err)
	}
	if ecc.Hash != tpm2.TPMAlgSHA256 {
		return refuse(ReasonAlgorithm, "signature hash 0x%04x, want SHA-256", uint16(ecc.Hash))
	}
	if len(ecc.SignatureR.Buffer) > coordinateSize || len(ecc.SignatureS.Buffer) > coordinateSize {
		return refuse(ReasonSignature, "signature numbers are longer than %d bytes", coordinateSize)
	}
	r := new(big.Int).SetBytes(ecc.SignatureR.Buffer)
	s := new(big.Int).SetBytes(ecc.SignatureS.Buffer)
	sum := sha256.Sum256(v.ev.Quote)
	if !ecdsa.Verify(v.ak.key, sum[:], r, s) {
		return refuse(ReasonSignature, "the quote is not signed by AK %x", v.ak.name)
	}
	return nil
}

func (v *verifier) checkQuote() *Refusal {
	a, err := tpmwire.Read[tpm2.TPMSAttest](v.ev.Quote)
	if err != nil {
		return refuse(ReasonParse, "quote: %v", err)
	}
	if a.Magic != tpm2.TPMGeneratedValue {
		return refuse(ReasonMagic, "quote begins with 0x%08x, not with TPM_GENERATED", uint32(a.Magic))
	}
	if a.Type != tpm2.TPMSTAttestQuote {
		return refuse(ReasonType, "attestation type 0x%04x, want a quote", uint16(a.Type))
	}
	info, err := a.Attested.Quote()
	if err != nil {
		return refuse(ReasonParse, "quote: %v", err)
	}
	v.quote = &quote{attest: a, info: info}
	v.facts.Boot = Boot{
		Reset: a.ClockInfo.ResetCount, Restart: a.ClockInfo.RestartCount,
		Clock: a.ClockInfo.Clock, Safe: a.ClockInfo.Safe,
	}
	v.facts.TPMFirmware = fmt.Sprintf("%016x", a.FirmwareVersion)
	return nil
}

func (v *verifier) checkNonce() *Refusal {
	want := QualifyingData(v.ch.ID, v.ch.Nonce, StatementDigest(v.ev.Statement), v.channel, v.ak.name)
	if !bytes.Equal(v.quote.attest.ExtraData.Buffer, want) {
		return refuse(ReasonNonce, "the quote is not for session %s with this statement over this connection", v.ch.ID)
	}
	return nil
}

// checkSigner recomputes the qualified name: the AK is a child of this EK in
// the endorsement hierarchy, so its quotes carry the true boot counters.
func (v *verifier) checkSigner() *Refusal {
	want, err := ek.ChildQualifiedName(v.ch.EKName, v.ak.name)
	if err != nil {
		return refuse(ReasonSigner, "%v", err)
	}
	if !bytes.Equal(v.quote.attest.QualifiedSigner.Buffer, want) {
		return refuse(ReasonSigner, "the AK is not a child of EK %s", v.ch.EKDigest)
	}
	return nil
}

// checkSelection wants the one selection that was asked for. The signed mask
// alone says which registers the values belong to.
func (v *verifier) checkSelection() *Refusal {
	sel := v.quote.info.PCRSelect.PCRSelections
	if len(sel) != 1 {
		return refuse(ReasonSelection, "%d PCR selections, want 1", len(sel))
	}
	if sel[0].Hash != tpm2.TPMAlgSHA256 {
		return refuse(ReasonSelection, "PCR bank 0x%04x, want SHA-256", uint16(sel[0].Hash))
	}
	if want := pcrMask(v.ch.PCRs); !bytes.Equal(sel[0].PCRSelect, want) {
		return refuse(ReasonSelection, "PCR mask %x, want %x", sel[0].PCRSelect, want)
	}
	return nil
}

// pcrMask is the TPMS_PCR_SELECTION mask of the registers.
func pcrMask(pcrs []int) []byte {
	mask := make([]byte, pcrMaskLen)
	for _, n := range pcrs {
		mask[n/8] |= 1 << (n % 8)
	}
	return mask
}

// checkPCRValues wants one value per register, and that they are those quoted.
func (v *verifier) checkPCRValues() *Refusal {
	if len(v.ev.PCRValues) != len(v.ch.PCRs) {
		return refuse(ReasonPCRValues, "%d PCR values for %d registers", len(v.ev.PCRValues), len(v.ch.PCRs))
	}
	h := sha256.New()
	pcrs := make([]PCR, len(v.ch.PCRs))
	for i, val := range v.ev.PCRValues {
		if len(val) != digestSize {
			return refuse(ReasonPCRValues, "PCR %d: value of %d bytes, want %d", v.ch.PCRs[i], len(val), digestSize)
		}
		h.Write(val)
		pcrs[i] = PCR{Index: v.ch.PCRs[i], Value: hex.EncodeToString(val)}
	}
	digest := h.Sum(nil)
	if !bytes.Equal(v.quote.info.PCRDigest.Buffer, digest) {
		return refuse(ReasonPCRDigest, "the PCR values hash to %x, quoted is %x", digest, v.quote.info.PCRDigest.Buffer)
	}
	v.facts.PCRs, v.facts.PCRDigest = pcrs, hex.EncodeToString(digest)
	return nil
}
