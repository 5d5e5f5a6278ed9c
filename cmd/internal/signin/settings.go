package signin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
	"golang.org/x/oauth2"
)

// Bounds of settings.
const (
	maxURL    = 2048 // bytes
	maxWord   = 256  // bytes of the id of a client, and of a scope
	maxScopes = 64
	maxCA     = 256 << 10 // bytes
)

// Settings say at which provider a person signs in, and with which client. They hold no secret.
type Settings struct {
	Issuer   string // https URL, just as the provider writes it
	ClientID string // of a public client
	Scopes   []string
	UseID    bool   // the ID token is the one that the service accepts; else the access token
	Audience string // that this token must have in aud, since it is for the service then; "": any
	CA       []byte // PEM: the only authorities of the provider's certificate; nil: those of the system
}

// Check returns what makes no sense in the settings.
func (s *Settings) Check() error {
	if err := checkURL(s.Issuer); err != nil || strings.ContainsAny(s.Issuer, "?#") {
		return fmt.Errorf("the issuer %.128q of the identity provider is not https://HOST[:PORT]/PATH", s.Issuer)
	}
	if !word(s.ClientID) {
		return fmt.Errorf("the client id %.64q is not 1 to %d printable characters without blanks", s.ClientID, maxWord)
	}
	if len(s.Scopes) > maxScopes || slices.ContainsFunc(s.Scopes, func(scope string) bool { return !word(scope) }) {
		return fmt.Errorf("the scopes %.256q are not at most %d, of 1 to %d printable characters without blanks", s.Scopes, maxScopes, maxWord)
	}
	if len(s.Audience) > maxURL || !printable(s.Audience) {
		return fmt.Errorf("the audience %.128q is not at most %d printable characters", s.Audience, maxURL)
	}
	_, err := s.tls()
	return err
}

// word reports whether a text is 1 to maxWord printable characters of ASCII without blanks.
func word(s string) bool {
	return s != "" && len(s) <= maxWord && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// tls returns how the provider is connected to.
func (s *Settings) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(s.CA) == 0 {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if len(s.CA) > maxCA || !config.RootCAs.AppendCertsFromPEM(s.CA) {
		return nil, fmt.Errorf("the CA of the identity provider has no certificate in PEM, or more than %d bytes", maxCA)
	}
	return config, nil
}

// checkURL refuses what is no https URL, and one with a password in it.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" || u.User != nil || !printable(text) {
		return errors.New("want https://HOST[:PORT]/PATH")
	}
	return nil
}

// printable reports whether a text has only printable characters of ASCII, which a terminal obeys none of.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// metadata is what is read of a provider's discovery document.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`
}

// parseMetadata reads the discovery document of an issuer.
func parseMetadata(b []byte, issuer string) (*metadata, error) {
	m := new(metadata)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, &Error{
			Detail: "the metadata of the identity provider at " + issuer + " is no JSON object of the right shape",
			Hint:   "compare oidc.issuer in the configuration of the service with the issuer of the provider",
		}
	}
	if m.Issuer != issuer {
		return nil, &Error{
			Detail: fmt.Sprintf("the metadata at %s is of the issuer %.128q", issuer, m.Issuer),
			Hint:   "have the operator of the service write oidc.issuer just as the provider does",
		}
	}
	for _, e := range []struct {
		name, url string
		needed    bool
	}{
		{"token_endpoint", m.Token, true},
		{"authorization_endpoint", m.Authorization, false},
		{"device_authorization_endpoint", m.Device, false},
		{"revocation_endpoint", m.Revocation, false},
	} {
		if e.url == "" && !e.needed {
			continue
		}
		if err := checkURL(e.url); err != nil {
			return nil, &Error{
				Detail: fmt.Sprintf("the %s %.128q of the identity provider is no https URL", e.name, e.url),
				Hint:   "nothing is sent there: ask the operator of the provider",
			}
		}
	}
	return m, nil
}

// Provider is an OpenID Connect provider whose metadata was read.
type Provider struct {
	settings Settings
	meta     *metadata
	base     http.RoundTripper
}

// Discover reads the metadata of the provider of s.
func Discover(ctx context.Context, s Settings) (*Provider, error) {
	if err := s.Check(); err != nil {
		return nil, &Error{Detail: err.Error(), Hint: "have the operator of the service correct oidc in its configuration"}
	}
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	return discover(ctx, s, &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: answerWithin, MaxResponseHeaderBytes: maxHeader,
	})
}

func discover(ctx context.Context, s Settings, base http.RoundTripper) (*Provider, error) {
	p := &Provider{settings: s, base: base}
	from := strings.TrimSuffix(s.Issuer, "/") + "/.well-known/openid-configuration"
	status, body, err := p.ask(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, p.failed(ctx, "read the metadata of the identity provider", err)
	}
	if status != http.StatusOK {
		return nil, &Error{
			Detail: fmt.Sprintf("the identity provider answers %d at %s", status, from),
			Hint:   "have the operator of the service compare oidc.issuer with the issuer of the provider",
		}
	}
	if p.meta, err = parseMetadata(body, s.Issuer); err != nil {
		return nil, err
	}
	return p, nil
}

// config returns the client of this provider.
func (p *Provider) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.settings.ClientID, Scopes: p.settings.Scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: p.meta.Authorization, TokenURL: p.meta.Token, DeviceAuthURL: p.meta.Device, AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}
