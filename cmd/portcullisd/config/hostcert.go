package config

import (
	"fmt"
	"time"

	"portcullis/api/hostca"
	"portcullis/cmd/portcullisd/command"
)

// HostCertificates says which certificates hosts get.
type HostCertificates struct {
	Root        string        `yaml:"ca_root"`
	TrustDomain string        `yaml:"trust_domain"`
	Life        time.Duration `yaml:"life"`
	CAPeriod    time.Duration `yaml:"ca_period"`
}

// loadHostCertificates reads what the section names. Without a root hosts get no
// certificates.
func loadHostCertificates(c *Config) (*hostca.Options, error) {
	h := &c.HostCertificates
	if h.Root == "" {
		return nil, nil
	}
	root, err := readRoot(h.Root, c.Path)
	if err != nil {
		return nil, command.Hint(fmt.Errorf("host_certificates.ca_root: %w", err),
			"bring it back from where it is kept; if it is lost, make another (portcullis keys root FILE), and begin again (portcullis authority rotate --at-once --yes)")
	}
	return &hostca.Options{Root: root, Domain: h.TrustDomain, Life: h.Life, Period: h.CAPeriod}, nil
}
