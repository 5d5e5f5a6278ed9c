package rmpp

import (
	"math"

	"portcullis/fabricsm/mad"
)

// Unknown is the total length of a message that is not counted. Segment 1 then has PayloadLength 0, which the standard
// allows. Linux kernels, which receive for libibumad and OpenSM, look only at that of the last segment.
const Unknown = -1

// narrow is how many segments a sender holds without a ring: enough while its peer grants one or two at a time.
const narrow = 4

type segment [mad.SADataSize]byte

// sender is the half of a transaction that sends a message. It handles segments and windows; its owner decides when to end
// the transaction.
type sender struct {
	head  [headLen]byte
	src   Source
	total int // bytes of data, or Unknown
	cap   uint32

	// Segment n is at held[n % len(held)]. held has the segments from the last acknowledged one, which serves as a
	// question, to one beyond the last that may be sent. Only the segment beyond shows whether a segment is the last.
	held  []segment
	small [narrow]segment

	made    uint32 // the highest segment that is whole
	part    int    // bytes of the next one that are there
	last    uint32 // number of the last segment; 0: not known yet
	lastLen int    // bytes of data in it
	first   uint32 // PayloadLength that segment 1 went out with

	acked  uint32 // all up to here have arrived
	window uint32 // NewWindowLast
	next   uint32 // the segment to send next
	sent   uint32 // the highest that was ever sent
	asked  uint32 // next when a segment was last repeated as a question

	closed bool // the peer granted no more for long
	paused bool // the source wants to be asked later
	broken bool // the source did not keep to the total
	gaveUp bool // the source will make no more
}

// start begins a message. window is the one that the peer granted ahead: 1, or the value of its ACK of segment 0.
func (s *sender) start(head *mad.MAD, src Source, total int, window, cap uint32) {
	copy(s.head[:], head[:headLen])
	s.src, s.total, s.cap = src, total, cap
	s.held = s.small[:]
	s.made, s.part, s.last, s.lastLen, s.first = 0, 0, 0, 0, 0
	s.acked, s.window, s.next, s.sent, s.asked = 0, max(window, 1), 1, 0, 0
	s.closed, s.paused, s.broken, s.gaveUp = false, false, false, false
}

// limit is the highest segment that may be sent: the peer's window, and ours.
func (s *sender) limit() uint32 {
	return uint32(min(uint64(s.window), uint64(s.acked)+uint64(s.cap)))
}

// wide reports whether the segments that may be sent need a ring of cap+2 segments.
func (s *sender) wide() bool {
	return len(s.held) == narrow && narrow < s.cap+2 && s.limit()-s.acked > narrow-2 &&
		(s.last == 0 || s.last-s.acked > narrow-1)
}

// widen moves the held segments to a ring.
func (s *sender) widen(ring []segment) {
	for n := s.acked; n <= s.made+1; n++ {
		ring[n%uint32(len(ring))] = s.small[n%narrow]
	}
	s.held = ring
}

// ring is the ring that widen was given, or nil.
func (s *sender) ring() []segment {
	if len(s.held) == narrow {
		return nil
	}
	return s.held
}

func (s *sender) at(n uint32) *segment { return &s.held[n%uint32(len(s.held))] }

// over reports whether all segments were sent since the last resend.
func (s *sender) over() bool { return s.last != 0 && s.next > s.last }

// expecting reports whether the peer is next: all that may be sent is out.
func (s *sender) expecting() bool {
	return s.over() || s.next > s.limit() && !s.asking()
}

// done reports whether all is acknowledged.
func (s *sender) done() bool { return s.last != 0 && s.acked == s.last }

// ready reports whether a segment can be sent: whether it is made, and whether it is
// the last is known.
func (s *sender) ready(n uint32) bool {
	for s.last == 0 && (s.made < n || s.made == n && s.part == 0) {
		if s.paused || s.broken || s.gaveUp {
			return false
		}
		s.pull()
	}
	return s.last == 0 || n <= s.last
}

// pull has the source make more of the next segment.
func (s *sender) pull() {
	rest := s.at(s.made + 1)[s.part:]
	n, then := s.src.Fill(rest)
	n = max(0, min(n, len(rest)))
	s.part += n
	full := s.part == mad.SADataSize
	if full {
		s.made++
		s.part = 0
	}
	switch then {
	case ThenEnd:
	case ThenGiveUp:
		s.gaveUp = true
		return
	default:
		s.paused = n < len(rest)
		s.broken = s.made == math.MaxUint32-1 || s.total != Unknown && s.length() > uint64(s.total)
		return
	}
	switch {
	case full || s.part == 0 && s.made > 0:
		s.lastLen = mad.SADataSize
	default: // also a message without data has one segment
		s.lastLen = s.part
		s.made++
	}
	s.last, s.part = s.made, 0
	s.broken = s.total != Unknown && uint64(s.last-1)*mad.SADataSize+uint64(s.lastLen) != uint64(s.total)
}

// length is how much data was made, in bytes, as long as the last segment is not
// known.
func (s *sender) length() uint64 { return uint64(s.made)*mad.SADataSize + uint64(s.part) }

// emit writes the next packet to send into m, if there is one. Once the source has
// paused it is not asked for more.
func (s *sender) emit(m *mad.MAD) bool {
	switch {
	case s.over() || s.broken || s.gaveUp:
		return false
	case s.next > s.limit():
		if !s.asking() {
			return false
		}
		s.asked = s.next
		s.write(m, max(s.acked, 1))
		return true
	case !s.ready(s.next):
		return false
	}
	s.write(m, s.next)
	s.sent = max(s.sent, s.next)
	s.next++
	return true
}

// asking reports whether to repeat an acknowledged segment once as a question, because our window is full and the peer's is
// not. The peer has no reason yet to acknowledge its segments, but a segment that it already acknowledged makes it send an
// ACK. With an unacknowledged segment a Linux kernel stays silent. A peer that closed its window for long is asked in the
// same way.
func (s *sender) asking() bool {
	return (s.window > s.limit() || s.closed) && s.asked != s.next && !s.over()
}

// write makes m segment n.
func (s *sender) write(m *mad.MAD, n uint32) {
	copy(m[:headLen], s.head[:])
	d := m.SAData()
	copy(d, s.at(n)[:])
	flags, length := mad.RMPPFlags(0), uint32(0)
	if n == 1 {
		flags, length = mad.RMPPFirst, s.firstLen()
	}
	if n == s.last {
		flags |= mad.RMPPLast
		length = uint32(mad.SAHeaderSize + s.lastLen)
		clear(d[s.lastLen:])
		if n == 1 && s.lastLen == 0 {
			m.SetAttributeOffset(0)
		}
	}
	header(m, mad.RMPPData, flags, mad.RMPPNormal, n, length)
}

// firstLen returns the PayloadLength of segment 1: that of all segments together. It does not change when the segment is
// sent again.
func (s *sender) firstLen() uint32 {
	if s.sent > 0 {
		return s.first
	}
	total := uint64(0)
	switch {
	case s.last != 0:
		total = uint64(s.last-1)*segmentLen + mad.SAHeaderSize + uint64(s.lastLen)
	case s.total > 0:
		n := (uint64(s.total) + mad.SADataSize - 1) / mad.SADataSize
		total = n*mad.SAHeaderSize + uint64(s.total)
	}
	if total > math.MaxUint32 {
		total = 0
	}
	s.first = uint32(total)
	return s.first
}

// ack takes an ACK. It returns whether the peer has made progress, or the status with which the transaction must be
// aborted.
func (s *sender) ack(n, window uint32) (further bool, bad mad.RMPPStatus) {
	switch {
	case window < n:
		return false, mad.RMPPW2S
	case n > s.sent:
		return false, mad.RMPPS2B
	case n < s.acked || window < s.window:
		return false, mad.RMPPNormal // an old one
	}
	further = n > s.acked
	s.closed = false
	s.acked, s.window = n, window
	s.next = max(s.next, n+1)
	return further, mad.RMPPNormal
}

// again goes back to the first unacknowledged segment.
func (s *sender) again() {
	s.next, s.asked = s.acked+1, 0
	s.closed = s.acked == s.sent
}
