package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/go-tpm/tpm2"
)

// HostKeyTemplate is the public area of a host's key: an ECDSA P-256 key that signs
// any digest, cannot leave its TPM, and signs only under policy. Under that of
// HostKeyPolicy it is of no use outside this TPM, nor in another boot, nor before the
// hand-over.
func HostKeyTemplate(policy []byte) tpm2.TPMTPublic { return signingKey(false, policy, nil, nil) }

// countsOffset is where the counts stand in TPMS_TIME_INFO (TPM 2.0 part 2, 10.11.6):
// after time and clock.
const countsOffset = 8 + 8

// BootCounts are the counts of b as TPMS_TIME_INFO has them: resets, then restarts.
func BootCounts(b Boot) (operand []byte, offset uint16) {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, b.Reset), b.Restart), countsOffset
}

// HostKeyPolicy is the policy digest of a host's key: PCRPolicy of the register, and the boot by the TPM's own counts (TPM
// 2.0 part 3, TPM2_PolicyCounterTimer). The register's value is not enough: root of a later boot can fill it in the same
// way.
func HostKeyPolicy(pcr int, value []byte, b Boot) []byte {
	operand, offset := BootCounts(b)
	args := sha256.New()
	args.Write(operand)
	args.Write(binary.BigEndian.AppendUint16(nil, offset))
	args.Write(binary.BigEndian.AppendUint16(nil, uint16(tpm2.TPMEOEq)))
	h := sha256.New()
	h.Write(PCRPolicy(pcr, value))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(tpm2.TPMCCPolicyCounterTimer)))
	h.Write(args.Sum(nil))
	return h.Sum(nil)
}

// HostKeyName is the TPM's name of a host's key with a policy. It fails for a public
// area that is not exactly the template.
func HostKeyName(public, policy []byte) ([]byte, error) {
	k, err := parseKey(false, public, policy)
	if err != nil {
		return nil, err
	}
	return k.name, nil
}

// VerifyHostKey checks the key that came with a seal, and returns it. Call it once VerifySeal has accepted the seal, with
// the same challenge and channel. It does not look at the key's parent: the key's name covers that the key is fixed in the
// TPM, and which registers it needs.
func VerifyHostKey(c *SealChallenge, channel []byte, k *HostKey) (*ecdsa.PublicKey, *Refusal) {
	if c == nil || k == nil {
		return nil, refuse(ReasonSession, "no challenge or no key of the host")
	}
	if max(len(k.Public), len(k.Certify), len(k.CertifySignature), len(k.Holder)) > MaxTPMStructure {
		return nil, refuse(ReasonSize, "key of the host, certification or signature of more than %d bytes", MaxTPMStructure)
	}
	if c.Channel == ChannelNone {
		channel = nil
	}
	capped := CappedPCRValue(c.Open)
	policy := HostKeyPolicy(c.AgentPCR, capped, c.Boot)
	key, err := parseKey(false, k.Public, policy)
	if err != nil {
		return nil, refuse(ReasonHostKey, "key of the host: %v (an unrestricted, TPM-generated, fixed ECDSA P-256 key with SHA-256, and the policy %x)", err, policy)
	}
	second, err := parseAK(c.AK2Public, PCRPolicy(c.AgentPCR, capped))
	if err != nil {
		return nil, refuse(ReasonAK, "second key: %v", err)
	}
	a := attestation{
		what: "certification of the host's key", raw: k.Certify, signature: k.CertifySignature, key: second,
		ekName: c.EKName, ekDigest: c.EKDigest, kind: tpm2.TPMSTAttestCertify,
		extra: HostKeyQualifyingData(c.Session, c.Nonce, c.Statement, channel, key.name),
	}
	s, r := a.open()
	if r == nil {
		r = c.compareKey(s, key)
	}
	if r != nil {
		return nil, r
	}
	holder := attestation{
		what: "proof of the host's key", raw: HostKeyHolder(c.Session, c.Nonce, c.Statement, channel, key.name),
		signature: k.Holder, key: key,
	}
	if r := holder.checkSignature(); r != nil {
		return nil, r
	}
	return key.key, nil
}

// compareKey wants the key in the certification, and the boot of the evidence.
func (c *SealChallenge) compareKey(s *tpm2.TPMSAttest, key *attestationKey) *Refusal {
	info, err := s.Attested.Certify()
	if err != nil {
		return refuse(ReasonParse, "certification of the host's key: %v", err)
	}
	switch b := bootOf(s); {
	case !bytes.Equal(info.Name.Buffer, key.name):
		return refuse(ReasonHostKey, "the second key certifies %x, not the host's key %x", info.Name.Buffer, key.name)
	case !b.Same(c.Boot) || firmwareOf(s) != c.Firmware:
		return refuse(ReasonSeal, "the host's key was certified in boot %v, the evidence is of boot %v", b, c.Boot)
	}
	return nil
}
