package v1

import "time"

// WhoAmI is what the service knows of the credential of a request. It holds no secret.
type WhoAmI struct {
	Name     string     `json:"name" doc:"of the credential, as the audit log has it"`
	Method   string     `json:"method" enum:"token,oidc,x509" doc:"how the request was authenticated. token: a token of the tokens file; oidc: a token of an identity provider; x509: a client certificate"`
	Provider string     `json:"provider,omitempty" doc:"of oidc and x509: the identity provider or the authority, by its name in the configuration"`
	Role     string     `json:"role"`
	Scope    Scope      `json:"scope"`
	Created  *time.Time `json:"created,omitempty" doc:"absent: not known"`
	Expires  *time.Time `json:"expires,omitempty" doc:"from then on the credential is refused; absent: it has no end"`
	Limits   CallLimits `json:"limits"`

	Operations []string `json:"operations" nullable:"false" doc:"those that do more than read and that the role and the ranges of P_Keys allow, by operationId, sorted; which objects they reach is the scope"`
}

// Scope says to which objects a credential is confined within its role. An absent list confines nothing.
type Scope struct {
	Tenants []string `json:"tenants,omitempty" doc:"nothing exists for the credential but what these have"`
	PKeys   []string `json:"p_keys,omitempty" doc:"ranges of P_Keys: it changes only clusters that have one of them"`
	Hosts   []string `json:"hosts,omitempty" doc:"with p_keys: patterns of the hosts that it may assign; absent with p_keys: none"`
}

// CallLimits are the rates that the requests of a credential are held to, from all addresses together.
type CallLimits struct {
	PerSecond float64 `json:"requests_per_second" doc:"on average"`
	Burst     int     `json:"burst" doc:"requests at once"`
}
