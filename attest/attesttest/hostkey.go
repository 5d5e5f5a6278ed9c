package attesttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
)

// HostKeyPolicy is what the key of a host needs: the agent's register capped, in this
// boot.
func (h *Host) HostKeyPolicy() []byte {
	return attest.HostKeyPolicy(h.AgentPCR, attest.CappedPCRValue(h.Open()), h.Boot)
}

// HostKeyPublic is the TPMT_PUBLIC of a host's key with a policy.
func HostKeyPublic(key *ecdsa.PublicKey, policy []byte) []byte {
	pub := attest.HostKeyTemplate(policy)
	x, y := coordinates(key)
	pub.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: x}, Y: tpm2.TPM2BECCParameter{Buffer: y},
	})
	return tpm2.Marshal(pub)
}

// HostKey makes a key and has the second key certify it for a seal, as an honest
// agent does once the register is capped.
func (h *Host) HostKey(s *attest.Session, seal *attest.Seal, channel []byte) (*ecdsa.PrivateKey, *attest.HostKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	k, err := h.CertifyHostKey(s, seal, channel, key, HostKeyPublic(&key.PublicKey, h.HostKeyPolicy()), nil)
	return key, k, err
}

// CertifyHostKey certifies any public area as that of a key. alter, which may be nil,
// changes what is signed.
func (h *Host) CertifyHostKey(s *attest.Session, seal *attest.Seal, channel []byte, key *ecdsa.PrivateKey, public []byte, alter func(*tpm2.TPMSAttest)) (*attest.HostKey, error) {
	digest := sha256.Sum256(public)
	name := append([]byte{0, 0x0b}, digest[:]...)
	statement := attest.StatementDigest(h.measured)
	a := h.attestation(tpm2.TPMSTAttestCertify, attest.HostKeyQualifyingData(s.ID, seal.Nonce, statement, channel, name), h.AK2Name())
	a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{
		Name: tpm2.TPM2BName{Buffer: name}, QualifiedName: tpm2.TPM2BName{Buffer: h.QualifiedName(name)},
	})
	if alter != nil {
		alter(a)
	}
	k := &attest.HostKey{Public: public, Certify: tpm2.Marshal(*a)}
	var err error
	if k.CertifySignature, err = Sign(h.AK2, k.Certify); err != nil {
		return nil, err
	}
	k.Holder, err = Sign(key, attest.HostKeyHolder(s.ID, seal.Nonce, statement, channel, name))
	return k, err
}
