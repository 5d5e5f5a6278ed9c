package ek

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
)

// Model is what an EK certificate calls its TPM (EK Credential Profile, 3.1.2):
// its maker as "id:" and eight hexadecimal digits, the maker's name of the part,
// and the version as "id:" and eight digits.
type Model struct {
	Maker   string `json:"maker"`
	Name    string `json:"model"`
	Version string `json:"version"`
}

const maxModelText = 64 // bytes kept of each part

// modelOf reads the subject alternative name.
func modelOf(cert *x509.Certificate) (m Model, err error) {
	for _, ext := range cert.Extensions {
		if !ext.Id.Equal(oidSAN) {
			continue
		}
		if err := m.read(ext.Value); err != nil {
			return Model{}, err
		}
	}
	return m, nil
}

func (m *Model) read(der []byte) error {
	var names []asn1.RawValue
	rest, err := asn1.Unmarshal(der, &names)
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("%w: subject alternative name: not a list of names", ErrParse)
	}
	for _, n := range names {
		if n.Class != asn1.ClassContextSpecific {
			return fmt.Errorf("%w: subject alternative name: not a general name", ErrParse)
		}
		if n.Tag != directoryName {
			continue
		}
		var rdn pkix.RDNSequence
		if rest, err := asn1.Unmarshal(n.Bytes, &rdn); err != nil || len(rest) != 0 {
			return fmt.Errorf("%w: subject alternative name: not a directory name", ErrParse)
		}
		m.take(rdn)
	}
	return nil
}

var oidTPM = asn1.ObjectIdentifier{2, 23, 133, 2}

// take keeps the attributes tcg-at-tpmManufacturer, -tpmModel and -tpmVersion.
func (m *Model) take(rdn pkix.RDNSequence) {
	for _, set := range rdn {
		for _, a := range set {
			text, ok := a.Value.(string)
			if !ok || len(a.Type) != len(oidTPM)+1 || !a.Type[:len(oidTPM)].Equal(oidTPM) {
				continue
			}
			text = text[:min(len(text), maxModelText)]
			switch a.Type[len(oidTPM)] {
			case 1:
				m.Maker = text
			case 2:
				m.Name = text
			case 3:
				m.Version = text
			}
		}
	}
}

// String returns maker, model and version.
func (m Model) String() string { return fmt.Sprintf("%q %q %q", m.Maker, m.Name, m.Version) }
