package rmpp

import "portcullis/fabricsm/mad"

// MaxRecord is the length of the longest record that Records takes, in bytes.
const MaxRecord = mad.SADataSize

// Made is the result of a Maker.
type Made uint8

const (
	// MadeNothing means that there are no more records.
	MadeNothing Made = iota
	// MadeOne means that a record was written.
	MadeOne
	// MadePause means that there may be more, but that the step is over for now.
	MadePause
	// MadeGiveUp means that no more will be made although there is more: see ThenGiveUp.
	MadeGiveUp
)

// Maker makes records one at a time.
type Maker interface {
	// Make writes the next record, all of rec, which holds old bytes.
	Make(rec []byte) Made
}

// Records is a Source out of a Maker. It can be used again after Reset.
type Records struct {
	maker Maker
	size  int
	part  []byte // of a record that began in the segment before
	room  [MaxRecord]byte
}

// Reset makes r a source of the records of a maker, each size bytes long with its
// padding: 1 to MaxRecord.
func (r *Records) Reset(m Maker, size int) {
	if size < 1 || size > MaxRecord {
		panic("rmpp: a record is 1 to 200 bytes long")
	}
	r.maker, r.size, r.part = m, size, nil
}

// Fill implements Source.
func (r *Records) Fill(seg []byte) (n int, then Then) {
	for n < len(seg) {
		if len(r.part) > 0 {
			c := copy(seg[n:], r.part)
			r.part = r.part[c:]
			n += c
			continue
		}
		rec := seg[n:]
		if len(rec) >= r.size {
			rec = rec[:r.size]
		} else {
			rec = r.room[:r.size]
		}
		switch r.maker.Make(rec) {
		case MadeNothing:
			return n, ThenEnd
		case MadePause:
			return n, ThenMore
		case MadeGiveUp:
			return n, ThenGiveUp
		case MadeOne:
		}
		if len(seg)-n >= r.size {
			n += r.size
		} else {
			r.part = rec
		}
	}
	return n, ThenMore
}
