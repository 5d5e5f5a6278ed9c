package attest

import (
	"log/slog"
	"time"

	"portcullis/attest/ek"
)

// Challenge is the service's side of a session. It is stored, and must be
// consumed with the first evidence whatever the outcome. It holds the secret,
// so logs show only its id and host.
type Challenge struct {
	ID       string    `json:"id"`
	Host     string    `json:"host"`
	Issued   time.Time `json:"issued"`
	Expires  time.Time `json:"expires"`
	Secret   []byte    `json:"secret"`
	Nonce    []byte    `json:"nonce"`
	EKDigest string    `json:"ek_digest"` // hex SHA-256 of the EK's SubjectPublicKeyInfo
	EKNotes  []string  `json:"ek_notes,omitempty"`
	EKName   []byte    `json:"ek_name"`
	Issuers  []string  `json:"ek_issuers,omitempty"` // hex SHA-256 of the SubjectPublicKeyInfo of CAs
	TPM      ek.Model  `json:"tpm,omitzero"`

	Start            Start    `json:"start"`
	StatementDigests [][]byte `json:"statement_digests"`
	AK1Public        []byte   `json:"ak1_public"`
	AK2Public        []byte   `json:"ak2_public"`

	PCRs     []int  `json:"pcrs"` // with AgentPCR, ascending
	AgentPCR int    `json:"agent_pcr"`
	Channel  string `json:"channel"`
}

// LogValue implements slog.LogValuer without the secret.
func (c *Challenge) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", c.ID), slog.String("host", c.Host), slog.Time("expires", c.Expires))
}

// open is V1, the required value of the agent PCR.
func (c *Challenge) open() []byte { return OpenPCRValue(c.Start, c.StatementDigests) }
