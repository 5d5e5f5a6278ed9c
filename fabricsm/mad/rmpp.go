package mad

import (
	"encoding/binary"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Byte offsets of the RMPP header (IBTA volume 1, 13.6.2.1), which the MADs of classes
// with long answers have behind the common header.
const (
	offRMPPVersion = 24
	offRMPPType    = 25
	offRMPPFlags   = 26
	offRMPPStatus  = 27
	offRMPPData1   = 28
	offRMPPData2   = 32
	offRMPPPayload = 36
)

const (
	// RMPPVersion is the version of the protocol.
	RMPPVersion = 1
	// RMPPPayloadSize is how much of a MAD is behind the RMPP header, in bytes: what
	// one segment counts in PayloadLength.
	RMPPPayloadSize = Size - offRMPPPayload
	// SAHeaderSize is the part of that payload that every segment of subnet
	// administration repeats, in bytes; SADataSize bytes of data follow it.
	SAHeaderSize = offSAData - offRMPPPayload
	// NoRespTime is the RRespTime of a packet without a time.
	NoRespTime ib.ExpTime = 0x1F
)

// RMPPType is what an RMPP packet is.
type RMPPType uint8

// Types of RMPP packets. Zero stands in MADs that RMPP does not carry.
const (
	RMPPNone  RMPPType = 0
	RMPPData  RMPPType = 1
	RMPPAck   RMPPType = 2
	RMPPStop  RMPPType = 3
	RMPPAbort RMPPType = 4
)

// String names the type as the standard does.
func (t RMPPType) String() string {
	switch t {
	case RMPPNone:
		return "none"
	case RMPPData:
		return "DATA"
	case RMPPAck:
		return "ACK"
	case RMPPStop:
		return "STOP"
	case RMPPAbort:
		return "ABORT"
	default:
		return fmt.Sprintf("RMPPType(%d)", uint8(t))
	}
}

// RMPPFlags are three bits. A MAD without RMPPActive is not carried by RMPP.
type RMPPFlags uint8

// Flags of an RMPP packet.
const (
	RMPPActive RMPPFlags = 1 << iota
	RMPPFirst            // DATA: segment 1
	RMPPLast             // DATA: no segment follows
)

// Has reports whether all of the flags are set.
func (f RMPPFlags) Has(all RMPPFlags) bool { return f&all == all }

// String names the flags that are set, "Active|First", or "none".
func (f RMPPFlags) String() string {
	out := ""
	for i, name := range [...]string{"Active", "First", "Last"} {
		if f&(1<<i) != 0 {
			out += "|" + name
		}
	}
	if out == "" {
		return "none"
	}
	return out[1:]
}

// RMPPStatus is why a STOP or ABORT was sent, and zero in other packets.
type RMPPStatus uint8

// Status codes of RMPP (IBTA volume 1, 13.6.2.4).
const (
	RMPPNormal      RMPPStatus = 0
	RMPPResX        RMPPStatus = 1   // resources exhausted; STOP only
	RMPPT2L         RMPPStatus = 118 // total time too long
	RMPPBadLength   RMPPStatus = 119 // PayloadLength does not fit
	RMPPBadSegment  RMPPStatus = 120 // First and SegmentNumber 1 disagree
	RMPPBadT        RMPPStatus = 121 // unknown RMPPType
	RMPPW2S         RMPPStatus = 122 // NewWindowLast too small
	RMPPS2B         RMPPStatus = 123 // SegmentNumber too big
	RMPPBadStatus   RMPPStatus = 124 // status not legal for the type
	RMPPUnV         RMPPStatus = 125 // unsupported RMPPVersion
	RMPPTMR         RMPPStatus = 126 // too many retries
	RMPPUnspecified RMPPStatus = 127
)

// From where on codes are those of a class, and of a vendor.
const (
	rmppClassSpecific = 128
	rmppVendor        = 192
)

// String returns the meaning of the code, by the standard's short name if it has one.
func (s RMPPStatus) String() string {
	switch s {
	case RMPPNormal:
		return "normal"
	case RMPPResX:
		return "RESX, resources exhausted"
	case RMPPT2L:
		return "T2L, total time too long"
	case RMPPBadLength:
		return "inconsistent last and PayloadLength"
	case RMPPBadSegment:
		return "inconsistent first and SegmentNumber"
	case RMPPBadT:
		return "BADT, bad RMPPType"
	case RMPPW2S:
		return "W2S, NewWindowLast too small"
	case RMPPS2B:
		return "S2B, SegmentNumber too big"
	case RMPPBadStatus:
		return "illegal status"
	case RMPPUnV:
		return "UNV, unsupported version"
	case RMPPTMR:
		return "TMR, too many retries"
	case RMPPUnspecified:
		return "unspecified"
	default:
		return s.ofOthers()
	}
}

// ofOthers says whose a code is that the protocol does not define.
func (s RMPPStatus) ofOthers() string {
	switch {
	case uint8(s) >= rmppVendor:
		return fmt.Sprintf("vendor specific %d", uint8(s))
	case uint8(s) >= rmppClassSpecific:
		return fmt.Sprintf("class specific %d", uint8(s))
	default:
		return fmt.Sprintf("RMPPStatus(%d)", uint8(s))
	}
}

// RMPPHeader is all of the RMPP header. The zero value stands in MADs that RMPP does
// not carry.
type RMPPHeader struct {
	Version  uint8
	Type     RMPPType
	RespTime ib.ExpTime // longest time until the next packet of the receiver; NoRespTime: not given
	Flags    RMPPFlags
	Status   RMPPStatus
	Data1    uint32 // DATA: SegmentNumber, from 1; ACK: last segment received in order
	Data2    uint32 // DATA: PayloadLength in bytes; ACK: NewWindowLast
}

// RMPPHeader returns the RMPP header of a MAD of a class that has one.
func (m *MAD) RMPPHeader() RMPPHeader {
	return RMPPHeader{
		Version: m.RMPPVersion(), Type: m.RMPPType(), RespTime: m.RRespTime(), Flags: m.RMPPFlags(),
		Status: m.RMPPStatus(), Data1: m.RMPPData1(), Data2: m.RMPPData2(),
	}
}

// SetRMPPHeader writes it, cutting RespTime and Flags to their 5 and 3 bits.
func (m *MAD) SetRMPPHeader(h RMPPHeader) {
	m.SetRMPPVersion(h.Version)
	m.SetRMPPType(h.Type)
	m.SetRRespTime(h.RespTime)
	m.SetRMPPFlags(h.Flags)
	m.SetRMPPStatus(h.Status)
	m.SetRMPPData1(h.Data1)
	m.SetRMPPData2(h.Data2)
}

// RMPPVersion is RMPPVersion, or 0 in MADs that RMPP does not carry.
func (m *MAD) RMPPVersion() uint8 { return m[offRMPPVersion] }

// SetRMPPVersion writes the version.
func (m *MAD) SetRMPPVersion(v uint8) { m[offRMPPVersion] = v }

// RMPPType is the type of the packet.
func (m *MAD) RMPPType() RMPPType { return RMPPType(m[offRMPPType]) }

// SetRMPPType writes the type.
func (m *MAD) SetRMPPType(t RMPPType) { m[offRMPPType] = byte(t) }

const (
	respTimeShift = 3
	rmppFlagsMask = 0x07
)

// RRespTime is how long the sender of the packet may take for its next one.
func (m *MAD) RRespTime() ib.ExpTime { return ib.ExpTime(m[offRMPPFlags] >> respTimeShift) }

// SetRRespTime writes the low 5 bits of v.
func (m *MAD) SetRRespTime(v ib.ExpTime) {
	m[offRMPPFlags] = m[offRMPPFlags]&rmppFlagsMask | byte(v)<<respTimeShift
}

// RMPPFlags are the three flags.
func (m *MAD) RMPPFlags() RMPPFlags { return RMPPFlags(m[offRMPPFlags] & rmppFlagsMask) }

// SetRMPPFlags writes the low 3 bits of f.
func (m *MAD) SetRMPPFlags(f RMPPFlags) {
	m[offRMPPFlags] = m[offRMPPFlags]&^rmppFlagsMask | byte(f)&rmppFlagsMask
}

// RMPPStatus is why a STOP or ABORT was sent.
func (m *MAD) RMPPStatus() RMPPStatus { return RMPPStatus(m[offRMPPStatus]) }

// SetRMPPStatus writes the status.
func (m *MAD) SetRMPPStatus(s RMPPStatus) { m[offRMPPStatus] = byte(s) }

// RMPPData1 is the field Data1; see SegmentNumber.
func (m *MAD) RMPPData1() uint32 { return binary.BigEndian.Uint32(m[offRMPPData1:]) }

// SetRMPPData1 writes the field Data1.
func (m *MAD) SetRMPPData1(v uint32) { binary.BigEndian.PutUint32(m[offRMPPData1:], v) }

// RMPPData2 is the field Data2; see PayloadLength and NewWindowLast.
func (m *MAD) RMPPData2() uint32 { return binary.BigEndian.Uint32(m[offRMPPData2:]) }

// SetRMPPData2 writes the field Data2.
func (m *MAD) SetRMPPData2(v uint32) { binary.BigEndian.PutUint32(m[offRMPPData2:], v) }

// SegmentNumber is Data1 of a DATA packet, counted from 1, and of an ACK: the last
// segment that arrived with all before it.
func (m *MAD) SegmentNumber() uint32 { return m.RMPPData1() }

// SetSegmentNumber writes Data1 of a DATA packet or an ACK.
func (m *MAD) SetSegmentNumber(v uint32) { m.SetRMPPData1(v) }

// PayloadLength is Data2 of a DATA packet, in bytes behind the RMPP header: of all
// segments in the first, or 0; of its own in the last; 0 in between.
func (m *MAD) PayloadLength() uint32 { return m.RMPPData2() }

// SetPayloadLength writes Data2 of a DATA packet.
func (m *MAD) SetPayloadLength(v uint32) { m.SetRMPPData2(v) }

// NewWindowLast is Data2 of an ACK: the highest segment that may be sent.
func (m *MAD) NewWindowLast() uint32 { return m.RMPPData2() }

// SetNewWindowLast writes Data2 of an ACK.
func (m *MAD) SetNewWindowLast(v uint32) { m.SetRMPPData2(v) }

// RMPPPayload is the part after the RMPP header: RMPPPayloadSize bytes of m, shared.
func (m *MAD) RMPPPayload() []byte { return m[offRMPPPayload:] }
