package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"portcullis/api/hostca"
	"portcullis/fabricsm/vault"
)

// hostCertificatesConfig says which certificates hosts get.
type hostCertificatesConfig struct {
	Root        string        `yaml:"ca_root"`
	TrustDomain string        `yaml:"trust_domain"`
	Life        time.Duration `yaml:"life"`
	CAPeriod    time.Duration `yaml:"ca_period"`
}

// loadHostCertificates reads what the section names. Without a root hosts get no
// certificates.
func loadHostCertificates(c *config) (*hostca.Options, error) {
	h := &c.HostCertificates
	if h.Root == "" {
		return nil, nil
	}
	o := &hostca.Options{Domain: h.TrustDomain, Life: h.Life, Period: h.CAPeriod}
	var err error
	if name, ok := strings.CutPrefix(h.Root, credentialPrefix); ok {
		o.Root, err = vault.CredentialRoot(os.Getenv("CREDENTIALS_DIRECTORY"), name)
	} else {
		o.Root, err = vault.FileRoot(c.path(h.Root))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint(fmt.Errorf("host_certificates.ca_root: %w", err),
			"bring it back from where it is kept, or make another: portcullis keys root "+c.path(h.Root))
	}
	if err != nil {
		return nil, fmt.Errorf("host_certificates.ca_root: %w", err)
	}
	return o, nil
}

// newHostAuthority makes what gives hosts certificates; nil without a root. A key that
// does not open is told of, and hosts do without: an operator begins anew, or brings
// the root back.
func (s *service) newHostAuthority(ctx context.Context) (*hostca.Service, error) {
	o := s.parts.hosts
	if o == nil {
		return nil, nil
	}
	o.Store = s.store
	h, err := hostca.New(*o)
	if err != nil {
		return nil, fmt.Errorf("host_certificates: %w", err)
	}
	if err := h.Open(ctx); err != nil {
		s.log.Error("hosts get no certificates", "error", err)
	}
	return h, nil
}
