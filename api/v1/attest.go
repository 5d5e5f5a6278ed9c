package v1

// AttestResult answers accepted evidence. Refused evidence is answered by one
// uniform problem instead; its reason is in the host's status and in the audit
// log only, so that an attacker learns nothing from the difference.
type AttestResult struct {
	Host  string `json:"host"`
	Phase Phase  `json:"phase"`
	// StatusToken lets this agent read its own host's status until the next
	// session of the host. It grants nothing else. Shown once, stored hashed.
	StatusToken string `json:"status_token"`
}
