package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/credential"
	"portcullis/api/oidc"
	"portcullis/api/preauth"
	"portcullis/api/problem"
	"portcullis/api/roles"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// maxBearer bounds what is hashed for a request without a valid credential.
const maxBearer = 512

type principalKey struct{}

// actor names the credential of an authenticated request, for the audit log.
func actor(ctx context.Context) string {
	p, _ := ctx.Value(principalKey{}).(credential.Principal)
	return p.Name
}

// bearer returns the token of an Authorization header (RFC 6750), or "".
func bearer(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxBearer && !oidc.LooksLike(token) {
		return ""
	}
	return token
}

// TokenVerifier verifies tokens of identity providers. Package api/oidc implements it.
type TokenVerifier interface {
	// Known returns the owner of a token that was verified before. It does no work for others.
	Known(token string, now time.Time) (credential.Principal, bool)
	// Authenticate returns the owner of a token, or an *oidc.Refused.
	Authenticate(ctx context.Context, token string, now time.Time, turn oidc.Turn) (credential.Principal, error)
}

// verifierOf returns what verifies a token, nil where it is none of an identity provider.
func verifierOf(s *Server, token string) TokenVerifier {
	if s.verifier == nil || !oidc.LooksLike(token) {
		return nil
	}
	return s.verifier
}

// knownOwner returns the owner of the credential of a request, if that is known without work.
func knownOwner(s *Server, r *http.Request, now time.Time) (credential.Principal, bool) {
	if shown := shownBy(s, r); shown != nil {
		return s.machines.Known(shown[0], now)
	}
	return knownToken(s, bearer(r.Header.Get("Authorization")), now)
}

// knownToken returns the owner of a token that is known without work.
func knownToken(s *Server, token string, now time.Time) (credential.Principal, bool) {
	if v := verifierOf(s, token); v != nil {
		return v.Known(token, now)
	}
	return s.tokens.Load().Find(token, now)
}

// verified returns the owner of a token of an identity provider. A token that is not known takes one of the slots that all
// requests without a credential share.
func verified(s *Server, r *http.Request, v TokenVerifier, token string, now time.Time) (credential.Principal, *problem.Problem) {
	who, err := v.Authenticate(r.Context(), token, now, func(ctx context.Context) (func(), bool) {
		return s.preauth.Enter(ctx, preauth.SourceOf(r.RemoteAddr))
	})
	if err == nil {
		return who, nil
	}
	refused, ok := errors.AsType[*oidc.Refused](err)
	switch {
	case !ok:
		noteFault(r.Context(), err)
		return who, problem.Internal()
	case refused.Busy:
		s.metrics.refused("work")
		return who, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, refused.Detail, refused.Hint)
	case refused.Forbidden:
		return who, problem.New(http.StatusForbidden, v1.CodeForbidden, refused.Detail, refused.Hint)
	default:
		return who, problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated, "the token of an identity provider is refused: "+refused.Detail, refused.Hint)
	}
}

// authorize is the middleware of one operation: it lets a request pass when
// its credential allows the operation. A client certificate is a credential by itself: with one
// that does not allow a, no token does.
func (s *Server) authorize(id string, a access) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		host, refused := s.admitPeer(ctx.Context(), a)
		if refused != nil {
			_, w := humachi.Unwrap(ctx)
			problem.Write(w, refused)
			return
		}
		if host.cert != nil {
			noteActor(ctx.Context(), "agent:"+host.host)
			ctx = huma.WithValue(ctx, peerKey{}, host)
		}
		if a == accessPublic || a == accessHost || a == accessStatus || s.local && a.asksCredential() {
			next(ctx)
			return
		}
		r, w := humachi.Unwrap(ctx)
		who, refused := s.authenticate(r, id, a)
		if refused != nil {
			s.noteEnded(r)
			problem.Write(w, refused)
			return
		}
		noteActor(ctx.Context(), who.Name)
		confined := huma.WithContext(ctx, tenancy.Within(ctx.Context(), scopeOf(&who)))
		confined = huma.WithValue(confined, stillKey{}, stillGood(s, r, &who))
		next(huma.WithValue(confined, principalKey{}, who))
	}
}

// EndedTokens records requests with a token that has ended, for each token once a minute at most.
type EndedTokens interface {
	RefusedToken(ctx context.Context, token, source string, ended time.Time)
}

// noteEnded has it written down that a token was shown which has ended.
func (s *Server) noteEnded(r *http.Request) {
	now, token := time.Now(), bearer(r.Header.Get("Authorization"))
	if shownBy(s, r) != nil || verifierOf(s, token) != nil {
		return
	}
	who, ended := s.tokens.Load().Ended(token, now)
	if ended && s.ended != nil && s.shown.Allow(who.Name, now) {
		s.ended.RefusedToken(r.Context(), who.Name, hostOf(r.RemoteAddr), who.Expires)
	}
}

// scopeOf returns what a credential may have to do with, nil: everything.
func scopeOf(p *credential.Principal) *tenancy.Scope {
	switch {
	case p.Role == roles.Tenant:
		return &tenancy.Scope{Tenants: append([]string{}, p.Tenants...)}
	case p.PKeys == nil:
		return nil
	}
	return &tenancy.Scope{PKeys: p.PKeys, Hosts: p.Hosts, Adopted: roles.Allows(p.Role, "start-adoption")}
}

// authenticate returns the owner of the credential of a request, or why it does not open the operation id, of access a.
func (s *Server) authenticate(r *http.Request, id string, a access) (credential.Principal, *problem.Problem) {
	who, refused := ownerOf(s, r)
	switch {
	case refused != nil:
		return who, refused
	case !a.asksCredential() || !roles.Allows(who.Role, id):
		return who, problem.New(http.StatusForbidden, v1.CodeForbidden,
			who.Kind()+" "+who.Name+" has the role "+string(who.Role)+", which may not do this",
			"use a "+who.Kind()+" with the role "+roles.OneOf(roles.Of(id)))
	case beyondPKeys(&who, a):
		return who, problem.New(http.StatusForbidden, v1.CodeForbidden,
			who.Kind()+" "+who.Name+" has ranges of P_Keys (p_keys), and this is about more than the clusters of these",
			"use a "+who.Kind()+" without p_keys")
	}
	return who, nil
}

// beyondPKeys reports whether a credential has ranges of P_Keys, and a is about more than their clusters.
func beyondPKeys(who *credential.Principal, a access) bool {
	return who.PKeys != nil && (a == accessOperate || a == accessAudit)
}

// ownerOf returns the owner of the credential of a request, or why it has none.
func ownerOf(s *Server, r *http.Request) (credential.Principal, *problem.Problem) {
	if shown := shownBy(s, r); shown != nil {
		return machineOf(s, r, shown)
	}
	token, now := bearer(r.Header.Get("Authorization")), time.Now()
	if v := verifierOf(s, token); v != nil {
		return verified(s, r, v, token, now)
	}
	who, ok := s.tokens.Load().Find(token, now)
	was, ended := s.tokens.Load().Ended(token, now)
	switch {
	case token == "":
		return who, problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"no operator token was sent", "send the header Authorization: Bearer TOKEN")
	case ended:
		return who, problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"token "+was.Name+" ended at "+was.Expires.UTC().Format(time.RFC3339), "use another token; portcullisd token makes one")
	case !ok:
		return who, problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"the token that was sent is not known here", "compare it with the tokens file of the service, which a reload reads again")
	}
	return who, nil
}
