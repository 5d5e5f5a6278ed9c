package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/oidc"
	v1 "portcullis/api/v1"
)

// loginRoute registers what a person needs to sign in. It comes before a credential: the answer is the same for all callers, made
// at the start, and has only what the operator wrote into the configuration for it.
func loginRoute(s *Server, a huma.API) {
	register(s, a, operation{
		id: "list-logins", method: http.MethodGet, path: "/v1/login", tag: "credential", access: accessPublic,
		summary: "List the identity providers at which people sign in, and the public client of each",
	}, func(context.Context, *struct{}) (*bodyOutput[v1.Logins], error) {
		return &bodyOutput[v1.Logins]{&s.logins}, nil
	})
}

// LoginsOf returns what is published of issuers: of those with a client for people, what they need to sign in with it.
func LoginsOf(issuers []oidc.Issuer) (out []v1.LoginProvider) {
	for n := range issuers {
		i := &issuers[n]
		if i.Login == nil {
			continue
		}
		out = append(out, v1.LoginProvider{
			Name: i.Name, Issuer: i.URL, ClientID: i.Login.ClientID, Scopes: i.Login.ScopesOf(), Audience: i.Audience,
			Token: i.Login.TokenOf(i), CA: string(i.CA),
		})
	}
	return out
}
