package attest

import "time"

// ProtocolVersion is the version of labels, statement and exchange that this
// package speaks.
const ProtocolVersion = 2

// Sizes of wire fields; a larger field is refused before it is read.
const (
	MaxStatement    = 64 << 10 // bytes of a statement
	MaxStatements   = 8        // statements of one boot
	MaxEventLog     = 512 << 10
	MaxCertificate  = 8 << 10 // bytes of one EK or CA certificate
	MaxCertificates = 8       // EK certificate and its issuers
	MaxTPMStructure = 4 << 10 // bytes of any TPM structure
	maxHostID       = 128
	digestSize      = 32
)

// SessionRequest opens an attestation session. The agent states its host, the digests that it measured into the agent PCR,
// and the two attestation keys (AK) that it will quote with. Both are children of the EK. The first can be used only while
// the register holds the value of this list, the second only after hand-over.
type SessionRequest struct {
	Host             string   `json:"host" doc:"host id as in inventory"`
	EK               EKClaim  `json:"ek"`
	Start            Start    `json:"start" doc:"what the agent measured first in this boot"`
	StatementDigests [][]byte `json:"statement_digests" doc:"SHA-256 of every statement measured in this boot, in order; the last is the one that will be sent"`
	AK1Public        []byte   `json:"ak1_public" doc:"TPMT_PUBLIC of the key of the open state"`
	AK2Public        []byte   `json:"ak2_public" doc:"TPMT_PUBLIC of the key of the capped state"`
	// Locks says that the agent can lock adapters: evidence that lacks nothing
	// else then earns a ticket for orders.
	Locks bool `json:"locks,omitempty" doc:"the agent can lock adapters: evidence that lacks nothing else earns a ticket for orders"`
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
	Quote            []byte   `json:"quote" doc:"TPMS_ATTEST as signed by the first key"`
	Signature        []byte   `json:"signature" doc:"TPMT_SIGNATURE of quote"`
	Certify          []byte   `json:"certify" doc:"TPMS_ATTEST in which the first key certifies the second"`
	CertifySignature []byte   `json:"certify_signature" doc:"TPMT_SIGNATURE of certify"`
	PCRValues        [][]byte `json:"pcr_values" doc:"32-byte values of the quoted registers, ascending"`
	EventLog         []byte   `json:"event_log,omitempty" doc:"the firmware's event log, as the kernel shows it"`
	Proof            []byte   `json:"proof" doc:"HMAC-SHA256 with the activated secret over the body"`
}

// Seal is the service's second challenge, after accepted evidence: the agent
// extends the hand-over digest into its register and answers with SealEvidence.
type Seal struct {
	Nonce   []byte    `json:"nonce"`
	Expires time.Time `json:"expires"`
	// HostKey says that the service issues a certificate for a key of the host.
	HostKey bool `json:"host_key,omitempty" doc:"the service issues a certificate for a key of the host, if the seal brings one"`
}

// SealEvidence answers a Seal. It may come over another connection than the
// evidence: its qualifying data has the exporter value of the one it comes over.
type SealEvidence struct {
	Quote     []byte `json:"quote" doc:"TPMS_ATTEST as signed by the second key, over the same registers"`
	Signature []byte `json:"signature" doc:"TPMT_SIGNATURE"`
	// HostKey asks for a certificate; nil: none is wanted.
	HostKey *HostKey `json:"host_key,omitempty" doc:"a key of the host that is to get a certificate"`
}

// HostKey is a key in the host's TPM that signs whatever it is given, as TLS needs
// it, and the second key's word for it.
type HostKey struct {
	Public           []byte `json:"public" doc:"TPMT_PUBLIC of the key"`
	Certify          []byte `json:"certify" doc:"TPMS_ATTEST in which the second key certifies it"`
	CertifySignature []byte `json:"certify_signature" doc:"TPMT_SIGNATURE of certify"`
	Holder           []byte `json:"holder" doc:"TPMT_SIGNATURE by the key itself: its sender holds it"`
}
