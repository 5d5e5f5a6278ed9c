package signin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
	"golang.org/x/oauth2"
)

// Error says why a person is not signed in, and what to do about it. It quotes no token.
type Error struct {
	Detail, Hint string

	// Over is set where the provider refuses to renew: the session has ended, and a later attempt can't succeed.
	Over bool
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }

// ErrInterrupted is the end of an attempt that its person broke off.
var ErrInterrupted = errors.New("interrupted")

// Codes of RFC 6749 and RFC 8628, and how to handle them.
var hints = map[string]string{
	"access_denied":          "the request was denied at the provider: sign in again, and allow it; if the provider denies it, ask its operator",
	"expired_token":          "sign in again, and enter the code in time",
	"invalid_client":         "the client must be a public one at the provider, without a secret: ask the operator of the service",
	"unauthorized_client":    "the operator of the provider must allow this way to sign in for the client; --browser is another way",
	"unsupported_grant_type": "the provider does not know this way to sign in; --browser is another way",
	"invalid_scope":          "have the operator of the service compare oidc.login.scopes with what the provider allows for the client",
	"invalid_grant":          "sign in again",
}

// failed returns the error of an attempt to do something at the provider. It has nothing of a body but the error code and its
// description.
func (p *Provider) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ErrInterrupted
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return refused(doing, r)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the address would only repeat the issuer
	}
	hint := "check that this machine reaches " + p.settings.Issuer
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		hint = "the certificate of the provider is not of an authority that is believed here: name its CA with --provider-ca FILE"
	case errors.As(err, &name):
		hint = "the certificate of the provider is for another name: ask the operator of the service"
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %v", answerWithin)
	case strings.HasPrefix(err.Error(), "oauth2: "):
		err, hint = errors.New("the answer is not as OAuth 2.0 has it"), "ask the operator of the provider"
	}
	return &Error{Detail: doing + ": " + bounded(err.Error(), 512), Hint: hint}
}

// refused returns the error of an answer that refuses.
func refused(doing string, r *oauth2.RetrieveError) error {
	status := 0
	if r.Response != nil {
		status = r.Response.StatusCode
	}
	return refusal(doing, status, r.ErrorCode, r.ErrorDescription)
}

// refusedBy returns the error of an answer that refuses, by its body.
func refusedBy(doing string, status int, body []byte) error {
	var e struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil {
		e.Code = "" // then the status says it
	}
	return refusal(doing, status, e.Code, e.Description)
}

func refusal(doing string, status int, code, description string) error {
	if code == "" {
		return &Error{Detail: fmt.Sprintf("%s: the identity provider answers %d", doing, status), Hint: "try again; if it lasts, ask the operator of the provider"}
	}
	detail := doing + ": the identity provider answers " + bounded(code, 64)
	if description != "" {
		detail += ": " + bounded(description, 256)
	}
	hint := hints[code]
	if hint == "" {
		hint = "ask the operator of the provider"
	}
	return &Error{Detail: detail, Hint: hint, Over: code == "invalid_grant"}
}

// bounded returns a text of at most so many bytes, of printable characters alone.
func bounded(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
