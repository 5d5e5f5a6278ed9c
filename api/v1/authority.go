package v1

import "time"

// HostAuthorities are the roots that certificates of hosts come from. A program that identifies hosts by their certificates
// trusts them all, and looks for new ones once a day.
type HostAuthorities struct {
	TrustDomain string          `json:"trust_domain" doc:"hosts are spiffe://TRUST_DOMAIN/host/ID"`
	Life        int             `json:"life_seconds" doc:"of a certificate of a host"`
	Items       []HostAuthority `json:"items"`
}

// HostAuthority is one of them.
type HostAuthority struct {
	ID          string    `json:"id" doc:"serial number of the certificate, in hexadecimal digits"`
	State       string    `json:"state" enum:"signs,next,accepted"`
	From        time.Time `json:"from" doc:"when it signs, or began to"`
	Until       time.Time `json:"until" doc:"when its certificate ends"`
	SHA256      string    `json:"sha256" doc:"of the certificate (DER), in hexadecimal digits"`
	Certificate string    `json:"certificate" doc:"PEM"`
}

// States of a HostAuthority.
const (
	AuthoritySigns    = "signs"
	AuthorityNext     = "next"     // signs from a time to come
	AuthorityAccepted = "accepted" // another one signs; its certificates are still in force
)

// AuthorityRotation asks for the next authority.
type AuthorityRotation struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
	AtOnce bool   `json:"at_once,omitempty" doc:"it signs now, and all others and their certificates end"`
}
