package register

import (
	"encoding/binary"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Vport says whose context or P_Key table is asked for. The zero Vport with a
// port is the one that the asker's function has there.
type Vport struct {
	Other bool   // another function's than the asker's
	Port  uint8  // of the device, 1 and up
	Vport uint16 // which function's, if Other
}

const (
	vportQuerySize = 16
	otherVport     = 1 << 31
	portShift      = 16
	portMask       = 0xF
)

// title names a query in messages.
func (v Vport) title(op Opcode) string {
	name := "QUERY_HCA_VPORT_CONTEXT"
	if op == QueryHCAVportPKey {
		name = "QUERY_HCA_VPORT_PKEY"
	}
	return fmt.Sprintf("%s of port %d", name, v.Port)
}

func (v Vport) encode(op Opcode, last uint32) []byte {
	p := make([]byte, vportQuerySize)
	binary.BigEndian.PutUint16(p, uint16(op))
	dword := uint32(v.Port&portMask)<<portShift | uint32(v.Vport)
	if v.Other {
		dword |= otherVport
	}
	binary.BigEndian.PutUint32(p[8:], dword)
	binary.BigEndian.PutUint32(p[12:], last)
	return p
}

// VportQuery is QUERY_HCA_VPORT_CONTEXT or QUERY_HCA_VPORT_PKEY.
type VportQuery struct {
	Opcode Opcode
	Vport  Vport
	Index  uint16 // of the P_Key; WholeTable: all
}

// WholeTable asks for all P_Keys.
const WholeTable = 0xFFFF

// String names the command in messages.
func (q VportQuery) String() string { return q.Vport.title(q.Opcode) }

// Encode returns the bytes of the command.
func (q VportQuery) Encode() []byte { return q.Vport.encode(q.Opcode, uint32(q.Index)) }

// DecodeVportQuery reads either query.
func DecodeVportQuery(p []byte) (q VportQuery, err error) {
	if len(p) < vportQuerySize {
		return q, fmt.Errorf("query of a vport: %w: %d, want %d", ErrShort, len(p), vportQuerySize)
	}
	q.Opcode, _ = CommandOpcode(p)
	if q.Opcode != QueryHCAVportContext && q.Opcode != QueryHCAVportPKey {
		return q, fmt.Errorf("query of a vport: opcode 0x%03X is another command", uint16(q.Opcode))
	}
	dword := binary.BigEndian.Uint32(p[8:])
	q.Vport = Vport{Other: dword&otherVport != 0, Port: uint8(dword >> portShift & portMask), Vport: uint16(dword)}
	q.Index = uint16(binary.BigEndian.Uint32(p[12:]))
	return q, nil
}

// VportContext is the data of an answer to QUERY_HCA_VPORT_CONTEXT: the firmware's report, not the driver's, about a port.
type VportContext struct {
	SMVirtAware     bool    `reg:"0x20.31,1"`
	HasSMI          bool    `reg:"0x20.30,1"` // there is a queue pair 0 for the asker
	HasRaw          bool    `reg:"0x20.29,1"`
	GRHRequired     bool    `reg:"0x20.28,1"`
	PhysicalState   uint8   `reg:"0x20.12,4"`
	PortState       uint8   `reg:"0x20.4,4"`
	SystemImageGUID ib.GUID `reg:"0x28.0,64"`
	PortGUID        ib.GUID `reg:"0x30.0,64"`
	NodeGUID        ib.GUID `reg:"0x38.0,64"`
	CapabilityMask  uint32  `reg:"0x40.0,32"`
	LID             ib.LID  `reg:"0x60.16,16"`
	SMLID           ib.LID  `reg:"0x64.16,16"`
}

// Size implements Sized.
func (VportContext) Size() int { return 0x200 }

// MaxPKeys is the most P_Keys that a table may have.
const MaxPKeys = 128

const pkeyEntrySize = 4

// PKeyRoom is how many bytes an answer needs for n P_Keys.
func PKeyRoom(n int) int { return n * pkeyEntrySize }

// DecodePKeys reads the data of an answer to QUERY_HCA_VPORT_PKEY: as many
// P_Keys as there are, MaxPKeys at most.
func DecodePKeys(p []byte) ([]ib.PKey, error) {
	if len(p)%pkeyEntrySize != 0 || len(p) > PKeyRoom(MaxPKeys) {
		return nil, fmt.Errorf("P_Key table: %d bytes, want 4 for each of at most %d entries", len(p), MaxPKeys)
	}
	keys := make([]ib.PKey, 0, len(p)/pkeyEntrySize)
	for ; len(p) > 0; p = p[pkeyEntrySize:] {
		keys = append(keys, ib.PKey(binary.BigEndian.Uint32(p)))
	}
	return keys, nil
}

// EncodePKeys writes what DecodePKeys reads.
func EncodePKeys(keys []ib.PKey) []byte {
	p := make([]byte, 0, PKeyRoom(len(keys)))
	for _, k := range keys {
		p = binary.BigEndian.AppendUint32(p, uint32(k))
	}
	return p
}
