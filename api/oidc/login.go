package oidc

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is published for people who sign in.
const (
	// MaxCA bounds the certificates of a provider's authorities in bytes.
	MaxCA = 16 << 10

	maxClientID = 256 // bytes
	maxScopes   = 32
	maxScope    = 128 // bytes
)

// Tokens by which people who signed in are known.
const (
	AccessToken = "access"
	IDToken     = "id"
)

// Login says with which client people sign in at an issuer. All of it is published to any caller: it has no secret, so
// the provider must have the client as a public one.
type Login struct {
	ClientID string
	Scopes   []string // nil: openid and offline_access
	Token    string   // AccessToken, IDToken, or "": IDToken where the client is the audience, AccessToken elsewhere
}

// problems returns what makes no sense. Fields are as in configuration files.
func (l *Login) problems(i *Issuer) (out []Problem) {
	wrong := func(field, format string, args ...any) {
		out = append(out, Problem{"login." + field, fmt.Sprintf(format, args...)})
	}
	switch {
	case l.ClientID == "":
		wrong("client_id", "is missing: register a public client for portcullis login at the provider, and write its id")
	case len(l.ClientID) > maxClientID || !printable(l.ClientID):
		wrong("client_id", "%.64q: want 1 to %d printable characters of ASCII without blanks, the id of the client at the provider", l.ClientID, maxClientID)
	}
	if len(l.Scopes) > maxScopes {
		wrong("scopes", "%d of them: want at most %d", len(l.Scopes), maxScopes)
	}
	for n, s := range l.Scopes {
		switch {
		case s == "" || len(s) > maxScope || !printable(s) || strings.ContainsAny(s, `"\`):
			wrong(fmt.Sprintf("scopes.%d", n), "%.64q: want 1 to %d printable characters of ASCII without blanks, quotes and backslashes, such as openid", s, maxScope)
		case slices.Contains(l.Scopes[:n], s):
			wrong(fmt.Sprintf("scopes.%d", n), "%s is there twice: remove one", s)
		}
	}
	switch l.Token {
	case "", AccessToken, IDToken:
	default:
		wrong("token", "%.32q: want %s or %s, the token of the provider that has %q in aud", l.Token, AccessToken, IDToken, i.Audience)
	}
	if len(l.Scopes) > 0 && l.TokenOf(i) == IDToken && !slices.Contains(l.Scopes, "openid") {
		wrong("scopes", "openid is not among them, and without it the provider makes no ID token: add it")
	}
	return out
}

// printable reports whether a text has only printable characters of ASCII and no blank.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ScopesOf returns the scopes that are asked for.
func (l *Login) ScopesOf() []string {
	if len(l.Scopes) == 0 {
		return []string{"openid", "offline_access"}
	}
	return slices.Clone(l.Scopes)
}

// TokenOf returns the kind of token that the service accepts: AccessToken or IDToken.
func (l *Login) TokenOf(i *Issuer) string {
	switch {
	case l.Token != "":
		return l.Token
	case l.ClientID == i.Audience:
		return IDToken // its aud is the client
	default:
		return AccessToken
	}
}
