package secureboot

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Bounds of a variable.
const (
	MaxVariable = 1 << 20
	maxEntries  = 16384
)

// GUID is an EFI_GUID as it lies in memory.
type GUID [16]byte

// String returns the usual text, 8be4df61-93ca-11d2-aa0d-00e098032b8c.
func (g GUID) String() string {
	var b [16]byte
	binary.BigEndian.PutUint32(b[0:], binary.LittleEndian.Uint32(g[0:]))
	binary.BigEndian.PutUint16(b[4:], binary.LittleEndian.Uint16(g[4:]))
	binary.BigEndian.PutUint16(b[6:], binary.LittleEndian.Uint16(g[6:]))
	copy(b[8:], g[8:])
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func guid(a uint32, b, c uint16, rest ...byte) (g GUID) {
	binary.LittleEndian.PutUint32(g[0:], a)
	binary.LittleEndian.PutUint16(g[4:], b)
	binary.LittleEndian.PutUint16(g[6:], c)
	copy(g[8:], rest)
	return g
}

// GUIDs of the UEFI specification: of variables, and of the kinds of entries.
var (
	globalVariable = guid(0x8be4df61, 0x93ca, 0x11d2, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c)
	imageSecurity  = guid(0xd719b2cb, 0x3d3a, 0x4596, 0xa3, 0xbc, 0xda, 0xd0, 0x0e, 0x67, 0x65, 0x6f)

	certX509       = guid(0xa5c059a1, 0x94e4, 0x4aa7, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72)
	certSHA256     = guid(0xc1c41626, 0x504c, 0x4092, 0xac, 0xa9, 0x41, 0xf9, 0x36, 0x93, 0x43, 0x28)
	certX509SHA256 = guid(0x3bd2a492, 0x96c0, 0x4079, 0xb4, 0x20, 0xfc, 0xf9, 0x8e, 0xf1, 0x03, 0xed)
)

// entry is one EFI_SIGNATURE_DATA.
type entry struct {
	kind GUID
	raw  []byte // owner and data: the measured part
}

const (
	listHeader = 16 + 4 + 4 + 4
	ownerSize  = 16
)

func (e *entry) data() []byte { return e.raw[ownerSize:] }

var errList = errors.New("want only complete EFI_SIGNATURE_LISTs")

// parseLists reads the content of a variable such as db.
func parseLists(b []byte) ([]entry, error) {
	if len(b) > MaxVariable {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(b), MaxVariable)
	}
	var out []entry
	for len(b) > 0 {
		if len(b) < listHeader {
			return nil, errList
		}
		le := binary.LittleEndian
		list, header, size := uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[20:])), uint64(le.Uint32(b[24:]))
		if list < listHeader+header || list > uint64(len(b)) || size <= ownerSize || (list-listHeader-header)%size != 0 {
			return nil, errList
		}
		kind := GUID(b[:16])
		for all := b[listHeader+header : list]; len(all) > 0; all = all[size:] {
			if len(out) == maxEntries {
				return nil, fmt.Errorf("more than %d entries", maxEntries)
			}
			out = append(out, entry{kind, all[:size:size]})
		}
		b = b[list:]
	}
	return out, nil
}
