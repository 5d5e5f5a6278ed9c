package sysfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// maxVPD is the size of the address space that vital product data can have, in
// bytes (PCI 6.x: 15 bits of address).
const maxVPD = 32 << 10

// VPD is the vital product data of a card, which its maker wrote into it.
type VPD struct {
	Name     string // identifier string
	Part     string // PN
	Serial   string // SN
	Revision string // EC, engineering change level
	UUID     string // V3 of NVIDIA cards
}

// Tags of VPD resources and the keyword that ends the read-only part (PCI Local
// Bus 3.0, appendix I).
const (
	tagName     = 0x82 // large: identifier string
	tagReadOnly = 0x90 // large: VPD-R
	tagWritable = 0x91 // large: VPD-W
	tagEnd      = 0x78 // small: end

	keywordChecksum = "RV"
)

var (
	errVPDShort    = errors.New("VPD ends inside a resource")
	errVPDNoEnd    = errors.New("VPD has no end tag")
	errVPDChecksum = errors.New("VPD has a wrong checksum")
	errVPDReadOnly = errors.New("VPD has no read-only part, or two")
)

// ParseVPD reads vital product data. Bytes after the end tag are padding. The part that the host can write (VPD-W) is
// ignored.
func ParseVPD(b []byte) (VPD, error) {
	if len(b) > maxVPD {
		return VPD{}, fmt.Errorf("VPD has %d bytes, more than the %d there can be", len(b), maxVPD)
	}
	var v VPD
	parts := 0
	for at := 0; ; {
		if at >= len(b) {
			return VPD{}, errVPDNoEnd
		}
		tag := b[at]
		if tag == tagEnd {
			break
		}
		if len(b)-at < 3 {
			return VPD{}, errVPDShort
		}
		start := at + 3
		end := start + int(binary.LittleEndian.Uint16(b[at+1:]))
		if end > len(b) {
			return VPD{}, errVPDShort
		}
		var err error
		switch tag {
		case tagName:
			v.Name, err = vpdText("name", b[start:end])
		case tagReadOnly:
			parts++
			err = v.readOnly(b, start, end)
		case tagWritable:
		default:
			err = fmt.Errorf("VPD has unknown tag %#02x at byte %d", tag, at)
		}
		if err != nil {
			return VPD{}, err
		}
		at = end
	}
	if parts != 1 {
		return VPD{}, errVPDReadOnly
	}
	return v, nil
}

// readOnly reads keywords between start and end; the checksum covers all from
// the first byte of the VPD.
func (v *VPD) readOnly(b []byte, start, end int) error {
	seen := map[string]bool{}
	for at := start; at < end; {
		if end-at < 3 {
			return errVPDShort
		}
		keyword, value := string(b[at:at+2]), at+3
		next := value + int(b[at+2])
		if next > end {
			return errVPDShort
		}
		if seen[keyword] {
			return fmt.Errorf("VPD has keyword %q twice", keyword)
		}
		seen[keyword] = true
		if keyword == keywordChecksum {
			if next == value || sum(b[:value+1]) != 0 {
				return errVPDChecksum
			}
			at = next
			continue
		}
		if err := v.set(keyword, b[value:next]); err != nil {
			return err
		}
		at = next
	}
	if !seen[keywordChecksum] {
		return errVPDChecksum
	}
	return nil
}

func (v *VPD) set(keyword string, value []byte) (err error) {
	switch keyword {
	case "PN":
		v.Part, err = vpdText(keyword, value)
	case "SN":
		v.Serial, err = vpdText(keyword, value)
	case "EC":
		v.Revision, err = vpdText(keyword, value)
	case "V3":
		v.UUID, err = vpdText(keyword, value)
	}
	return err
}

func vpdText(keyword string, value []byte) (string, error) {
	s := strings.TrimRight(string(value), " \x00")
	if !printable(s) {
		return "", fmt.Errorf("VPD keyword %s is not printable ASCII", keyword)
	}
	return s, nil
}

func sum(b []byte) (s byte) {
	for _, c := range b {
		s += c
	}
	return s
}
