package image

import (
	"fmt"
	"strings"
)

const infoSize = 0x400

// HardwareID names a chip, such as 0x218 for ConnectX-7.
type HardwareID uint32

var chips = map[HardwareID]string{
	0x209: "ConnectX-4", 0x20B: "ConnectX-4 Lx", 0x20D: "ConnectX-5", 0x20F: "ConnectX-6",
	0x212: "ConnectX-6 Dx", 0x216: "ConnectX-6 Lx", 0x218: "ConnectX-7", 0x21E: "ConnectX-8",
	0x224: "ConnectX-9", 0x211: "BlueField", 0x214: "BlueField-2", 0x21C: "BlueField-3",
	0x220: "BlueField-4", 0x249: "Spectrum", 0x24E: "Spectrum-2", 0x250: "Spectrum-3",
	0x254: "Spectrum-4", 0x24D: "Quantum", 0x257: "Quantum-2", 0x25B: "Quantum-3",
}

// Chip names the chip, or repeats the number.
func (h HardwareID) Chip() string {
	if name, ok := chips[h]; ok {
		return name
	}
	return h.String()
}

func (h HardwareID) String() string { return fmt.Sprintf("0x%x", uint32(h)) }

// MarshalText implements encoding.TextMarshaler.
func (h HardwareID) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// Flags are what IMAGE_INFO says of security, bits of its first dword. An image
// says so of itself: without a signature they prove nothing.
type Flags uint16

// The flags.
const (
	FlagSecure           Flags = 1 << 15 // only signed updates are taken
	FlagSigned           Flags = 1 << 14
	FlagDebug            Flags = 1 << 13
	FlagCSTokens         Flags = 1 << 12
	FlagFRC              Flags = 1 << 11
	FlagSignedMlnxConf   Flags = 1 << 10
	FlagSignedVendorConf Flags = 1 << 9
	FlagMCC              Flags = 1 << 8
	FlagDebugTokens      Flags = 1 << 7
	FlagLongKeys         Flags = 1 << 6
	flagEncrypted        Flags = 3 << 3
	FlagSecureBoot       Flags = 1 << 2
	FlagTOCTwice         Flags = 1 << 1
)

var flagNames = []struct {
	flag Flags
	name string
}{
	{FlagSecure, "secure_fw"},
	{FlagSigned, "signed_fw"},
	{FlagDebug, "debug_fw"},
	{FlagCSTokens, "cs_tokens"},
	{FlagFRC, "frc"},
	{FlagSignedMlnxConf, "signed_mlnx_nvconfig"},
	{FlagSignedVendorConf, "signed_vendor_nvconfig"},
	{FlagMCC, "mcc_en"},
	{FlagDebugTokens, "debug_fw_tokens"},
	{FlagLongKeys, "long_keys"},
	{flagEncrypted, "encrypted_fw"},
	{FlagSecureBoot, "secure_boot"},
}

// Has reports whether all of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// Names lists the flags that are set.
func (f Flags) Names() []string {
	names := []string{}
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

func (f Flags) String() string { return strings.Join(f.Names(), " ") }

// MarshalText implements encoding.TextMarshaler.
func (f Flags) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Info is section IMAGE_INFO: the identity of an image.
type Info struct {
	Flags          Flags        `json:"flags"`
	Version        Version      `json:"version"`
	MIC            Version      `json:"mic_version"`
	Released       string       `json:"released,omitempty"` // 2026-01-15
	PCIDevice      uint16       `json:"pci_device"`
	PCIVendor      uint16       `json:"pci_vendor"`
	SubsystemID    uint16       `json:"subsystem_id"`
	SubsystemVend  uint16       `json:"subsystem_vendor"`
	PSID           PSID         `json:"psid"`
	Hardware       []HardwareID `json:"hardware"` // chips that it is for
	VSD            string       `json:"vsd,omitempty"`
	ProductVersion string       `json:"product_version,omitempty"`
	Description    string       `json:"description,omitempty"`
	Name           string       `json:"name,omitempty"`
	PRS            string       `json:"prs,omitempty"`
	BurnSize       uint32       `json:"-"`
	dtocOffset     uint8
}

func parseInfo(b []byte) (*Info, error) {
	if b[0] != 0 {
		return nil, malformed("IMAGE_INFO", "its layout is %d.%d, only 0 is known", b[0], b[1])
	}
	i := &Info{Flags: Flags(u16(b, 2))}
	i.Version = Version{u16(b, 0x04), u16(b, 0x08), u16(b, 0x0A)}
	i.MIC = Version{u16(b, 0x14), u16(b, 0x18), u16(b, 0x1A)}
	i.Released = released(b[0x04:0x14])
	i.PCIDevice, i.PCIVendor = u16(b, 0x1C), u16(b, 0x1E)
	i.SubsystemID, i.SubsystemVend = u16(b, 0x20), u16(b, 0x22)
	i.PSID = PSID(text(b[0x24 : 0x24+maxPSID]))
	i.VSD = text(b[0x38:0x108])
	i.dtocOffset = b[0x112]
	for off := 0x118; off < 0x128; off += 4 {
		if id := HardwareID(u32(b, off)); id != 0 {
			i.Hardware = append(i.Hardware, id)
		}
	}
	i.BurnSize = u32(b, 0x12C)
	i.ProductVersion = text(b[0x1C0:0x1D0])
	i.Description, i.Name, i.PRS = text(b[0x1D0:0x2D0]), text(b[0x340:0x380]), text(b[0x380:0x400])
	return i, nil
}

// released reads the date beside the version, BCD digits. It leaves out digits that are no date.
func released(b []byte) string {
	date := fmt.Sprintf("%02x%02x-%02x-%02x", b[12], b[13], b[14], b[15])
	if strings.ContainsAny(date, "abcdef") || date[:4] == "0000" {
		return ""
	}
	return date
}
