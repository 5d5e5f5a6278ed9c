package firmware

import (
	"portcullis/firmware/image"
	"portcullis/firmware/pin"
	"portcullis/firmware/policy"
)

// Identity is the identity of an image, by its own claim.
type Identity struct {
	Format          image.Format      `json:"format"`
	Start           int64             `json:"start,omitempty"` // of the image in the file, in bytes
	Component       bool              `json:"component"`       // an update component: it carries no data of a device
	Opaque          string            `json:"opaque,omitempty"`
	Info            *image.Info       `json:"info,omitempty"`
	Chips           []string          `json:"chips,omitempty"`
	SecurityVersion uint32            `json:"security_version"`
	Digest          *policy.Digest    `json:"digest,omitempty"` // absent: opaque
	Device          *image.DeviceData `json:"device,omitempty"`
	Changed         bool              `json:"addresses_changed,omitempty"` // GUIDs or MACs are not the factory's
}

// Describe returns the identity of an image. The error is one of reading.
func Describe(m *image.Image) (*Identity, error) {
	id := &Identity{
		Format: m.Format, Start: m.Start, Component: m.Component, Opaque: m.Opaque, Info: m.Info,
		SecurityVersion: m.SecurityVersion, Device: m.Device, Changed: m.Device != nil && m.Device.Changed(),
	}
	if m.Info != nil {
		for _, h := range m.Info.Hardware {
			id.Chips = append(id.Chips, h.Chip())
		}
	}
	if m.Opaque == "" {
		d, err := m.Digest256()
		if err != nil {
			return nil, err
		}
		id.Digest = (*policy.Digest)(&d)
	}
	return id, nil
}

// Carried is a key that an image carries.
type Carried struct {
	Section     image.SectionType `json:"section"`
	UUID        image.UUID        `json:"uuid"`
	Algorithm   image.Algorithm   `json:"algorithm"`
	Signs       []string          `json:"signs"`
	Fingerprint *pin.Fingerprint  `json:"fingerprint,omitempty"` // absent: Problem says why
	Problem     string            `json:"problem,omitempty"`
	Signed      bool              `json:"signed_this"` // a signature of this image is right under it
	Key         pin.Key           `json:"-"`
}

// Keys lists the keys that an image carries, and reports which of them signed it. Such a key proves nothing, because the
// maker of the image chose it.
func Keys(m *image.Image) ([]Carried, error) {
	var keys []Carried
	for _, p := range m.Keys {
		c := Carried{Section: p.Section, UUID: p.UUID, Algorithm: p.Algorithm, Signs: p.Signs.Names()}
		k, err := pin.FromImage(p)
		if err != nil {
			c.Problem = err.Error()
			keys = append(keys, c)
			continue
		}
		f := k.Fingerprint()
		c.Key, c.Fingerprint = k, &f
		for _, s := range m.Signatures {
			if s.Key != p.UUID || s.Algorithm != p.Algorithm {
				continue
			}
			d, err := signedDigest(m, s.Algorithm)
			if err != nil {
				return nil, err
			}
			c.Signed = c.Signed || d != nil && k.Verify(d, s.Value) == nil
		}
		keys = append(keys, c)
	}
	return keys, nil
}

// signedDigest is the digest that a signature of an algorithm covers, or nil if it is unknown.
func signedDigest(m *image.Image, a image.Algorithm) ([]byte, error) {
	if m.Opaque != "" {
		return nil, nil
	}
	if a == image.RSA4096SHA512 {
		d, err := m.Digest512()
		return d[:], err
	}
	d, err := m.Digest256()
	return d[:], err
}
