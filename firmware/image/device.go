package image

import (
	"bytes"
	"fmt"

	"portcullis/fabricsm/ib"
)

const (
	mfgSize     = 0x140
	devInfoSize = 0x200
)

var magicDevInfo = []byte{0x6D, 0x44, 0x65, 0x76, 0x49, 0x6E, 0x66, 0x6F, 0x23, 0x42, 0xCA, 0xFA, 0xBA, 0xCA, 0xFE, 0x00}

// MAC is an Ethernet address, in the low 48 bits.
type MAC uint64

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(m>>40), byte(m>>32), byte(m>>24), byte(m>>16), byte(m>>8), byte(m))
}

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Addresses are blocks of GUIDs and MACs that a device was given.
type Addresses struct {
	GUID     ib.GUID `json:"guid"`
	NumGUIDs uint16  `json:"guids"`
	MAC      MAC     `json:"mac"`
	NumMACs  uint16  `json:"macs"`
}

// DeviceData are the sections of the device: the factory's data, and the data in force. They are in whole images and in
// dumps of a flash; no signature covers them.
type DeviceData struct {
	PSID         PSID      `json:"psid"`
	Manufactured Addresses `json:"manufactured"`
	InForce      Addresses `json:"in_force"`
	Override     bool      `json:"guids_override"`
	// Unread says why the addresses are not known: early boards of FS3 have them in
	// another layout.
	Unread string `json:"unread,omitempty"`
}

// Changed reports that the addresses in force are known not to be those of the
// factory.
func (d *DeviceData) Changed() bool { return d.Unread == "" && d.Manufactured != d.InForce }

func addresses(b []byte) Addresses {
	return Addresses{
		GUID: ib.GUID(u64(b, 0x08)), NumGUIDs: blockCount(b),
		MAC: MAC(u64(b, 0x18) & (1<<48 - 1)), NumMACs: blockCount(b[0x10:]),
	}
}

// blockCount reads how many addresses a block has: low and high byte apart.
func blockCount(b []byte) uint16 { return uint16(b[1])<<8 | uint16(b[3]) }

// The layouts of the two sections that are known.
const (
	mfgLayout     = 1
	devInfoLayout = 2
)

// readDevice reads MFG_INFO and the one valid DEV_INFO; it has two slots. Another layout is an error, except in FS3.
func readDevice(s source, format Format, sections []Section) (*DeviceData, error) {
	d := &DeviceData{}
	mfg, valid := false, 0
	for _, e := range sections {
		if e.outside {
			continue
		}
		switch e.Type {
		case SectionManufacturing:
			b, err := sectionBlock(s, e, mfgSize)
			if err != nil {
				return nil, err
			}
			if err := d.layout(format, e.Type, b[0x1C], mfgLayout); err != nil {
				return nil, err
			}
			mfg, d.PSID, d.Override, d.Manufactured = true, PSID(text(b[:maxPSID])), b[0x1F]&1 == 1, addresses(b[0x20:0x40])
		case SectionDevice:
			b, err := sectionBlock(s, e, devInfoSize)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(b[:len(magicDevInfo)], magicDevInfo) {
				continue // the slot that is not in use
			}
			if err := d.layout(format, e.Type, b[0x12], devInfoLayout); err != nil {
				return nil, err
			}
			valid++
			d.InForce = addresses(b[0x20:0x40])
		default:
		}
	}
	switch {
	case !mfg && valid == 0:
		return nil, nil
	case !mfg:
		return nil, malformed("device data", "MFG_INFO is missing")
	case valid != 1:
		return nil, malformed("device data", "there are %d valid DEV_INFO, want one", valid)
	}
	if d.Unread != "" {
		d.Manufactured, d.InForce = Addresses{}, Addresses{}
	}
	return d, nil
}

// layout notes a layout that is not known.
func (d *DeviceData) layout(format Format, t SectionType, got, known byte) error {
	if got == known {
		return nil
	}
	if format != FS3 {
		return malformed(t.String(), "its layout is %d, only %d is known", got, known)
	}
	d.Unread = fmt.Sprintf("%v has layout %d, only %d is known", t, got, known)
	return nil
}

// sectionBlock reads the first size bytes of a section.
func sectionBlock(s source, e Section, size int64) ([]byte, error) {
	if e.Size < size {
		return nil, malformed(e.Type.String(), "it has %d bytes, and its layout %d", e.Size, size)
	}
	return s.block(e.Type.String(), e.Offset, size)
}
