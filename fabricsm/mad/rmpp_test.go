package mad

import (
	"bytes"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
)

// TestRMPPHeader: the RMPP header is twelve bytes at fixed places, and nothing else moves.
func TestRMPPHeader(t *testing.T) {
	h := RMPPHeader{
		Version: RMPPVersion, Type: RMPPAbort, RespTime: 0x15, Flags: RMPPActive | RMPPLast,
		Status: RMPPT2L, Data1: 0x01020304, Data2: 0x05060708,
	}
	var m MAD
	for i := range m {
		m[i] = 0xEE
	}
	m.SetRMPPHeader(h)
	want := bytes.Repeat([]byte{0xEE}, Size)
	copy(want[24:], "\x01\x04\xAD\x76\x01\x02\x03\x04\x05\x06\x07\x08")
	if !bytes.Equal(m[:], want) {
		t.Errorf("bytes\n%x, want\n%x", m[:40], want[:40])
	}
	if got := m.RMPPHeader(); got != h {
		t.Errorf("read %+v, want %+v", got, h)
	}
	if m.SegmentNumber() != h.Data1 || m.PayloadLength() != h.Data2 || m.NewWindowLast() != h.Data2 {
		t.Errorf("segment %#x, payload length %#x, window %#x", m.SegmentNumber(), m.PayloadLength(), m.NewWindowLast())
	}
}

// TestRMPPFlagsByte: time and flags share a byte and leave each other alone.
func TestRMPPFlagsByte(t *testing.T) {
	var m MAD
	m.SetRMPPFlags(0xFF)
	m.SetRRespTime(0)
	if m[26] != 0x07 || m.RMPPFlags() != RMPPActive|RMPPFirst|RMPPLast {
		t.Errorf("byte %#x, flags %v", m[26], m.RMPPFlags())
	}
	m.SetRRespTime(NoRespTime)
	m.SetRMPPFlags(RMPPFirst)
	if m[26] != 0xFA || m.RRespTime() != NoRespTime || m.RMPPFlags() != RMPPFirst {
		t.Errorf("byte %#x, time %d, flags %v", m[26], m.RRespTime(), m.RMPPFlags())
	}
	if f := RMPPActive | RMPPLast; !f.Has(RMPPLast) || f.Has(RMPPActive|RMPPFirst) {
		t.Error("Has does not ask for all flags")
	}
}

func TestRMPPPayload(t *testing.T) {
	var m MAD
	if n := len(m.RMPPPayload()); n != RMPPPayloadSize || SAHeaderSize != 20 || SAHeaderSize+SADataSize != RMPPPayloadSize {
		t.Errorf("payload of %d bytes, SA header of %d", n, SAHeaderSize)
	}
	m.SetSegmentNumber(7)
	m.SetPayloadLength(8)
	m.RMPPPayload()[0] = 9
	if m[31] != 7 || m[35] != 8 || m[36] != 9 {
		t.Errorf("bytes %x", m[24:40])
	}
	m.SetNewWindowLast(10)
	if m[35] != 10 {
		t.Errorf("bytes %x", m[24:40])
	}
}

func TestRMPPWords(t *testing.T) {
	for got, want := range map[string]string{
		RMPPNone.String(): "none", RMPPData.String(): "DATA", RMPPAck.String(): "ACK", RMPPStop.String(): "STOP",
		RMPPAbort.String(): "ABORT", RMPPType(9).String(): "RMPPType(9)",
		RMPPFlags(0).String(): "none", (RMPPActive | RMPPLast).String(): "Active|Last", RMPPFirst.String(): "First",
		RMPPStatus(130).String(): "class specific 130", RMPPStatus(255).String(): "vendor specific 255", RMPPStatus(60).String(): "RMPPStatus(60)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	words := map[RMPPStatus]string{
		RMPPNormal: "normal", RMPPResX: "RESX", RMPPT2L: "T2L", RMPPBadLength: "PayloadLength", RMPPBadSegment: "SegmentNumber",
		RMPPBadT: "BADT", RMPPW2S: "W2S", RMPPS2B: "S2B", RMPPBadStatus: "status", RMPPUnV: "UNV", RMPPTMR: "TMR", RMPPUnspecified: "unspecified",
	}
	codes := map[RMPPStatus]uint8{
		RMPPNormal: 0, RMPPResX: 1, RMPPT2L: 118, RMPPBadLength: 119, RMPPBadSegment: 120, RMPPBadT: 121,
		RMPPW2S: 122, RMPPS2B: 123, RMPPBadStatus: 124, RMPPUnV: 125, RMPPTMR: 126, RMPPUnspecified: 127,
	}
	for s, word := range words {
		if uint8(s) != codes[s] || !strings.Contains(s.String(), word) {
			t.Errorf("status %d is %q, want %d with %q", uint8(s), s, codes[s], word)
		}
	}
}

func TestRMPPAllocatesNothing(t *testing.T) {
	var m MAD
	h := RMPPHeader{Version: RMPPVersion, Type: RMPPData, RespTime: ib.ExpTime(3), Flags: RMPPActive, Data1: 1}
	if n := testing.AllocsPerRun(100, func() { m.SetRMPPHeader(h); h = m.RMPPHeader() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
