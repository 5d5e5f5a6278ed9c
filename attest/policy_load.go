package attest

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"portcullis/fabricsm/strictyaml"
)

// policyFile is the policy as an operator writes it. Every field has the
// default of DefaultPolicy; unknown keys are refused.
type policyFile struct {
	EK struct {
		Mode   EKMode   `yaml:"mode"`
		Roots  []string `yaml:"roots"`  // PEM files: roots and known issuers of TPM vendors
		Expiry Expiry   `yaml:"expiry"` // strict or ignore-leaf
		Deny   []string `yaml:"deny"`   // hex SHA-256 of SubjectPublicKeyInfo: EKs and issuers
	} `yaml:"ek"`
	PCRs         *[]int          `yaml:"pcrs"`
	AgentPCR     *int            `yaml:"agent_pcr"`
	Channel      string          `yaml:"channel"` // tls-exporter or none
	SessionLife  *time.Duration  `yaml:"session_life"`
	StatementAge *time.Duration  `yaml:"statement_age"`
	ClockSkew    *time.Duration  `yaml:"clock_skew"`
	SealLife     *time.Duration  `yaml:"seal_life"`
	Firmware     []FirmwareFloor `yaml:"firmware"`
	Starts       []Start         `yaml:"starts"`
	TPMFirmware  []TPMFirmware   `yaml:"tpm_firmware"`
	Assurance    *Assurance      `yaml:"assurance"`    // none, or G0 to G3
	AcceptDPU    *bool           `yaml:"accept_dpu"`   // true: hosts with DPUs are admitted
	RequireLock  *bool           `yaml:"require_lock"` // false: hosts are admitted with adapters that their tenants can change
}

// maxPolicy bounds the text of a policy in bytes.
const maxPolicy = 1 << 20

var digestPattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// LoadPolicy reads a policy in YAML. read opens the PEM files it names. The
// policy's Version becomes the first 16 hex digits of the SHA-256 of all that
// was read. Every problem is reported, those of syntax with their line.
func LoadPolicy(data []byte, read func(name string) ([]byte, error)) (*Policy, error) {
	var f policyFile
	if err := strictyaml.LoadOptional("attestation policy", data, maxPolicy, &f); err != nil {
		return nil, err
	}
	p := DefaultPolicy()
	f.apply(p)
	version := sha256.New()
	version.Write(data)
	var errs []error
	for _, name := range f.EK.Roots {
		b, err := read(name)
		if err == nil {
			version.Write(b)
			err = p.AddCertificates(b)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("EK roots %s: %w", name, err))
		}
	}
	for _, d := range f.EK.Deny {
		if !digestPattern.MatchString(d) {
			errs = append(errs, fmt.Errorf("deny %q: want 64 hexadecimal digits, the SHA-256 of a SubjectPublicKeyInfo", clip(d)))
		}
		p.deny(d)
	}
	if err := errors.Join(append(errs, p.Check())...); err != nil {
		return nil, fmt.Errorf("attestation policy: %w", err)
	}
	p.Version = hex.EncodeToString(version.Sum(nil))[:16]
	return p, nil
}

func (f *policyFile) apply(p *Policy) {
	set(&p.Mode, f.EK.Mode)
	set(&p.Expiry, f.EK.Expiry)
	set(&p.Channel, f.Channel)
	setPointer(&p.PCRs, f.PCRs)
	setPointer(&p.AgentPCR, f.AgentPCR)
	setPointer(&p.SessionLife, f.SessionLife)
	setPointer(&p.StatementAge, f.StatementAge)
	setPointer(&p.ClockSkew, f.ClockSkew)
	setPointer(&p.SealLife, f.SealLife)
	setPointer(&p.Assurance, f.Assurance)
	setPointer(&p.RequireLock, f.RequireLock)
	setPointer(&p.AcceptDPU, f.AcceptDPU)
	p.FirmwareFloors, p.Starts, p.TPMFirmware = f.Firmware, f.Starts, f.TPMFirmware
}

func set[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

func setPointer[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

func (p *Policy) deny(digest string) {
	if p.Denied == nil {
		p.Denied = map[string]bool{}
	}
	p.Denied[strings.ToLower(digest)] = true
}

// AddCertificates takes TPM vendors' CA certificates in PEM: self-signed ones
// become roots, others known issuers.
func (p *Policy) AddCertificates(pemBytes []byte) error {
	n := 0
	for {
		var block *pem.Block
		block, pemBytes = pem.Decode(pemBytes)
		if block == nil {
			break
		}
		n++
		if err := p.addCertificate(block); err != nil {
			return fmt.Errorf("PEM block %d: %w", n, err)
		}
	}
	if n == 0 {
		return errors.New("no certificate in PEM found")
	}
	return nil
}

func (p *Policy) addCertificate(block *pem.Block) error {
	if block.Type != "CERTIFICATE" {
		return fmt.Errorf("is a %q, want a CERTIFICATE", block.Type)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if !cert.IsCA {
		return fmt.Errorf("%q is not a CA certificate", cert.Subject)
	}
	if p.Roots == nil {
		p.Roots, p.Intermediates = x509.NewCertPool(), x509.NewCertPool()
	}
	if cert.CheckSignatureFrom(cert) == nil {
		p.Roots.AddCert(cert)
		return nil
	}
	p.Intermediates.AddCert(cert)
	return nil
}
