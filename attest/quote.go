package attest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/ek"
	"portcullis/attest/tpmwire"
)

const (
	numPCRs    = 24 // registers of a PC client TPM
	pcrMaskLen = 3  // bytes of a selection mask
)

func (v *verifier) qualifying() []byte {
	return QualifyingData(v.ch.ID, v.ch.Nonce, StatementDigest(v.ev.Statement), v.channel, v.keys.open.name)
}

func (v *verifier) checkQuote() *Refusal {
	a := attestation{
		what: "quote", raw: v.ev.Quote, signature: v.ev.Signature, key: v.keys.open,
		ekName: v.ch.EKName, ekDigest: v.ch.EKDigest, kind: tpm2.TPMSTAttestQuote, extra: v.qualifying(),
	}
	s, r := a.open()
	switch {
	case r != nil && r.Code == ReasonSignature && v.quotedCapped():
		return refuse(ReasonAgentPCR, "the quote is by the key of the capped state: the host was handed over in this boot; reboot it")
	case r != nil:
		return r
	}
	v.quote = s
	v.facts.Boot, v.facts.TPMFirmware = bootOf(s), firmwareOf(s)
	return nil
}

// quotedCapped reports whether the second key signed the quote.
func (v *verifier) quotedCapped() bool {
	sig, err := tpmwire.Read[tpm2.TPMTSignature](v.ev.Signature)
	if err != nil {
		return false
	}
	ecc, err := sig.Signature.ECDSA()
	return err == nil && v.keys.capped.signed(v.ev.Quote, ecc)
}

// checkCertify wants the first key's word that the second is in the same TPM,
// in the same boot. Its firmware is not allowed to differ either.
func (v *verifier) checkCertify() *Refusal {
	a := attestation{
		what: "certification of the second key", raw: v.ev.Certify, signature: v.ev.CertifySignature, key: v.keys.open,
		ekName: v.ch.EKName, ekDigest: v.ch.EKDigest, kind: tpm2.TPMSTAttestCertify, extra: v.qualifying(),
	}
	s, r := a.open()
	if r != nil {
		return r
	}
	info, err := s.Attested.Certify()
	if err != nil {
		return refuse(ReasonParse, "certification: %v", err)
	}
	qualified, err := ek.ChildQualifiedName(v.ch.EKName, v.keys.capped.name)
	if err != nil {
		return refuse(ReasonCertify, "%v", err)
	}
	switch b := bootOf(s); {
	case !bytes.Equal(info.Name.Buffer, v.keys.capped.name) || !bytes.Equal(info.QualifiedName.Buffer, qualified):
		return refuse(ReasonCertify, "the first key certifies %x, not the second key %x as a child of the EK", info.Name.Buffer, v.keys.capped.name)
	case !b.Same(v.facts.Boot) || firmwareOf(s) != v.facts.TPMFirmware:
		return refuse(ReasonCertify, "the second key was certified in boot %v, the quote is of boot %v", b, v.facts.Boot)
	}
	v.facts.AK2Name = hex.EncodeToString(v.keys.capped.name)
	return nil
}

// checkSelection wants exactly the registers that were asked for.
func (v *verifier) checkSelection() *Refusal {
	return checkSelection("quote", v.quote, v.ch.PCRs)
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
	if quoted := registersOf(v.quote); !bytes.Equal(quoted, digest) {
		return refuse(ReasonPCRDigest, "the PCR values hash to %x, quoted is %x", digest, quoted)
	}
	v.facts.PCRs, v.facts.PCRDigest = pcrs, hex.EncodeToString(digest)
	return nil
}

// value returns a quoted register, or nil if it is none.
func (v *verifier) value(pcr int) []byte {
	i := slices.Index(v.ch.PCRs, pcr)
	if i < 0 || i >= len(v.ev.PCRValues) {
		return nil
	}
	return v.ev.PCRValues[i]
}
