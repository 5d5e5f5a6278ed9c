package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/credential"
	"portcullis/api/roles"
	"portcullis/api/rules"
	v1 "portcullis/api/v1"
)

func whoamiRoute(s *Server, a huma.API) {
	register(s, a, operation{
		id: "whoami", method: http.MethodGet, path: "/v1/whoami", tag: "credential", access: accessView,
		summary: "Show the credential of the request: its name, role, scope, end and limits",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.WhoAmI], error) {
		p, _ := ctx.Value(principalKey{}).(credential.Principal)
		return &bodyOutput[v1.WhoAmI]{s.whoami(&p)}, nil
	})
}

func (s *Server) whoami(p *credential.Principal) *v1.WhoAmI {
	rate := s.known.Rate()
	out := &v1.WhoAmI{
		Name: p.Name, Method: "token", Provider: p.Provider, Role: string(p.Role),
		Scope:   v1.Scope{Tenants: slices.Clone(p.Tenants), Hosts: slices.Clone(p.Hosts)},
		Created: timeOrNil(p.Created), Expires: timeOrNil(p.Expires),
		Operations: s.mayUse(p),
		Limits:     v1.CallLimits{PerSecond: rate.PerSecond, Burst: rate.Burst},
	}
	switch {
	case p.Machine:
		out.Method = "x509"
	case p.Provider != "":
		out.Method = "oidc"
	}
	for _, r := range p.PKeys {
		out.Scope.PKeys = append(out.Scope.PKeys, r.String())
	}
	return out
}

// mayUse returns the operations that do more than read and that a credential may use, sorted.
func (s *Server) mayUse(p *credential.Principal) []string {
	ids := []string{}
	for id, a := range s.opens {
		if a.asksCredential() && rules.VersionOf(id) != 0 && roles.Allows(p.Role, id) && !beyondPKeys(p, a) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// timeOrNil returns a time in UTC, nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
