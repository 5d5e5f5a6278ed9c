package imagetest

import (
	"bytes"
	"crypto/rsa"
	"encoding/binary"
)

var be = binary.BigEndian

// Section is one section of an image.
type Section struct {
	Type      byte
	Data      []byte
	Mode      byte // of its checksum: 0 in the entry, 1 none, 2 in the last dword
	Encrypted bool
	Lines     bool   // each line of 64 bytes has a checksum of 4
	At        uint32 // where it is put; 0: behind the one before
	Device    bool   // FS3: data of the device, in the same table
}

// Spec says which image is wanted. New returns one that is right.
type Spec struct {
	Format          byte // 3, 4 or 5
	Component       bool // an update component: no magic, no device
	Start           int  // where in the flash it begins
	Size            int  // of the file; a power of two
	PSID            string
	Version         [3]uint16
	Hardware        []uint32
	Flags           uint16
	Name            string
	SecurityVersion uint32
	Pointers        map[int]uint32 // beside those of the layout
	TOCShift        bool           // the table is one sector behind its pointer
	TOCCount        bool           // the header counts entries
	Main            []byte
	Extra           []Section // behind the others
	Key2048         *rsa.PublicKey
	Key4096         *rsa.PublicKey
	KeyUUID         [16]byte
	BaseGUID        uint64   // in force; the factory's is DefaultGUID
	LinesOfMain     bool     // the code has a checksum in each line
	NextKey         [16]byte // UUID of a second key that may sign firmware; zero is none
	DTOCOffset      byte     // the data of the device end at the size divided by twice that
	HashesAt        int      // a table of hashes is put here, full of zeros
}

// Places of the parts that New and Build make, in an image of the size of New.
const (
	PointersAt = 0x18
	ToolsAt    = 0x500
	Boot2At    = 0x1000
	TOCAt      = 0x4000
	FirstAt    = 0x6000
	MFGAt      = 0x10000
	DevInfoAt  = 0x11000
)

// Flags of New: secure_fw, signed_fw, cs_tokens, both signed NVCONFIG, mcc_en.
const (
	FlagSecure   = 0x8000
	FlagSigned   = 0x4000
	FlagDebug    = 0x2000
	DefaultFlags = 0xD700
)

// DefaultGUID is the base GUID of New.
const DefaultGUID = 0x0002C90300AA0000

// New is an image of a ConnectX-7 with both test keys, unsigned.
func New() *Spec {
	main := bytes.Repeat([]byte("portcullis test "), 0x200)
	return &Spec{
		Format: 4, Size: 128 << 10, PSID: "TST0000000001", Version: [3]uint16{22, 47, 1088}, Hardware: []uint32{0x218},
		Flags: DefaultFlags, Name: "synthetic test image", TOCCount: true, Main: main,
		Key2048: &Key2048().PublicKey, Key4096: &Key4096().PublicKey, KeyUUID: KeyUUID, BaseGUID: DefaultGUID,
	}
}

var (
	magicFS3 = []byte("MTFW\x8C\xDF\xD0\x00\xDE\xAD\x92\x70\x41\x54\xBE\xEF")
	magicFS4 = []byte("MTFW\xAB\xCD\xEF\x00\xFA\xDE\x12\x34\x56\x78\xDE\xAD")
	tocRest  = []byte("\x04\x08\x15\x16\x23\x42\xCA\xFA\xBA\xCA\xFE\x00")
)

// Info is section IMAGE_INFO.
func (s *Spec) Info() []byte {
	b := make([]byte, 0x400)
	be.PutUint16(b[2:], s.Flags)
	for _, at := range []int{0x04, 0x14} { // firmware and MIC
		be.PutUint16(b[at:], s.Version[0])
		be.PutUint16(b[at+4:], s.Version[1])
		be.PutUint16(b[at+6:], s.Version[2])
	}
	copy(b[0x0C:], []byte{0, 0x30, 0x12, 0}) // seconds, minutes, hour
	copy(b[0x10:], []byte{0x20, 0x26, 0x01, 0x15})
	copy(b[0x1C:], []byte{0x10, 0x1F, 0x15, 0xB3, 0x00, 0x23, 0x15, 0xB3})
	copy(b[0x24:0x34], s.PSID)
	copy(b[0x38:], "synthetic")
	b[0x112] = s.DTOCOffset
	for i, h := range s.Hardware {
		be.PutUint32(b[0x118+4*i:], h)
	}
	copy(b[0x1C0:0x1D0], "22.0047.1088")
	copy(b[0x340:0x380], s.Name)
	return b
}

// keys is a section of public keys with the one key in its first slot.
func (s *Spec) keys(size, slot int, algorithm byte, k *rsa.PublicKey) []byte {
	b := make([]byte, size)
	if k == nil {
		return b
	}
	b[0], b[3] = 0x80, algorithm // it may sign firmware
	be.PutUint32(b[0x0C:], uint32(k.E))
	copy(b[0x10:], s.KeyUUID[:])
	k.N.FillBytes(b[0x20:slot])
	if s.NextKey != [16]byte{} {
		copy(b[slot:2*slot], b[:slot])
		copy(b[slot+0x10:], s.NextKey[:])
	}
	return b
}

func (s *Spec) sections() []Section {
	unchecked := byte(1) // FS4 does without the checksum of a signature
	if s.Format == 3 {
		unchecked = 0
	}
	return append([]Section{
		{Type: 0x03, Data: s.Main, Lines: s.LinesOfMain},
		{Type: 0x10, Data: s.Info()},
		{Type: 0x12, Data: make([]byte, 0x40)},
		{Type: 0xA0, Data: make([]byte, 0x140), Mode: unchecked},
		{Type: 0xA3, Data: make([]byte, 0x240), Mode: unchecked},
		{Type: 0xA1, Data: s.keys(0x900, 288, 3, s.Key2048)},
		{Type: 0xA4, Data: s.keys(0x1100, 544, 4, s.Key4096)},
	}, s.Extra...)
}

// slot is how many bytes of the file are the slot that the image is in.
func (s *Spec) slot() int {
	if s.DTOCOffset == 0 {
		return s.Size
	}
	return s.Size / int(2*s.DTOCOffset)
}

func (s *Spec) device() []Section {
	mfg, dev := make([]byte, 0x140), make([]byte, 0x200)
	copy(mfg, s.PSID)
	mfg[0x1C] = 1
	copy(dev, "mDevInfo\x23\x42\xCA\xFA\xBA\xCA\xFE\x00")
	dev[0x12] = 2
	addresses(mfg[0x20:], DefaultGUID)
	addresses(dev[0x20:], s.BaseGUID)
	behind := uint32(s.slot() - New().Size) // in a dump they are as far from its end as in an image
	return []Section{
		{Type: 0xE0, Data: mfg, At: MFGAt + behind, Device: true},
		{Type: 0xE1, Data: dev, Mode: 2, At: DevInfoAt + behind, Device: true},
	}
}

// addresses writes blocks of 8 GUIDs and 8 MACs.
func addresses(b []byte, guid uint64) {
	be.PutUint32(b, 0x108)
	be.PutUint64(b[8:], guid)
	be.PutUint32(b[0x10:], 0x108)
	be.PutUint64(b[0x18:], 0x0002C9AA0000)
}
