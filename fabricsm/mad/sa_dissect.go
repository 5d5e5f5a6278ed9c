package mad

import (
	"bytes"
	"errors"

	"portcullis/fabricsm/ib"
)

// SAState is what an MAD of subnet administration has between common header and data.
type SAState struct {
	RMPP            RMPPHeader
	SAKey           ib.SAKey
	AttributeOffset uint16 // in units of 8 bytes
	ComponentMask   ComponentMask
	Components      []string // of the mask, by name

	headerMissing bool // the MAD ends behind the RMPP header
}

// TableRecord is a record that lies whole in one MAD of a table.
type TableRecord struct {
	Number uint64 // in the table, from 0
	Value  any    // pointer to a value of the Dissection's Layout
}

// RecordAttr is the attribute whose record an SA MAD carries, and whose components its
// mask counts: GetTraceTable asks by a PathRecord, and GetMulti is answered with those
// (IBTA volume 1, 15.4.7 and 15.2.5.20).
func (h Header) RecordAttr() AttrID {
	if h.Method == MethodGetTrace || h.Method == MethodGetMultiResp {
		return AttrPathRecord
	}
	return h.Attr
}

func (d *Dissection) dissectSA(m *MAD, size int) {
	if size < offRMPPPayload {
		d.note("the input ends at byte %d, before the RMPP header at bytes 24 to 35 does", size)
		return
	}
	s := &SAState{RMPP: m.RMPPHeader(), headerMissing: size < offSAData}
	d.SA = s
	d.noteRMPP(s.RMPP)
	if s.headerMissing {
		d.note("the input ends at byte %d, before the component mask at bytes 48 to 55 does", size)
		return
	}
	s.SAKey, s.AttributeOffset, s.ComponentMask = ib.NewSAKey(m.SAKeyBits()), m.AttributeOffset(), m.ComponentMask()
	s.Components = s.ComponentMask.Names(d.Header.RecordAttr())
	if size == offSAData {
		d.note("the input ends at byte %d, before the data", size)
		return
	}
	switch {
	case !s.RMPP.Flags.Has(RMPPActive):
		d.dissectRecord(m[offSAData:size], size)
	case s.RMPP.unfilled():
		d.note("the RMPP header is as a program passes it to its kernel, so where the table ends is not known")
		d.dissectTable(d.withoutTail(m[offSAData:size]), 1, size)
	case s.RMPP.Type != RMPPData || s.RMPP.Data1 == 0:
	case d.Header.Method == MethodGetMulti && s.RMPP.Data1 == 1:
		d.dissectRecord(m[offSAData:size], size)
	case d.Header.Method == MethodGetMulti:
		d.note("segment %d goes on with the GIDs of the first", s.RMPP.Data1)
	default:
		d.dissectTable(d.payload(m[offSAData:size]), s.RMPP.Data1, size)
	}
}

// unfilled reports whether a header is one that a program passes to its kernel, as in traces of programs on a simulator: it
// only says that RMPP must carry the MAD.
func (h RMPPHeader) unfilled() bool {
	return h == RMPPHeader{Flags: RMPPActive, RespTime: h.RespTime}
}

func (d *Dissection) noteRMPP(h RMPPHeader) {
	if !h.Flags.Has(RMPPActive) || h.unfilled() {
		return
	}
	if h.Version != RMPPVersion {
		d.note("RMPP version is %d, want %d", h.Version, RMPPVersion)
	}
	switch {
	case h.Type == RMPPNone || h.Type > RMPPAbort:
		d.note("RMPP type %d does not exist", uint8(h.Type))
	case h.Type == RMPPData && h.Data1 == 0:
		d.note("segment 0 does not exist, segments begin with 1")
	case h.Type == RMPPData && h.Flags.Has(RMPPFirst) != (h.Data1 == 1):
		d.note("the flag First and segment number %d disagree", h.Data1)
	case h.Status != RMPPNormal && (h.Type == RMPPData || h.Type == RMPPAck):
		d.note("an RMPP status has no meaning in %v", h.Type)
	}
}

// dissectRecord reads one record, that of a question or of an answer that RMPP does
// not carry.
func (d *Dissection) dissectRecord(p []byte, size int) {
	a, h := d.Header.RecordAttr(), d.Header
	if h.Method == MethodGet || h.Method == MethodGetTable {
		if d.SA.ComponentMask == 0 {
			if !allZero(p) {
				d.note("the mask names no component, but the data have bytes that are not zero")
			}
			return
		}
	}
	l := saLayout(a)
	if l == nil {
		d.note("attribute 0x%04x of class %v is not known here", uint16(a), h.Class)
		return
	}
	if a == AttrNotice {
		d.dissectReport(p, size)
		return
	}
	v, err := l.Decode(p)
	if errors.Is(err, ErrShort) {
		d.note("the input ends at byte %d, inside %s at bytes %d to %d", size, l.Name(), offSAData, offSAData+l.Size()-1)
		return
	}
	d.Layout, d.Attribute = l, v
	if r, ok := v.(*MultiPathRecord); ok {
		d.dissectGIDs(r, p)
	}
}

// dissectReport reads a notice in the form that is sent to a subscriber.
func (d *Dissection) dissectReport(p []byte, size int) {
	var r ReportNotice
	if err := Decode(p, &r); err != nil {
		d.note("the input ends at byte %d, inside the notice at bytes %d to %d", size, offSAData, offSAData+LayoutOf[ReportNotice]().Size()-1)
		return
	}
	l := r.Notice.Layout()
	v, err := l.Decode(p)
	if err != nil {
		d.note("notice: %v", err)
		return
	}
	d.Layout, d.Attribute, d.IssuerGID = l, v, &r.IssuerGID
}

// dissectGIDs reads what follows a MultiPathRecord.
func (d *Dissection) dissectGIDs(r *MultiPathRecord, p []byte) {
	n := int(r.SGIDCount) + int(r.DGIDCount)
	for i := range n {
		g, ok := MultiPathGID(p, i)
		if !ok {
			d.note("%d of %d GIDs are here, the others in segments that follow", i, n)
			return
		}
		if i < int(r.SGIDCount) {
			d.SGIDs = append(d.SGIDs, g)
		} else {
			d.DGIDs = append(d.DGIDs, g)
		}
	}
}

// dissectTable reads those records of a table that lie whole in p, the data of one
// segment of it.
func (d *Dissection) dissectTable(p []byte, segment uint32, size int) {
	a := d.Header.RecordAttr()
	l := saLayout(a)
	switch {
	case len(p) == 0 || d.SA.AttributeOffset == 0 && allZero(p):
		return
	case l == nil:
		d.note("attribute 0x%04x of class %v is not known here", uint16(a), d.Header.Class)
		return
	}
	step := uint64(d.SA.AttributeOffset) * offsetUnit
	if step < uint64(l.Size()) {
		d.note("records %d bytes apart (AttributeOffset) cannot be %s of %d", step, l.Name(), l.Size())
		return
	}
	d.Layout = l
	before := (uint64(segment) - 1) * SADataSize // bytes in the segments before
	number := (before + step - 1) / step
	at := number*step - before
	if n := min(at, uint64(len(p))); n > 0 {
		d.note("the first %d bytes belong to record %d, which began in an earlier segment", n, number-1)
	}
	for ; at+uint64(l.Size()) <= uint64(len(p)); at, number = at+step, number+1 {
		v, err := l.Decode(p[at:])
		if err != nil {
			d.note("record %d: %v", number, err)
			return
		}
		d.Records = append(d.Records, TableRecord{number, v})
	}
	if at < uint64(len(p)) && !allZero(p[at:]) {
		d.noteTail(number, len(p)-int(at), size)
	}
}

func (d *Dissection) noteTail(number uint64, n, size int) {
	switch {
	case size < Size:
		d.note("the input ends at byte %d, inside record %d", size, number)
	case d.SA.RMPP.Flags.Has(RMPPLast):
		d.note("the last %d bytes are no whole record", n)
	default:
		d.note("the last %d bytes begin record %d, which goes on in the next segment", n, number)
	}
}

// withoutTail returns the data of a table of unknown length without the records of zeros at its end.
func (d *Dissection) withoutTail(p []byte) []byte {
	step := max(1, int(d.SA.AttributeOffset)*offsetUnit)
	n := (len(bytes.TrimRight(p, "\x00")) + step - 1) / step
	return p[:min(len(p), n*step)]
}

// payload returns the valid data of a segment.
func (d *Dissection) payload(p []byte) []byte {
	h := d.SA.RMPP
	if !h.Flags.Has(RMPPLast) {
		return p
	}
	if h.Data2 < SAHeaderSize || h.Data2 > RMPPPayloadSize {
		d.note("PayloadLength is %d, want %d to %d in the last segment", h.Data2, SAHeaderSize, RMPPPayloadSize)
		return p
	}
	return p[:min(len(p), int(h.Data2)-SAHeaderSize)]
}
