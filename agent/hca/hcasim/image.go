package hcasim

import (
	"bytes"
	"slices"

	"portcullis/agent/hca/register"
	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/pin"
)

// judgeImage judges firmware: whole, for this board and chip, signed by a key of
// the table, and not older than the fuses allow.
func (c *chip) judgeImage(data []byte) (func(), register.MCCError) {
	m, err := image.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil || m.Info == nil {
		return nil, register.RejectedBadFormat
	}
	i := m.Info
	switch {
	case string(i.PSID) != c.identity.PSID, !slices.Contains(i.Hardware, image.HardwareID(c.identity.HWDevID)):
		return nil, register.RejectedNotApplicable
	case m.SecurityVersion < c.fuse:
		return nil, register.RejectedSecurityVersion
	}
	if why := c.judgeSignature(m, int64(len(data))); why != register.MCCOK {
		return nil, why
	}
	next := Firmware{
		Major: uint32(i.Version.Major), Minor: uint32(i.Version.Minor), SubMinor: uint32(i.Version.Sub),
		SecurityVersion: m.SecurityVersion, Debug: i.Flags.Has(image.FlagDebug),
	}
	return func() { c.power.durable(func() { c.pending = &next }) }, register.MCCOK
}

// judgeSignature holds an image against the table of keys, by the reader that
// the service has too. A card that does not insist on signed firmware takes what
// is whole.
func (c *chip) judgeSignature(m *image.Image, size int64) register.MCCError {
	pins, err := c.firmwareKeys()
	if err != nil {
		return register.RejectedUnknownKey
	}
	report, err := firmware.VerifyImage(&firmware.Image{Image: m, Size: size}, firmware.Site{Pins: pins})
	switch {
	case err != nil:
		return register.RejectedBadFormat
	case report.Verdict == firmware.Valid, report.Verdict == firmware.NotSigned && !c.security.Secured:
		return register.MCCOK
	}
	for _, step := range report.Steps {
		if why, ok := imageErrors[step.Code]; ok {
			return why
		}
	}
	return register.RejectedBadFormat
}

// imageErrors are how the card says what the reader found.
var imageErrors = map[firmware.Code]register.MCCError{
	firmware.CodeChecksum:    register.RejectedBadFormat,
	firmware.CodeDigest:      register.RejectedDigest,
	firmware.CodeNoSignature: register.RejectedUnsigned,
	firmware.CodeDevelopment: register.RejectedDevImage,
	firmware.CodeNoPins:      register.RejectedUnknownKey,
	firmware.CodeNotPinned:   register.RejectedUnknownKey,
	firmware.CodeKeyDiffers:  register.RejectedUnknownKey,
	firmware.CodeSignature:   register.RejectedAuthFailed,
}

// firmwareKeys are the keys of the table that may sign firmware.
func (c *chip) firmwareKeys() (*pin.Set, error) {
	var keys []pin.Key
	for _, k := range c.keys {
		if k.Signs&SignsFirmware == 0 {
			continue
		}
		algorithm := image.RSA2048SHA256
		if k.Public.Size() > algorithm.Bits()/8 {
			algorithm = image.RSA4096SHA512
		}
		keys = append(keys, pin.Key{
			UUID: image.UUID(k.UUID), Algorithm: algorithm, Exponent: uint32(k.Public.E),
			Modulus: k.Public.N.FillBytes(make([]byte, algorithm.Bits()/8)), Signs: image.SignsFirmware, Name: "of the card",
		})
	}
	return pin.New(keys...)
}
