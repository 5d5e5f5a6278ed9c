package config

import (
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/api/oidc"
	"portcullis/cmd/internal/input"
)

// Issuer is an identity provider whose tokens are accepted.
type Issuer struct {
	Name      string       `yaml:"name"`
	Issuer    string       `yaml:"issuer"`
	Audience  string       `yaml:"audience"`
	CAFile    string       `yaml:"ca_file"`
	NameClaim string       `yaml:"name_claim"`
	Rules     []IssuerRule `yaml:"rules"`
	Login     *IssuerLogin `yaml:"login"`
}

// IssuerLogin says with which client people sign in.
type IssuerLogin struct {
	ClientID string   `yaml:"client_id"`
	Scopes   []string `yaml:"scopes"`
	Token    string   `yaml:"token"`
}

// IssuerRule assigns a role to tokens in which a claim has a value.
type IssuerRule struct {
	Claim        string   `yaml:"claim"`
	Value        string   `yaml:"value"`
	Role         string   `yaml:"role"`
	Tenants      []string `yaml:"tenants"`
	TenantsClaim string   `yaml:"tenants_claim"`
}

func (k *checker) oidc(issuers []Issuer) {
	if len(issuers) > oidc.MaxIssuers {
		k.wrong("oidc", "%d of them: want at most %d", len(issuers), oidc.MaxIssuers)
	}
	for n := range issuers {
		i := &issuers[n]
		key := fmt.Sprintf("oidc.%d", n)
		for _, p := range i.plain().Problems() {
			k.wrong(key+"."+p.Field, "%s", p.Text)
		}
		if slices.ContainsFunc(issuers[:n], func(other Issuer) bool { return other.Name == i.Name }) {
			k.wrong(key+".name", "%s is named twice: two people of one name would be the same", i.Name)
		}
		if slices.ContainsFunc(issuers[:n], func(other Issuer) bool { return other.Issuer == i.Issuer }) {
			k.wrong(key+".issuer", "%s is there twice", i.Issuer)
		}
	}
}

// plain returns the issuer without what files hold.
func (i *Issuer) plain() *oidc.Issuer {
	out := &oidc.Issuer{Name: i.Name, URL: i.Issuer, Audience: i.Audience, NameClaim: i.NameClaim}
	for _, r := range i.Rules {
		out.Rules = append(out.Rules, oidc.Rule{Claim: r.Claim, Value: r.Value, Role: credential.Role(r.Role), Tenants: r.Tenants, TenantsClaim: r.TenantsClaim})
	}
	if i.Login != nil {
		out.Login = &oidc.Login{ClientID: i.Login.ClientID, Scopes: i.Login.Scopes, Token: i.Login.Token}
	}
	return out
}

// loadIssuers returns the issuers with the certificate authorities that their files hold.
func loadIssuers(c *Config, now time.Time) (out []oidc.Issuer, err error) {
	for n := range c.OIDC {
		i := c.OIDC[n].plain()
		conf, wrong := LoadClientTLS("", c.Path(c.OIDC[n].CAFile), "", "", now)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("oidc.%d.ca_file: %s", n, strings.TrimPrefix(wrong.Error(), ".ca: ")))
			continue
		}
		i.TLS = conf
		if i.Login != nil && c.OIDC[n].CAFile != "" {
			text, wrong := input.ReadFile(c.Path(c.OIDC[n].CAFile), oidc.MaxCA)
			if wrong != nil {
				err = errors.Join(err, fmt.Errorf("oidc.%d.ca_file: %w: people who sign in are sent it: leave only the authority of the provider in it", n, wrong))
				continue
			}
			i.CA = certificatesOf(text)
		}
		out = append(out, *i)
	}
	return out, err
}

// certificatesOf returns the certificates of a PEM file and nothing else that is in it: they are published.
func certificatesOf(text []byte) (out []byte) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
}

// checkTokenNames refuses names of tokens that look like people of an identity provider, like machines with a certificate, or like what
// else the audit log names as the actor.
func checkTokenNames(file string, t *credential.Tokens) error {
	var errs []error
	for _, p := range t.All() {
		if strings.HasPrefix(p.Name, oidc.NamePrefix) {
			errs = append(errs, fmt.Errorf("tokens file %s: token %q: names that begin with %s are of people at identity providers: choose another one", file, p.Name, oidc.NamePrefix))
		}
		if strings.HasPrefix(p.Name, clientcert.NamePrefix) {
			errs = append(errs, fmt.Errorf("tokens file %s: token %q: names that begin with %s are of machines with a certificate: choose another one", file, p.Name, clientcert.NamePrefix))
		}
		if p.Name == audit.Service || strings.HasPrefix(p.Name, "agent:") || strings.HasPrefix(p.Name, "source:") {
			errs = append(errs, fmt.Errorf("tokens file %s: token %q: the audit log has this name for what the service does by itself, or for a host: choose another one", file, p.Name))
		}
	}
	return errors.Join(errs...)
}
