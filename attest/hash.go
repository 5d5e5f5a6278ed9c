package attest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Labels separate the hashes of this protocol from each other. Each ends in a
// zero byte.
const (
	labelStart    = "portcullis/start/1\x00"
	labelQuote    = "portcullis/quote/1\x00"
	labelProof    = "portcullis/proof/1\x00"
	labelEvidence = "portcullis/evidence/1\x00"
)

// hashFields is SHA-256 over label and the fields, each after its length in
// four bytes, big endian: no two lists of fields give the same input.
func hashFields(label string, fields ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		h.Write(f)
	}
	return h.Sum(nil)
}

// StartDigest is E0, what the agent extends into the agent PCR before its
// first statement of a boot.
func StartDigest(agentVersion string) []byte {
	return hashFields(labelStart, []byte(agentVersion))
}

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

// AgentPCRValue is what the agent PCR must hold: zero, extended with E0 and
// then with each statement digest of this boot in order.
func AgentPCRValue(agentVersion string, statements [][]byte) []byte {
	v := Extend(make([]byte, digestSize), StartDigest(agentVersion))
	for _, s := range statements {
		v = Extend(v, s)
	}
	return v
}

// QualifyingData is Q, the extraData of the quote: it binds the quote to one
// session, one statement, one connection and one key. channel is empty when
// the session says ChannelNone.
func QualifyingData(session string, nonce, statementDigest, channel, akName []byte) []byte {
	return hashFields(labelQuote, []byte(session), nonce, statementDigest, channel, akName)
}

// Proof is the HMAC that shows the credential was activated, over everything
// in ev but Proof itself.
func Proof(secret []byte, session string, ev *Evidence) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write(hashFields(labelProof, []byte(session), ev.digest()))
	return m.Sum(nil)
}

func (ev *Evidence) digest() []byte {
	return hashFields(labelEvidence, ev.Statement, hashFields("", ev.StatementDigests...),
		ev.Quote, ev.Signature, hashFields("", ev.PCRValues...))
}
