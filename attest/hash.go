package attest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Labels separate the hashes of this protocol from each other. Each ends in a
// zero byte.
const (
	labelStart    = "portcullis/start/2\x00"
	labelHandOver = "portcullis/handover/2\x00"
	labelQuote    = "portcullis/quote/2\x00"
	labelSeal     = "portcullis/seal/2\x00"
	labelProof    = "portcullis/proof/2\x00"
	labelEvidence = "portcullis/evidence/2\x00"
	labelHostKey  = "portcullis/host-key/2\x00"
	labelHolder   = "portcullis/host-key-holder/2\x00"
)

// hashFields is SHA-256 over label and the fields, each after its length in four bytes, big endian: no two lists of fields
// have the same input.
func hashFields(label string, fields ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		h.Write(f)
	}
	return h.Sum(nil)
}

// Start is what runs on the host from its boot on, as the agent says.
type Start struct {
	Agent string `json:"agent" yaml:"agent"` // version of the agent
	Image string `json:"image" yaml:"image"` // identity of the image that was booted; "" unknown
}

// Digest is E0, which the agent extends into the agent PCR before its first statement of a boot.
func (s Start) Digest() []byte { return hashFields(labelStart, []byte(s.Agent), []byte(s.Image)) }

// HandOverDigest is SEP, which the agent extends last: after it nothing more can be attested in this boot.
func HandOverDigest() []byte { return hashFields(labelHandOver) }

// StatementDigest is S, the SHA-256 of the statement's exact bytes.
func StatementDigest(statement []byte) []byte {
	sum := sha256.Sum256(statement)
	return sum[:]
}

// Extend is what a PCR of the SHA-256 bank holds after digest was extended
// into value.
func Extend(value, digest []byte) []byte {
	h := sha256.New()
	h.Write(value)
	h.Write(digest)
	return h.Sum(nil)
}

// OpenPCRValue is V1, the value of the agent PCR while evidence is made: zero, extended with E0 and then with each
// statement digest of this boot in order.
func OpenPCRValue(start Start, statements [][]byte) []byte {
	v := Extend(make([]byte, digestSize), start.Digest())
	for _, s := range statements {
		v = Extend(v, s)
	}
	return v
}

// CappedPCRValue is V2, the value of the agent PCR after V1 was extended with SEP.
func CappedPCRValue(open []byte) []byte { return Extend(open, HandOverDigest()) }

// QualifyingData is Q, the extraData of the quote and of the certification of
// the second key: it binds them to one session, one statement, one connection
// and one key. channel is empty when the session says ChannelNone.
func QualifyingData(session string, nonce, statementDigest, channel, ak1Name []byte) []byte {
	return hashFields(labelQuote, []byte(session), nonce, statementDigest, channel, ak1Name)
}

// SealQualifyingData is Q2, the extraData of the seal quote. channel is that of
// the connection the seal is sent over.
func SealQualifyingData(session string, nonce, statementDigest, channel, ak2Name []byte) []byte {
	return hashFields(labelSeal, []byte(session), nonce, statementDigest, channel, ak2Name)
}

// HostKeyQualifyingData is Q3, the extraData of the certification of a host's key
// by the second key. channel is that of the connection the seal is sent over.
func HostKeyQualifyingData(session string, nonce, statementDigest, channel, hostKeyName []byte) []byte {
	return hashFields(labelHostKey, []byte(session), nonce, statementDigest, channel, hostKeyName)
}

// HostKeyHolder is the digest that a host's key signs to show that the sender of the key holds it. It has the same fields.
func HostKeyHolder(session string, nonce, statementDigest, channel, hostKeyName []byte) []byte {
	return hashFields(labelHolder, []byte(session), nonce, statementDigest, channel, hostKeyName)
}

// Proof is the HMAC that shows the credential was activated, over everything
// in ev but Proof itself.
func Proof(secret []byte, session string, ev *Evidence) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write(hashFields(labelProof, []byte(session), ev.digest()))
	return m.Sum(nil)
}

func (ev *Evidence) digest() []byte {
	return hashFields(labelEvidence, ev.Statement, ev.Quote, ev.Signature,
		ev.Certify, ev.CertifySignature, hashFields("", ev.PCRValues...), ev.EventLog)
}
