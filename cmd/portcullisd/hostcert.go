package main

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/hostca"
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
	root, err := readRoot(h.Root, c.path)
	if err != nil {
		return nil, hint(fmt.Errorf("host_certificates.ca_root: %w", err),
			"bring it back from where it is kept; if it is lost, make another (portcullis keys root FILE), and begin anew (portcullis authority rotate --at-once --yes)")
	}
	return &hostca.Options{Root: root, Domain: h.TrustDomain, Life: h.Life, Period: h.CAPeriod}, nil
}

// newHostAuthority creates the authority that issues certificates to hosts; nil without a root. A key that does not open is
// reported, and hosts do without. An operator starts over, or brings the root back.
func (s *service) newHostAuthority(ctx context.Context) (*hostca.Service, error) {
	o := s.parts.hosts
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.store, s.log, s.clock.Now
	h, err := hostca.New(*o)
	if err != nil {
		return nil, fmt.Errorf("host_certificates: %w", err)
	}
	if err := h.Prepare(ctx); err != nil {
		s.log.Error("hosts get no certificates", "error", err)
	}
	return h, nil
}
