package rmpp

import (
	"bytes"
	"errors"
	"fmt"

	"portcullis/fabricsm/mad"
)

// Reassemble joins the segments of one message, in order and each once. It is stricter than a receiver, for programs that
// check a sender. It returns the data, and all errors of segments that can still be read.
func Reassemble(segs []mad.MAD) ([]byte, error) {
	if len(segs) == 0 {
		return nil, errors.New("rmpp: no segments")
	}
	var data []byte
	var errs []error
	wrong := func(i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("rmpp: segment %d of %d: %s", i+1, len(segs), fmt.Sprintf(format, args...)))
	}
	for i := range segs {
		m := &segs[i]
		n := mad.SADataSize
		want := mad.RMPPActive
		if i == 0 {
			want |= mad.RMPPFirst
		}
		if i == len(segs)-1 {
			want |= mad.RMPPLast
			length := m.PayloadLength()
			if i > 0 && (length < mad.SAHeaderSize || length > segmentLen) {
				wrong(i, "PayloadLength is %d, not within %d to %d", length, mad.SAHeaderSize, segmentLen)
			} else if length >= mad.SAHeaderSize && length <= segmentLen {
				n = int(length) - mad.SAHeaderSize
			}
		} else if i > 0 && m.PayloadLength() != 0 {
			wrong(i, "PayloadLength is %d, not 0", m.PayloadLength())
		}
		switch {
		case m.RMPPVersion() != mad.RMPPVersion || m.RMPPType() != mad.RMPPData || m.RMPPStatus() != mad.RMPPNormal:
			wrong(i, "version %d, type %v, status %v", m.RMPPVersion(), m.RMPPType(), m.RMPPStatus())
		case m.RMPPFlags() != want:
			wrong(i, "flags are %v, not %v", m.RMPPFlags(), want)
		case m.SegmentNumber() != uint32(i+1):
			wrong(i, "SegmentNumber is %d", m.SegmentNumber())
		}
		if !bytes.Equal(m[:mad.HeaderSize], segs[0][:mad.HeaderSize]) || !bytes.Equal(m[offSMKey:headLen], segs[0][offSMKey:headLen]) {
			wrong(i, "its header is not that of the first")
		}
		for _, b := range m.SAData()[n:] {
			if b != 0 {
				wrong(i, "bytes behind the data are not 0")
				break
			}
		}
		data = append(data, m.SAData()[:n]...)
	}
	total := uint32(len(segs)*mad.SAHeaderSize + len(data))
	if first := segs[0].PayloadLength(); first != total && (first != 0 || len(segs) == 1) {
		wrong(0, "PayloadLength is %d, not %d", first, total)
	}
	return data, errors.Join(errs...)
}
