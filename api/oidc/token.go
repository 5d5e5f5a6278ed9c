package oidc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// MaxToken bounds a token in bytes.
	MaxToken = 8 << 10
	// Leeway is how far the clocks of a provider and of this service may differ.
	Leeway = 30 * time.Second
	// MaxLife is how long a token may be good. One that says more is refused: a token that a provider can't take back should
	// not be good for long.
	MaxLife = 24 * time.Hour

	maxHeader = 2 << 10 // bytes
	maxKeyID  = 256
)

// algorithms are those that are accepted: with these, who verifies can't sign.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}

// Refused says why a token is refused, and what to do about it.
type Refused struct {
	Detail, Hint string

	Forbidden bool // the token is good, but no rule assigns a role to it
	Busy      bool // it was not looked at: others are served first

	pending <-chan struct{} // closed when the keys were read again; nil: that would change nothing
}

// Error implements error.
func (e *Refused) Error() string { return "token of an identity provider: " + e.Detail }

// refuse makes a Refused. The hint has no formatting.
func refuse(format, hint string, args ...any) error {
	return &Refused{Detail: fmt.Sprintf(format, args...), Hint: hint}
}

const hintAnother = "log in again at the identity provider, for a token for this service"

// LooksLike reports whether a bearer token has the form of a JWT: three parts of base64url, of which the first begins a JSON object.
func LooksLike(token string) bool {
	if len(token) > MaxToken || !strings.HasPrefix(token, "eyJ") {
		return false
	}
	dots := 0
	for _, b := range []byte(token) {
		switch {
		case b == '.':
			dots++
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_':
		default:
			return false
		}
	}
	return dots == 2
}

// header is what counts of the header of a token.
type header struct {
	Algorithm jose.SignatureAlgorithm `json:"alg"`
	Type      string                  `json:"typ"`
	Key       string                  `json:"kid"`
	JWK       json.RawMessage         `json:"jwk"`
	Chain     json.RawMessage         `json:"x5c"`
	Critical  json.RawMessage         `json:"crit"`
}

// claims are those that decide, and all of them.
type claims struct {
	Issuer    string           `json:"iss"`
	Subject   string           `json:"sub"`
	Audience  jwt.Audience     `json:"aud"`
	Expiry    *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	IssuedAt  *jwt.NumericDate `json:"iat"`
	Bound     json.RawMessage  `json:"cnf"`
	Events    json.RawMessage  `json:"events"`

	all map[string]any
}

// unverified is a token that was read. Nothing it says counts yet.
type unverified struct {
	header header
	signed *jose.JSONWebSignature
	claims claims
}

// parse reads a token.
func parse(token string) (*unverified, error) {
	if !LooksLike(token) {
		return nil, refuse("it has not the form of a JWT of at most %d bytes", hintAnother, MaxToken)
	}
	u := new(unverified)
	first, _, _ := strings.Cut(token, ".")
	if err := u.readHeader(first); err != nil {
		return nil, err
	}
	var err error
	if u.signed, err = jose.ParseSignedCompact(token, algorithms); err != nil {
		return nil, refuse("it does not parse as a signed JWT", hintAnother)
	}
	if err := u.claims.read(u.signed.UnsafePayloadWithoutVerification()); err != nil {
		return nil, err
	}
	return u, nil
}

// readHeader refuses a header by which keys would come from the token, or another kind of token.
func (u *unverified) readHeader(part string) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || len(raw) > maxHeader || json.Unmarshal(raw, &u.header) != nil {
		return refuse("its header is not a JSON object of at most %d bytes in base64url", hintAnother, maxHeader)
	}
	h := &u.header
	switch {
	case !slices.Contains(algorithms, h.Algorithm):
		return refuse("it is signed with alg %.16q: only %s are accepted", "have the provider sign with one of these", h.Algorithm, algorithmNames())
	case h.JWK != nil || h.Chain != nil || h.Critical != nil:
		return refuse("its header has one of jwk, x5c and crit", "have the provider leave these out: keys are read from its key set alone")
	case len(h.Key) > maxKeyID:
		return refuse("its key id has more than %d bytes", hintAnother, maxKeyID)
	}
	switch strings.ToLower(strings.TrimPrefix(h.Type, "application/")) {
	case "", "jwt", "at+jwt":
		return nil
	default:
		return refuse("its typ is %.32q: only access and ID tokens (JWT, at+jwt) are accepted", hintAnother, h.Type)
	}
}

func algorithmNames() string {
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// read reads claims strictly: names that differ in case are different claims, and one that comes twice is an error.
func (c *claims) read(payload []byte) error {
	if json.Unmarshal(payload, c) != nil || json.Unmarshal(payload, &c.all) != nil || c.all == nil {
		return refuse("its claims are not a JSON object with iss, sub, aud, exp and iat of their types", hintAnother)
	}
	return nil
}

// verify checks the signature with the keys of its issuer.
func (u *unverified) verify(keys *keySet) error {
	k, err := keys.find(u.header.Key, u.header.Algorithm)
	if err != nil {
		return err
	}
	payload, err := u.signed.Verify(k.public)
	if err != nil {
		return refuse("its signature is not that of key %q of the provider", hintAnother, u.header.Key)
	}
	u.claims = claims{}
	return u.claims.read(payload)
}

// check checks the claims of a token whose signature is good.
func (c *claims) check(i *Issuer, now time.Time) error {
	switch {
	case c.Issuer != i.URL:
		return refuse("its issuer is not %s", hintAnother, i.URL)
	case !c.Audience.Contains(i.Audience):
		return refuse("it was made for others: its aud has not %q", "ask the identity provider for a token with that audience", i.Audience)
	case c.Subject == "":
		return refuse("it has no sub", "have the provider put the subject into its tokens")
	case c.Bound != nil:
		return refuse("it is bound to a key of its owner (cnf), which a bearer can't show", "ask the provider for a bearer token")
	case c.Events != nil:
		return refuse("it is a message about events and no proof of identity", hintAnother)
	case c.Expiry == nil || c.IssuedAt == nil:
		return refuse("it lacks exp or iat", "have the provider put both into its tokens")
	}
	begins, ends := c.IssuedAt.Time(), c.Expiry.Time()
	switch {
	case !now.Before(ends.Add(Leeway)):
		return refuse("it ended at %s", "log in again at the identity provider", stamp(ends))
	case begins.After(now.Add(Leeway)):
		return refuse("it was made at %s, and it is %s here", "compare the clocks of the provider and of this service", stamp(begins), stamp(now))
	case c.NotBefore != nil && c.NotBefore.Time().After(now.Add(Leeway)):
		return refuse("it is not good before %s, and it is %s here", "wait, or compare the clocks", stamp(c.NotBefore.Time()), stamp(now))
	case !ends.After(begins) || ends.Sub(begins) > MaxLife:
		return refuse("it is good from %s to %s: at most %v are accepted", "have the provider make tokens that live shorter", stamp(begins), stamp(ends), MaxLife)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// asRefused returns what refused a token.
func asRefused(err error) *Refused {
	r, _ := errors.AsType[*Refused](err)
	return r
}
