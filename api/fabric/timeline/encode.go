package timeline

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Magic is how a segment begins: what it is, and the version of its layout.
const Magic = "PORTCULLIS TIMELINE 1\n"

const (
	frameHead = 8        // length and checksum of a body, 4 bytes each, big endian
	maxFrame  = 16 << 20 // bytes of a body
	maxWhole  = 64 << 20 // bytes of a whole table, unpacked
	removed   = 1        // bit of a mask: the row went; the bits above are of fields that changed
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrTooMany says that a table has more rows than MaxRows.
var ErrTooMany = fmt.Errorf("it has more than %d rows", MaxRows)

// Encoder makes the frames of one segment. The zero Encoder is at its beginning. A frame that it returned and that was not written
// whole ends the segment: what follows refers to it.
type Encoder struct {
	rows  map[Key]uint64
	texts map[string]uint64
	body  []byte
}

// Begin returns how a segment begins: its magic, and a frame with the whole table. sort is Begin, with why, or Continues.
func (e *Encoder) Begin(at time.Time, sort Sort, why string, table *State) ([]byte, error) {
	if !sort.whole() {
		return nil, errors.New("a segment begins with a whole table")
	}
	if table.Len() > MaxRows {
		return nil, ErrTooMany
	}
	e.rows, e.texts = map[Key]uint64{}, map[string]uint64{}
	all := table.Rows()
	changes := make([]Change, len(all))
	for i := range all {
		changes[i] = Change{Key: all[i].Key, Now: &all[i].Value}
	}
	e.head(sort, at, why)
	var packed bytes.Buffer
	z, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	whole := e.changes(nil, changes)
	if len(whole) > maxWhole {
		return nil, fmt.Errorf("a table of %d bytes, want %d at most", len(whole), maxWhole) // no reader takes more
	}
	_, err = z.Write(whole)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	e.body = append(e.body, packed.Bytes()...)
	return e.frame([]byte(Magic))
}

// Event returns the frame of an event that is no whole table.
func (e *Encoder) Event(at time.Time, sort Sort, why string, changes []Change) ([]byte, error) {
	if e.rows == nil || sort.whole() {
		return nil, errors.New("a segment begins with a whole table, and has one only")
	}
	e.head(sort, at, why)
	e.body = e.changes(e.body, changes)
	if len(e.rows) > 2*MaxRows {
		return nil, ErrTooMany
	}
	return e.frame(nil)
}

func (e *Encoder) head(sort Sort, at time.Time, why string) {
	e.body = append(e.body[:0], byte(sort))
	e.body = binary.AppendUvarint(e.body, uint64(max(0, at.UnixMilli())))
	e.body = appendText(e.body, clip(why))
}

// frame appends the body as a frame.
func (e *Encoder) frame(to []byte) ([]byte, error) {
	if len(e.body) > maxFrame {
		return nil, fmt.Errorf("%d bytes of changes at once, want %d at most", len(e.body), maxFrame)
	}
	to = binary.BigEndian.AppendUint32(to, uint32(len(e.body)))
	to = binary.BigEndian.AppendUint32(to, crc32.Checksum(e.body, castagnoli))
	return append(to, e.body...), nil
}

// changes appends changes: of each the row, a mask, and the fields of the mask.
func (e *Encoder) changes(to []byte, all []Change) []byte {
	for i := range all {
		c := &all[i]
		to = e.row(to, c.Key)
		if c.Now == nil {
			to = binary.AppendUvarint(to, removed)
			continue
		}
		var was Value
		if c.Was != nil {
			was = *c.Was
		}
		mask := uint64(0)
		for f := range Fields {
			if was[f] != c.Now[f] {
				mask |= 2 << f
			}
		}
		to = binary.AppendUvarint(to, mask)
		for f := range Fields {
			if mask&(2<<f) != 0 {
				to = e.text(to, c.Now[f])
			}
		}
	}
	return to
}

// row appends the number of a row: 0, kind and ID where it is the first time.
func (e *Encoder) row(to []byte, k Key) []byte {
	if n := e.rows[k]; n != 0 {
		return binary.AppendUvarint(to, n)
	}
	e.rows[k] = uint64(len(e.rows) + 1)
	return appendText(append(to, 0, byte(k.Kind)), k.ID)
}

// text appends the number of a text: 0 and the text where it is the first time, 1 for an empty one.
func (e *Encoder) text(to []byte, t string) []byte {
	if t == "" {
		return append(to, 1)
	}
	if n := e.texts[t]; n != 0 {
		return binary.AppendUvarint(to, n)
	}
	e.texts[t] = uint64(len(e.texts) + 2)
	return appendText(append(to, 0), t)
}

func appendText(to []byte, t string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(t))), t...)
}
