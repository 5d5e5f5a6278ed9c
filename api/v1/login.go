package v1

// Logins are the identity providers at which people sign in. They hold no secret.
type Logins struct {
	Providers []LoginProvider `json:"providers" maxItems:"8"`
}

// LoginProvider is an identity provider, and the public client with which people sign in there.
type LoginProvider struct {
	Name     string   `json:"name" doc:"of the identity provider in the configuration"`
	Issuer   string   `json:"issuer" doc:"https URL, just as the provider writes it; its metadata is below that (OpenID Connect Discovery 1.0)"`
	ClientID string   `json:"client_id" doc:"of a public client: it has no secret"`
	Scopes   []string `json:"scopes" doc:"to ask for"`
	Audience string   `json:"audience" doc:"that the token must have in aud"`
	Token    string   `json:"token" enum:"access,id" doc:"which token of the provider is sent to this service"`
	CA       string   `json:"ca,omitempty" doc:"PEM: the only authorities of the provider's certificate; absent: those of the caller's system"`
}
