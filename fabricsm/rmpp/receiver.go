package rmpp

import (
	"math/bits"

	"portcullis/fabricsm/mad"
)

// receiver is the half of a transaction that receives a message.
type receiver struct {
	head [headLen]byte // of segment 1
	buf  []byte        // data of all segments up to the highest that is here

	inOrder uint32 // all up to here have arrived
	window  uint32 // NewWindowLast in our last ACK
	ahead   uint64 // bit n: segment inOrder+1+n has arrived
	last    uint32 // number of the last segment; 0: not known yet
	lastLen int    // bytes of data in it
	promise uint32 // how many segments segment 1 promised; 0: it did not

	max  int    // bytes of data at most
	step uint32 // segments of a window
}

// start begins to receive. The buffer of the message before is used again.
func (r *receiver) start(maxLen, step int) {
	*r = receiver{buf: r.buf[:0], window: 1, max: maxLen, step: uint32(step)}
}

// verdict is the result of a segment.
type verdict uint8

const (
	vDrop  verdict = iota // nothing
	vAck                  // acknowledge the segments so far
	vWhole                // that, and the message is complete
	vStop                 // it is too long for us
	vAbort                // it breaks the rules
)

// segments returns how many segments n bytes of data need.
func segments(n int) int { return max(1, (n+mad.SADataSize-1)/mad.SADataSize) }

// take takes a segment. Its type, version and status are right, and First is set
// if it is segment 1 and not otherwise.
func (r *receiver) take(m *mad.MAD) (verdict, mad.RMPPStatus) {
	n, length, last := m.SegmentNumber(), m.PayloadLength(), m.RMPPFlags().Has(mad.RMPPLast)
	switch {
	case n > r.window:
		return vDrop, 0
	case n <= r.inOrder:
		return vAck, 0
	case r.ahead>>(n-r.inOrder-1)&1 != 0:
		return vDrop, 0
	}
	dataLen := mad.SADataSize
	if last {
		if length < mad.SAHeaderSize || length > segmentLen {
			return vAbort, mad.RMPPBadLength
		}
		dataLen = int(length) - mad.SAHeaderSize
	}
	if n == 1 && length != 0 {
		r.promise = (length-1)/segmentLen + 1
	}
	if !r.fits(n, last) {
		return vAbort, mad.RMPPBadLength
	}
	if most := uint32(segments(r.max)); n > most || r.promise > most || int(n-1)*mad.SADataSize+dataLen > r.max && last {
		return vStop, mad.RMPPResX
	}
	if last {
		r.last, r.lastLen = n, dataLen
	}
	r.keep(m, n)
	switch {
	case r.last != 0 && r.inOrder == r.last:
		return vWhole, 0
	case r.inOrder == r.window:
		r.window += r.step
		return vAck, 0
	case n == 1:
		// In a window that was granted ahead: the sender may not have heard of it.
		return vAck, 0
	default:
		return vDrop, 0
	}
}

// fits reports whether a new segment is consistent with the known data about the last one.
func (r *receiver) fits(n uint32, last bool) bool {
	highest := max(n, r.inOrder+uint32(bits.Len64(r.ahead)))
	end := r.last
	switch {
	case last && (end != 0 || n != highest):
		return false
	case last:
		end = n
	}
	if end != 0 && (highest > end || n == end && !last) {
		return false
	}
	return r.promise == 0 || highest <= r.promise && (end == r.promise || end == 0 && highest < r.promise)
}

// keep puts the data of a segment into its place.
func (r *receiver) keep(m *mad.MAD, n uint32) {
	if n == 1 {
		copy(r.head[:], m[:headLen])
	}
	end := int(n) * mad.SADataSize
	if end > cap(r.buf) {
		grown := make([]byte, len(r.buf), min(max(end, 2*cap(r.buf)), segments(r.max)*mad.SADataSize))
		copy(grown, r.buf)
		r.buf = grown
	}
	r.buf = r.buf[:max(end, len(r.buf))]
	copy(r.buf[end-mad.SADataSize:end], m.SAData())
	r.ahead |= 1 << (n - r.inOrder - 1)
	whole := bits.TrailingZeros64(^r.ahead)
	r.ahead >>= whole
	r.inOrder += uint32(whole)
}

// data is the whole message. The buffer is the receiver's.
func (r *receiver) data() []byte { return r.buf[:int(r.last-1)*mad.SADataSize+r.lastLen] }

// ack makes m the ACK of how far we are, in reply to a segment.
func (r *receiver) ack(m, segment *mad.MAD) {
	reply(m, segment[:headLen], mad.RMPPAck, mad.RMPPNormal, r.inOrder, r.window)
}
