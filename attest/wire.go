package attest

import "time"

// ProtocolVersion is the version of labels, statement and exchange that this
// package speaks.
const ProtocolVersion = 1

// Sizes of wire fields; what is larger is refused before it is looked at.
const (
	MaxStatement    = 64 << 10 // bytes of a statement
	MaxStatements   = 8        // statements of one boot
	MaxCertificate  = 8 << 10  // bytes of one EK or CA certificate
	MaxCertificates = 8        // EK certificate and its issuers
	MaxTPMStructure = 4 << 10  // bytes of any TPM structure
	maxHostID       = 128
	digestSize      = 32
)

// SessionRequest opens an attestation session: the agent says who it is and
// which attestation key (AK) it will quote with.
type SessionRequest struct {
	Host     string  `json:"host" doc:"host id as in inventory"`
	EK       EKClaim `json:"ek"`
	AKPublic []byte  `json:"ak_public" doc:"TPMT_PUBLIC of the attestation key"`
}

// EKClaim names the endorsement key (EK) the AK is a child of. The service
// rebuilds the EK's public area from the certified key and the template of
// Kind; a public area sent by the host is never used.
type EKClaim struct {
	Kind         string   `json:"kind" doc:"EK template: rsa-2048, ecc-p256 or ecc-p384"`
	Certificates [][]byte `json:"certificates,omitempty" doc:"DER: the EK certificate first, then issuers found in the TPM"`
	Public       []byte   `json:"public,omitempty" doc:"DER SubjectPublicKeyInfo, looked at only where the policy is a pin alone"`
}

// Session is the service's challenge.
type Session struct {
	ID              string    `json:"id"`
	CredentialBlob  []byte    `json:"credential_blob" doc:"TPMS_ID_OBJECT without its outer size"`
	EncryptedSecret []byte    `json:"encrypted_secret" doc:"TPM2B_ENCRYPTED_SECRET without its outer size"`
	Nonce           []byte    `json:"nonce"`
	PCRs            []int     `json:"pcrs" doc:"registers to quote in the SHA-256 bank, ascending"`
	AgentPCR        int       `json:"agent_pcr" doc:"register the statement must be measured into"`
	Channel         string    `json:"channel" doc:"channel binding: tls-exporter or none"`
	Expires         time.Time `json:"expires"`
}

// Channel bindings named in Session.Channel.
const (
	ChannelExporter = "tls-exporter" // RFC 9266
	ChannelNone     = "none"
)

// ExporterLabel and ExporterSize are the arguments of the TLS exporter
// (RFC 9266); the context is nil.
const (
	ExporterLabel = "EXPORTER-Channel-Binding"
	ExporterSize  = 32
)

// Evidence answers a Session.
type Evidence struct {
	Statement        []byte   `json:"statement" doc:"canonical JSON of the statement"`
	StatementDigests [][]byte `json:"statement_digests" doc:"SHA-256 of every statement measured in this boot, in order; the last is this statement"`
	Quote            []byte   `json:"quote" doc:"TPMS_ATTEST as signed"`
	Signature        []byte   `json:"signature" doc:"TPMT_SIGNATURE"`
	PCRValues        [][]byte `json:"pcr_values" doc:"32-byte values of the quoted registers, ascending"`
	Proof            []byte   `json:"proof" doc:"HMAC-SHA256 with the activated secret over the body"`
}
