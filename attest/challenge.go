package attest

import (
	"io"
	"time"
)

// Challenge is the service's side of a session. It is stored, and must be
// consumed with the first evidence whatever the outcome. It holds the secret,
// so it is not for logs.
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
	AKPublic []byte    `json:"ak_public"`
	PCRs     []int     `json:"pcrs"` // with AgentPCR, ascending
	AgentPCR int       `json:"agent_pcr"`
	Channel  string    `json:"channel"`
}

// Begin checks that the EK is the one inventory has for the host, that the AK
// has exactly the template, and makes a credential that only the TPM holding
// both can open. An error is always a *Refusal or an error of rnd.
func Begin(rnd io.Reader, now time.Time, req *SessionRequest, exp Expected, pol *Policy) (*Challenge, *Session, error) {
	return nil, nil, refuse(ReasonPolicy, "no policy")
}

// Verify checks evidence against the challenge it answers. channel is the TLS
// exporter value of the connection it came over. The caller must have consumed
// ch before.
func Verify(now time.Time, ch *Challenge, channel []byte, ev *Evidence, exp Expected, pol *Policy) Verdict {
	return Verdict{Code: ReasonPolicy, Detail: "no policy"}
}
