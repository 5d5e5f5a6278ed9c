package v1

import "portcullis/attest"

// AttestResult answers accepted evidence. Refused evidence is answered by one
// uniform problem instead; its reason is in the host's status and in the audit
// log only, so that an attacker learns nothing from the difference.
type AttestResult struct {
	Host  string `json:"host"`
	Phase Phase  `json:"phase"`
	// StatusToken lets this agent read its own host's status as long as this evidence
	// counts. It grants nothing else. Shown once, stored hashed.
	StatusToken string `json:"status_token"`
	// Seal is what the agent must answer next: until then the host is not
	// admitted.
	Seal *attest.Seal `json:"seal"`
	// LockTicket asks for orders to lock the host's adapters (POST
	// /v1/attest/locks), once. Then there is nothing else: attest again when they
	// are locked.
	LockTicket string `json:"lock_ticket,omitempty"`
	// Result is a token that says so to others (docs/reference/evidence.md): verified, and not
	// handed over yet. Left out where the service signs none.
	Result string `json:"result,omitempty"`
	// DrawChallenges has the agent let each adapter draw a challenge, and send it with
	// that ticket: files of settings are bound to it.
	DrawChallenges bool `json:"draw_challenges,omitempty"`
}

// SealResult answers an accepted seal.
type SealResult struct {
	Host  string `json:"host"`
	Phase Phase  `json:"phase"`
	// Result is as in AttestResult: handed over now.
	Result string `json:"result,omitempty"`
	// Certificate is that of the key that came with the seal. It reads the status of
	// this host and does nothing else.
	Certificate []byte `json:"certificate,omitempty" doc:"DER; of the key that came with the seal"`
}

// GUIDResolved says that it was found out which of two hosts has a GUID.
type GUIDResolved struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"what was found, for the audit log"`
}

// TPMCleared acknowledges that a host's TPM was cleared on purpose.
type TPMCleared struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}
