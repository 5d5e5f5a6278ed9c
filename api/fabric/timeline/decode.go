package timeline

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
)

// Reader replays a segment.
type Reader struct {
	data  []byte
	at    int // in data
	state State
	now   time.Time
	known bool
	rows  []Key
	texts []string
}

// NewReader returns a Reader at the beginning of a segment, whose bytes it keeps.
func NewReader(segment []byte) *Reader { return &Reader{data: segment} }

// State returns the table as the last event left it. It changes with each event.
func (r *Reader) State() *State { return &r.state }

// Known reports whether the table is known: after a beginning, and not after an End.
func (r *Reader) Known() bool { return r.known }

// Time returns the time of the last event, the zero time before the first one.
func (r *Reader) Time() time.Time { return r.now }

// Size returns how many bytes of the segment were read, which is where the last whole event ends.
func (r *Reader) Size() int { return r.at }

// errCut says that a segment ends where a frame does not.
var errCut = errors.New("its end is cut off")

// Next returns the next event. The error is io.EOF at the end of the segment; any other one says what is wrong behind the last event, and
// the segment is good up to there.
func (r *Reader) Next() (*Event, error) {
	at := r.at
	if at == 0 {
		if !strings.HasPrefix(string(r.data[:min(len(r.data), len(Magic))]), Magic) {
			return nil, errors.New("it does not begin as a segment of this version does")
		}
		at = len(Magic)
	} else if at == len(r.data) {
		return nil, io.EOF
	}
	if len(r.data)-at < frameHead {
		return nil, errCut
	}
	size := int(binary.BigEndian.Uint32(r.data[at:]))
	if size > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes, want %d at most", size, maxFrame)
	}
	if len(r.data)-at-frameHead < size {
		return nil, errCut
	}
	body := r.data[at+frameHead : at+frameHead+size]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(r.data[at+4:]) {
		return nil, errors.New("a frame has another checksum than its content")
	}
	e, err := r.event(body)
	if err != nil {
		return nil, err
	}
	r.at = at + frameHead + size
	return e, nil
}

// event applies the body of a frame. After an error the table is not to be used.
func (r *Reader) event(body []byte) (*Event, error) {
	in := input{data: body}
	e := &Event{Sort: Sort(in.byte())}
	ms := in.number()
	e.Why = in.text()
	if in.failed || !e.Sort.valid() || ms > maxTime {
		return nil, errors.New("a frame does not begin as one does")
	}
	e.Time = time.UnixMilli(int64(ms)).UTC()
	switch {
	case e.Sort.whole() != (r.at == 0):
		return nil, errors.New("a segment has one whole table, at its beginning")
	case e.Time.Before(r.now):
		return nil, fmt.Errorf("a frame of %v follows one of %v", e.Time, r.now)
	case !r.known && (e.Sort == Changed || e.Sort == Alive):
		return nil, errors.New("changes of a table that is not known")
	}
	if e.Sort.whole() {
		all, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(in.data)), maxWhole+1))
		if err != nil || len(all) > maxWhole {
			return nil, errors.New("the whole table cannot be unpacked")
		}
		in.data = all
		r.state.rows = map[Key]*held{}
	}
	for len(in.data) > 0 {
		c, err := r.change(&in)
		if err != nil {
			return nil, err
		}
		e.Changes = append(e.Changes, c)
	}
	r.now, r.known = e.Time, e.Sort != End
	return e, nil
}

// maxTime is the last time of a segment, in milliseconds: the year 9999.
const maxTime = 253402300799999

// change reads and applies one change.
func (r *Reader) change(in *input) (c Change, err error) {
	if c.Key, err = r.row(in); err != nil {
		return c, err
	}
	mask := in.number()
	h := r.state.rows[c.Key]
	switch {
	case in.failed || mask >= 2<<Fields:
		return c, errors.New("a change that says nothing of its row")
	case mask&removed != 0 && (mask != removed || h == nil):
		return c, errors.New("a row goes that is not there")
	case mask == removed:
		was := h.value
		delete(r.state.rows, c.Key)
		return Change{Key: c.Key, Was: &was}, nil
	}
	var now Value
	if h != nil {
		was := h.value
		c.Was, now = &was, was
	}
	for f := range Fields {
		if mask&(2<<f) == 0 {
			continue
		}
		if now[f], err = r.text(in); err != nil {
			return c, err
		}
	}
	if h == nil {
		if len(r.state.rows) >= MaxRows {
			return c, ErrTooMany
		}
		h = &held{}
		r.state.rows[c.Key] = h
	}
	h.value = now
	c.Now = &now
	return c, nil
}

func (r *Reader) row(in *input) (Key, error) {
	n := in.number()
	if n > 0 {
		if in.failed || n > uint64(len(r.rows)) {
			return Key{}, errors.New("a row that was not named before")
		}
		return r.rows[n-1], nil
	}
	k := Key{Kind: Kind(in.byte()), ID: in.text()}
	if in.failed || len(r.rows) >= 3*MaxRows {
		return Key{}, errors.New("a row without a name")
	}
	r.rows = append(r.rows, k)
	return k, nil
}

func (r *Reader) text(in *input) (string, error) {
	n := in.number()
	switch {
	case in.failed || n > uint64(len(r.texts)+1):
		return "", errors.New("a text that did not occur before")
	case n == 1:
		return "", nil
	case n > 1:
		return r.texts[n-2], nil
	}
	t := in.text()
	if in.failed || t == "" {
		return "", errors.New("a text is cut off")
	}
	r.texts = append(r.texts, t)
	return t, nil
}

// input takes values from the front of bytes. After one that is not there it has failed.
type input struct {
	data   []byte
	failed bool
}

func (in *input) byte() byte {
	if len(in.data) == 0 {
		in.failed = true
		return 0
	}
	b := in.data[0]
	in.data = in.data[1:]
	return b
}

func (in *input) number() uint64 {
	n, size := binary.Uvarint(in.data)
	if size <= 0 {
		in.failed, in.data = true, nil
		return 0
	}
	in.data = in.data[size:]
	return n
}

func (in *input) text() string {
	n := in.number()
	if in.failed || n > MaxText || n > uint64(len(in.data)) {
		in.failed, in.data = true, nil
		return ""
	}
	t := string(in.data[:n])
	in.data = in.data[n:]
	return t
}

// ahead returns the time of the next frame, and false where there is none.
func (r *Reader) ahead() (time.Time, bool) {
	at := max(r.at, len(Magic))
	if len(r.data)-at <= frameHead {
		return time.Time{}, false
	}
	in := input{data: r.data[at+frameHead:]}
	in.byte()
	ms := in.number()
	return time.UnixMilli(int64(min(ms, maxTime))), !in.failed
}

// At returns a Reader that replayed a segment up to a time, that time included, and nil where the segment has nothing so early.
func At(segment []byte, at time.Time) *Reader {
	r := NewReader(segment)
	for {
		good := r.Size()
		next, ok := r.ahead()
		if !ok || next.After(at) {
			break
		}
		if _, err := r.Next(); err != nil {
			if good == 0 {
				return nil
			}
			return At(segment[:good], at) // what is wrong may have been applied in part
		}
	}
	if r.Size() == 0 {
		return nil
	}
	return r
}
