package image

import "fmt"

// SectionType says what a section holds.
type SectionType uint8

// The sections that are read here.
const (
	SectionImageInfo     SectionType = 0x10
	SectionSignature256  SectionType = 0xA0 // RSA-2048 with SHA-256, or a bare SHA-256
	SectionKeys2048      SectionType = 0xA1
	SectionForbidden     SectionType = 0xA2
	SectionSignature512  SectionType = 0xA3 // RSA-4096 with SHA-512
	SectionKeys4096      SectionType = 0xA4
	SectionHMAC          SectionType = 0xA5
	SectionBootKeys      SectionType = 0xA6 // keys of secure boot
	SectionBootSignature SectionType = 0xA7
	SectionManufacturing SectionType = 0xE0
	SectionDevice        SectionType = 0xE1
	SectionHashes        SectionType = 0xFA
	sectionEnd           SectionType = 0xFF
)

var sectionNames = map[SectionType]string{
	0x01: "BOOT_CODE", 0x02: "PCI_CODE", 0x03: "MAIN_CODE", 0x04: "PCIE_LINK_CODE",
	0x05: "IRON_PREP_CODE", 0x06: "POST_IRON_BOOT_CODE", 0x07: "UPGRADE_CODE",
	0x08: "HW_BOOT_CFG", 0x09: "HW_MAIN_CFG", 0x0A: "PHY_UC_CODE", 0x0B: "PHY_UC_CONSTS",
	0x0C: "PCIE_PHY_UC_CODE", 0x0D: "CCIR_INFRA_CODE", 0x0E: "CCIR_ALGO_CODE", 0x0F: "BOOT3",
	0x10: "IMAGE_INFO", 0x11: "FW_BOOT_CFG", 0x12: "FW_MAIN_CFG", 0x14: "APU_KERNEL",
	0x15: "ACE_CODE", 0x18: "ROM_CODE", 0x20: "RESET_INFO",
	0x30: "DBG_FW_INI", 0x32: "DBG_FW_PARAMS", 0x33: "FW_ADB",
	0xA0: "IMAGE_SIGNATURE_256", 0xA1: "PUBLIC_KEYS_2048", 0xA2: "FORBIDDEN_VERSIONS",
	0xA3: "IMAGE_SIGNATURE_512", 0xA4: "PUBLIC_KEYS_4096", 0xA5: "HMAC_DIGEST",
	0xA6: "RSA_PUBLIC_KEY", 0xA7: "RSA_4096_SIGNATURES", 0xA9: "ENCRYPTION_KEY_TRANSITION",
	0xAD: "NVDA_ROT_CERTIFICATES", 0xB5: "STRN_IRON", 0xB6: "STRN_TILE",
	0xE0: "MFG_INFO", 0xE1: "DEV_INFO", 0xE2: "NV_DATA", 0xE3: "VPD_R0", 0xE4: "NV_DATA", 0xE5: "FW_NV_LOG",
	0xE6: "NV_DATA", 0xEA: "FW_INTERNAL_USAGE", 0xED: "DIGITAL_CERT_PTR", 0xEE: "DIGITAL_CERT_RW",
	0xF2: "CERT_CHAIN_0", 0xF9: "TOOLS_AREA", 0xFA: "HASHES_TABLE", 0xFB: "HW_POINTERS",
	0xFD: "ITOC_HEADER", 0xFE: "DTOC_HEADER", 0xFF: "END",
}

// once are the sections of which two would leave open which one is meant.
var once = map[SectionType]bool{
	SectionImageInfo: true, SectionSignature256: true, SectionKeys2048: true, SectionForbidden: true,
	SectionSignature512: true, SectionKeys4096: true, SectionHMAC: true, SectionBootKeys: true,
	SectionBootSignature: true, SectionHashes: true, SectionManufacturing: true,
}

func (t SectionType) String() string {
	if name, ok := sectionNames[t]; ok {
		return name
	}
	return fmt.Sprintf("section 0x%02x", uint8(t))
}

// MarshalText implements encoding.TextMarshaler.
func (t SectionType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// crcMode says where the checksum of a section is.
type crcMode uint8

const (
	crcInEntry crcMode = iota
	crcNone
	crcInSection // in its last dword
)

// Section is what one entry of a table says.
type Section struct {
	Type   SectionType `json:"type"`
	Offset int64       `json:"offset"` // in the file
	Size   int64       `json:"size"`   // bytes
	// Device says that it belongs to the device: no signature covers it.
	Device    bool `json:"device,omitempty"`
	Encrypted bool `json:"encrypted,omitempty"`

	cacheLines bool // each line of 64 bytes is followed by a checksum of 4
	mode       crcMode
	crc        uint16
	entry      int64 // offset of its entry in the file
	entryCRC   bool  // the checksum of the entry is right
	astray     bool  // FS3: it counts its address from where sections of the other kind do
	outside    bool  // device data of a component, which it does not carry
}

func (s *Section) end() int64 { return s.Offset + s.Size }
