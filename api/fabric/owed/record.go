package owed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A file is a header and records one after the other; the rest is unused. The header is magic, generation and checksum, or
// zeros in a file that is not in use. A record is a mark, the length of its body, a checksum of the generation and the
// body, and the body, which is an Entry as JSON. Numbers are big endian, and zeros follow the last record.
const (
	headerSize = 16
	recordHead = 12
)

var (
	magic = []byte("Pow1")
	mark  = []byte("\xf5owe")
)

// header encodes the header of a file.
func header(number uint64) []byte {
	h := make([]byte, headerSize)
	copy(h, magic)
	binary.BigEndian.PutUint64(h[4:], number)
	binary.BigEndian.PutUint32(h[12:], crc32.ChecksumIEEE(h[:12]))
	return h
}

// generation reads the header of a file, and reports whether the file is in use. A header is
// within one sector, so that a write which was broken off leaves none that is half.
func generation(data []byte) (number uint64, used bool, err error) {
	head := data[:min(len(data), headerSize)]
	if len(bytes.Trim(head, "\x00")) == 0 {
		return 0, false, nil
	}
	if len(head) < headerSize || !bytes.Equal(head[:4], magic) || crc32.ChecksumIEEE(head[:12]) != binary.BigEndian.Uint32(head[12:]) {
		return 0, false, errors.New("its header is not one that this version writes")
	}
	return binary.BigEndian.Uint64(head[4:]), true, nil
}

// record encodes an entry.
func record(e *Entry, number uint64) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("keep what the store is owed: %w", err)
	}
	if len(body) > maxRecord {
		return nil, fmt.Errorf("keep what the store is owed: a record of %d bytes: want %d at most", len(body), maxRecord)
	}
	out := append(make([]byte, 0, recordHead+len(body)+recordHead), mark...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	out = binary.BigEndian.AppendUint32(out, checksum(number, body))
	return append(out, body...), nil
}

func checksum(number uint64, body []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(binary.BigEndian.AppendUint64(nil, number)), crc32.IEEETable, body)
}

// bodyOf returns the body of the record that data begins with, if that is whole.
func bodyOf(data []byte, number uint64) ([]byte, bool) {
	if len(data) < recordHead || !bytes.Equal(data[:4], mark) {
		return nil, false
	}
	n := int64(binary.BigEndian.Uint32(data[4:]))
	if n > maxRecord || n > int64(len(data)-recordHead) {
		return nil, false
	}
	body := data[recordHead : recordHead+n]
	return body, checksum(number, body) == binary.BigEndian.Uint32(data[8:])
}

// content is what a file has.
type content struct {
	entries []Entry
	end     int64 // of its records
	torn    bool  // a record follows that was not written whole
}

// records reads a file of a generation. The last record may be one that was not written
// whole: it was never confirmed. Any other one that is not whole is an error, since each was
// on the disk before the next was written.
func records(data []byte, number uint64) (c content, err error) {
	c.end = headerSize
	for c.end < int64(len(data)) {
		rest := data[c.end:]
		body, whole := bodyOf(rest, number)
		if !whole {
			if next := follows(rest, number); next > 0 {
				return content{}, fmt.Errorf("the record at %d is damaged, and another one follows it at %d", c.end, c.end+next)
			}
			c.torn = len(bytes.Trim(rest[:min(len(rest), recordHead)], "\x00")) > 0
			return c, nil
		}
		e, err := decode(body)
		if err != nil {
			return content{}, fmt.Errorf("the record at %d: %w", c.end, err)
		}
		c.entries, c.end = append(c.entries, e), c.end+recordHead+int64(len(body))
	}
	return c, nil
}

// follows returns where a whole record is after the beginning of data; 0: there is none.
func follows(data []byte, number uint64) int64 {
	for at := 1; at < len(data); at++ {
		next := bytes.Index(data[at:], mark)
		if next < 0 {
			return 0
		}
		at += next
		if _, whole := bodyOf(data[at:], number); whole {
			return int64(at)
		}
	}
	return 0
}

// decode reads the body of a record. A kind that this version does not know may be a removal.
func decode(body []byte) (Entry, error) {
	var e Entry
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	if d.More() {
		return e, errors.New("more than one value")
	}
	switch {
	case e.Removal == nil && e.Note == nil && len(e.Facts) == 0:
		return e, errors.New("it is empty")
	case e.Removal != nil && e.Removal.Host == "":
		return e, errors.New("a removal without a host")
	}
	return e, nil
}
