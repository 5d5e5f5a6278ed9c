package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/credential"
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
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxBearer {
		return ""
	}
	return token
}

// authorize is the middleware of one operation: it lets a request pass when
// its credential allows a. A client certificate is a credential by itself: with one
// that does not allow a, no token does.
func (s *Server) authorize(a access) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		host, refused := s.admitPeer(ctx.Context(), a)
		if refused != nil {
			r, w := humachi.Unwrap(ctx)
			writeProblem(w, r, refused)
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
		who, refused := s.authenticate(ctx.Header("Authorization"), a)
		if refused != nil {
			r, w := humachi.Unwrap(ctx)
			s.noteEnded(r)
			writeProblem(w, r, refused)
			return
		}
		noteActor(ctx.Context(), who.Name)
		confined := huma.WithContext(ctx, tenancy.Within(ctx.Context(), scopeOf(&who)))
		next(huma.WithValue(confined, principalKey{}, who))
	}
}

// whileGood returns a context that ends when the credential of the request does, for streams.
func whileGood(ctx context.Context) (context.Context, context.CancelFunc) {
	if p, _ := ctx.Value(principalKey{}).(credential.Principal); !p.Expires.IsZero() {
		return context.WithDeadline(ctx, p.Expires)
	}
	return context.WithCancel(ctx)
}

// EndedTokens records requests with a token that has ended, for each token once a minute at most.
type EndedTokens interface {
	RefusedToken(ctx context.Context, token, source string, ended time.Time)
}

// noteEnded has it written down that a token was shown which has ended.
func (s *Server) noteEnded(r *http.Request) {
	now := time.Now()
	who, ended := s.tokens.Load().Ended(bearer(r.Header.Get("Authorization")), now)
	if ended && s.ended != nil && s.shown.Allow(who.Name, now) {
		s.ended.RefusedToken(r.Context(), who.Name, hostOf(r.RemoteAddr), who.Expires)
	}
}

// scopeOf returns what a credential may have to do with, nil: everything.
func scopeOf(p *credential.Principal) *tenancy.Scope {
	if p.PKeys == nil {
		return nil
	}
	return &tenancy.Scope{PKeys: p.PKeys, Hosts: p.Hosts}
}

// authenticate returns the owner of the credential in header, or why it does not open a.
func (s *Server) authenticate(header string, a access) (credential.Principal, *problem) {
	token, now := bearer(header), time.Now()
	who, ok := s.tokens.Load().Find(token, now)
	was, ended := s.tokens.Load().Ended(token, now)
	switch {
	case token == "":
		return who, newProblem(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"no operator token was sent", "send the header Authorization: Bearer TOKEN")
	case ended:
		return who, newProblem(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"token "+was.Name+" ended at "+stamp(was.Expires), "use another token; portcullisd token makes one")
	case !ok:
		return who, newProblem(http.StatusUnauthorized, v1.CodeUnauthenticated,
			"the token that was sent is not known here", "compare it with the tokens file of the service, which a reload reads again")
	}
	if !a.allows(who.Role) {
		return who, newProblem(http.StatusForbidden, v1.CodeForbidden,
			"token "+who.Name+" has the role "+string(who.Role)+", which may not do this",
			"use a token with the role operator")
	}
	if who.PKeys != nil && (a == accessOperate || a == accessAudit) {
		return who, newProblem(http.StatusForbidden, v1.CodeForbidden,
			"token "+who.Name+" has ranges of P_Keys (p_keys), and this is about more than the clusters of these",
			"use a token without p_keys")
	}
	return who, nil
}
