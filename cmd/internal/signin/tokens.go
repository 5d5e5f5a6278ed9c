package signin

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"

	"portcullis/fabricsm/ib"
)

// Bounds of tokens in bytes. The service takes no longer bearer token.
const (
	maxBearer  = 8 << 10
	maxRefresh = 16 << 10
	maxSubject = 512

	latest = 1 << 34 // seconds since 1970, the year 2514: what tokens may say of times
)

// Tokens are what a provider returns for a person who signed in.
type Tokens struct {
	Bearer  ib.SecretText // for the service
	Refresh ib.SecretText // zero: the provider returns none, and the session ends with Bearer
	Begins  time.Time     // of Bearer; zero: not known
	Expires time.Time     // of Bearer
	Subject string        // the person, as the provider has it
}

// claims are what is read of a JWT. Nothing of it was verified.
type claims struct {
	Issuer   string           `json:"iss"`
	Subject  string           `json:"sub"`
	Audience jwt.Audience     `json:"aud"`
	Nonce    string           `json:"nonce"`
	Expiry   *jwt.NumericDate `json:"exp"`
	IssuedAt *jwt.NumericDate `json:"iat"`
}

// readClaims reads the claims of a JWT and verifies nothing.
func readClaims(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(token) > maxBearer || len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return c, false
	}
	ok = c.Expiry != nil && *c.Expiry > 0 && *c.Expiry < latest && len(c.Subject) <= maxSubject && (c.IssuedAt == nil || *c.IssuedAt >= 0 && *c.IssuedAt <= *c.Expiry)
	return c, ok
}

// tokens returns what the answer of a token endpoint has, after it was compared with what was asked: nonce is what the ID token must
// have, "" without one, and subject is the person that the session is of, "" at its beginning.
func (p *Provider) tokens(answer *oauth2.Token, nonce, subject string) (*Tokens, error) {
	id, _ := answer.Extra("id_token").(string)
	if id == "" && nonce != "" && slices.Contains(p.settings.Scopes, "openid") {
		return nil, &Error{Detail: "the identity provider returns no ID token, though openid was asked for", Hint: "ask the operator of the provider"}
	}
	out := &Tokens{Refresh: ib.NewSecretText(answer.RefreshToken)}
	if id != "" {
		c, ok := readClaims(id)
		switch {
		case !ok:
			return nil, &Error{Detail: fmt.Sprintf("the ID token of the identity provider is no JWT with exp of at most %d bytes", maxBearer), Hint: "have the provider put fewer claims into its tokens"}
		case c.Issuer != p.settings.Issuer:
			return nil, &Error{Detail: fmt.Sprintf("the ID token is of the issuer %s", bounded(c.Issuer, 128)), Hint: "ask the operator of the provider"}
		case !c.Audience.Contains(p.settings.ClientID):
			return nil, &Error{Detail: "the ID token was made for another client", Hint: "ask the operator of the provider"}
		case nonce != "" && c.Nonce != nonce:
			return nil, &Error{Detail: "the ID token has another nonce: it was not made for this sign-in", Hint: "sign in again; if it happens again, ask the operator of the provider"}
		}
		out.Subject = c.Subject
	}
	bearer := answer.AccessToken
	if p.settings.UseID {
		bearer = id
	}
	if bearer == "" {
		return nil, &Error{Detail: "the identity provider returns no ID token, which the service accepts", Hint: "have the operator of the service add openid to oidc.login.scopes, or set oidc.login.token to access"}
	}
	c, ok := readClaims(bearer)
	if !ok {
		return nil, &Error{
			Detail: fmt.Sprintf("the access token of the identity provider is no JWT with exp of at most %d bytes, and the service accepts no other one", maxBearer),
			Hint:   "have the provider make JWT access tokens for the service, or have the operator of the service set oidc.login.token to id",
		}
	}
	if a := p.settings.Audience; a != "" && !c.Audience.Contains(a) {
		return nil, &Error{
			Detail: fmt.Sprintf("the token of the identity provider is for %s, and not for %s: it was not sent to the service", bounded(fmt.Sprintf("%q", []string(c.Audience)), 256), bounded(a, 128)),
			Hint:   "have the provider put the audience of the service into its tokens, or have the operator of the service compare audience, login.scopes and login.token of oidc with the provider",
		}
	}
	out.Bearer, out.Expires = ib.NewSecretText(bearer), c.Expiry.Time()
	if c.IssuedAt != nil {
		out.Begins = c.IssuedAt.Time()
	}
	if id == "" {
		out.Subject = c.Subject
	}
	switch {
	case subject != "" && out.Subject != subject:
		return nil, &Error{Detail: "the identity provider renews it for another person", Hint: "sign in again", Over: true}
	case len(answer.RefreshToken) > maxRefresh || !printable(answer.RefreshToken):
		return nil, &Error{Detail: fmt.Sprintf("the refresh token of the identity provider has more than %d bytes, or others than printable ones", maxRefresh), Hint: "ask the operator of the provider"}
	}
	return out, nil
}

// Renew returns new tokens for those of a session. The refresh token is the new one where the provider returns another. An *Error with
// Over says that the session has ended.
func (p *Provider) Renew(ctx context.Context, old *Tokens) (*Tokens, error) {
	const doing = "renew the session"
	answer, err := p.config().TokenSource(p.within(ctx), &oauth2.Token{RefreshToken: old.Refresh.Reveal()}).Token()
	if err != nil {
		return nil, p.failed(ctx, doing, err)
	}
	return p.tokens(answer, "", old.Subject)
}

// Revoke has the provider take back the tokens of a session. It reports false where the provider has no place for that.
func (p *Provider) Revoke(ctx context.Context, old *Tokens) (bool, error) {
	if p.meta.Revocation == "" {
		return false, nil
	}
	token, kind := old.Refresh, "refresh_token"
	if token.IsZero() {
		token, kind = old.Bearer, "access_token"
	}
	const doing = "revoke the session"
	status, body, err := p.ask(ctx, http.MethodPost, p.meta.Revocation, url.Values{
		"token": {token.Reveal()}, "token_type_hint": {kind}, "client_id": {p.settings.ClientID},
	})
	if err != nil {
		return false, p.failed(ctx, doing, err)
	}
	if status < 200 || status > 299 {
		return false, refusedBy(doing, status, body)
	}
	return true, nil
}
