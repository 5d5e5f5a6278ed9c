package v1

import "time"

// ResultRequest asks for a host's attestation result.
type ResultRequest struct {
	Nonce []byte `json:"nonce,omitempty" doc:"8 to 64 bytes that the result has to answer (eat_nonce); the session's own if absent"`
}

// AttestationResult is a signed token about where a host stands, and its content for clients that do not decode it.
type AttestationResult struct {
	Host    string    `json:"host"`
	Result  string    `json:"result" doc:"JWT of the profile urn:portcullis:attestation-result:1 (docs/reference/evidence.md); grants nothing here"`
	Status  string    `json:"status" doc:"affirming, warning, contraindicated or none"`
	State   string    `json:"state" doc:"unattested, expired, held, verified, sealed or admitted"`
	Expires time.Time `json:"expires"`
}

// ResultKey is a key that attestation results are signed by.
type ResultKey struct {
	ID      string    `json:"kid"`
	Created time.Time `json:"created"`
	Signs   time.Time `json:"signs" doc:"from when on it signs"`
	Until   time.Time `json:"until,omitzero" doc:"when it is published no longer; absent: it is the newest"`
}

// ResultKeys are they, the oldest first.
type ResultKeys struct {
	Issuer string      `json:"issuer"`
	Keys   []ResultKey `json:"keys"`
}

// ResultRotation asks for another key.
type ResultRotation struct {
	Drop   bool   `json:"drop,omitempty" doc:"take back all keys before at once, and sign by the new one: they were stolen, or the root that opens them is lost. Tokens signed by them are refused from then on, wherever keys are requested again"`
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}
