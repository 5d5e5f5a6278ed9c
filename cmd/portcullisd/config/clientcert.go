package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/strictyaml"
)

// ClientCertificate is an authority whose certificates clients may authenticate with.
type ClientCertificate struct {
	Name        string         `yaml:"name"`
	CAFile      string         `yaml:"ca_file"`
	TrustDomain string         `yaml:"trust_domain"`
	Rules       []ClientRule   `yaml:"rules"`
	Refuse      []ClientDenial `yaml:"refuse"`
}

// ClientRule assigns a role and a scope to certificates.
type ClientRule struct {
	SPIFFE  string    `yaml:"spiffe"`
	DNS     string    `yaml:"dns"`
	Role    string    `yaml:"role"`
	Tenants []string  `yaml:"tenants"`
	PKeys   yaml.Node `yaml:"p_keys"` // absent is another thing than empty
	Hosts   []string  `yaml:"hosts"`
}

// ClientDenial names certificates that are refused.
type ClientDenial struct {
	Serial string `yaml:"serial"`
	SPIFFE string `yaml:"spiffe"`
	DNS    string `yaml:"dns"`
}

// clientCertificates checks the section without what files hold.
func (k *checker) clientCertificates(c *Config) {
	const key = "client_certificates"
	var all []clientcert.Authority
	for n := range c.ClientCertificates {
		a := c.ClientCertificates[n].plain()
		at := fmt.Sprintf("%s.%d", key, n)
		for _, p := range a.Problems() {
			k.wrong(at+"."+p.Field, "%s", p.Text)
		}
		k.set(at+".ca_file", c.ClientCertificates[n].CAFile)
		if c.HostCertificates.Root != "" && a.TrustDomain == c.HostCertificates.TrustDomain {
			k.wrong(at+".trust_domain", "%s is that of the certificates of hosts (host_certificates.trust_domain), on which tenants are root: choose another one for the hosts", a.TrustDomain)
		}
		all = append(all, a)
	}
	for _, p := range clientcert.Conflicts(all) {
		at := key
		if p.Field != "" {
			at += "." + p.Field
		}
		k.wrong(at, "%s", p.Text)
	}
}

// plain returns the authority without what its file holds.
func (a *ClientCertificate) plain() clientcert.Authority {
	out := clientcert.Authority{Name: a.Name, TrustDomain: a.TrustDomain}
	for _, r := range a.Rules {
		out.Rules = append(out.Rules, clientcert.Rule{
			SPIFFE: r.SPIFFE, DNS: r.DNS, Role: credential.Role(r.Role),
			Scope: credential.ScopeForm{PKeys: r.PKeys, Hosts: r.Hosts, Tenants: r.Tenants},
		})
	}
	for _, d := range a.Refuse {
		out.Refuse = append(out.Refuse, clientcert.Denial(d))
	}
	return out
}

// LoadClientAuthorities returns the authorities of certificates of clients with what their files hold.
func LoadClientAuthorities(c *Config) (out []clientcert.Authority, err error) {
	own, err := ownAuthorities(c)
	for n := range c.ClientCertificates {
		a := c.ClientCertificates[n].plain()
		file := c.Path(c.ClientCertificates[n].CAFile)
		data, wrong := input.ReadFile(file, input.Small)
		if wrong == nil {
			if a.Roots, wrong = clientcert.ReadRoots(data); wrong != nil {
				wrong = fmt.Errorf("%s: %w", file, wrong)
			}
		}
		for _, root := range a.Roots {
			if slices.ContainsFunc(own, func(o *x509.Certificate) bool {
				return string(o.RawSubjectPublicKeyInfo) == string(root.RawSubjectPublicKeyInfo)
			}) {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %.128q is the authority of the members of the store (cluster.ca), none of which is a client of the API", file, root.Subject.String()))
			}
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%sclient_certificates.%d.ca_file: %w", lineOf(c, "client_certificates", strconv.Itoa(n), "ca_file"), n, wrong))
		}
		out = append(out, a)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range clientcert.Conflicts(out) {
		err = errors.Join(err, fmt.Errorf("%sclient_certificates.%s: %s", lineOf(c, append([]string{"client_certificates"}, strings.Split(p.Field, ".")...)...), p.Field, p.Text))
	}
	return out, err
}

// lineOf returns file and line of a key, as errors begin with them; "" where the file can't be read any more.
func lineOf(c *Config, path ...string) string {
	data, err := Read(c.File)
	if err != nil {
		return ""
	}
	root, err := strictyaml.Document(c.File, data, maxConfig)
	if line := strictyaml.LineOf(root, path...); err == nil && line > 0 {
		return fmt.Sprintf("%s:%d: ", c.File, line)
	}
	return ""
}

// ownAuthorities returns the authorities of the installation that sign certificates for other purposes. That of hosts is not in a file.
func ownAuthorities(c *Config) (out []*x509.Certificate, _ error) {
	if c.Cluster.Name == "" || len(c.ClientCertificates) == 0 {
		return nil, nil
	}
	data, err := input.ReadFile(c.Path(c.Cluster.CA), input.Small)
	if err != nil {
		return nil, fmt.Errorf("cluster.ca: %w", err)
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out, nil
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, cert)
		}
	}
}

// ClientWarnings returns what an operator should know of the authorities of certificates of clients: those that end soon.
func ClientWarnings(all []clientcert.Authority, now time.Time) (out []string) {
	for n := range all {
		if err := all[n].Soon(now); err != nil {
			out = append(out, "client_certificates: "+err.Error())
		}
	}
	return out
}
