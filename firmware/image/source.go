package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// chunk is how much is read at once when a section is only passed through.
const chunk = 64 << 10

// source is a part of a file, from base on, that is read in its bounds.
type source struct {
	r    io.ReaderAt
	base int64
	size int64 // bytes from base to the end
}

// holds reports whether n bytes at off lie inside.
func (s source) holds(off, n int64) bool {
	return off >= 0 && n >= 0 && off <= s.size && n <= s.size-off
}

// block reads n bytes at off. Bytes outside the file are a LayoutError about object; n is a size of ours, never one of the
// file.
func (s source) block(object string, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	if err := s.fill(object, off, b); err != nil {
		return nil, err
	}
	return b, nil
}

func (s source) fill(object string, off int64, b []byte) error {
	if !s.holds(off, int64(len(b))) {
		return malformed(object, "%d bytes at 0x%x run over the end at 0x%x", len(b), off, s.size)
	}
	if n, err := s.r.ReadAt(b, s.base+off); n < len(b) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read %s at 0x%x: %w", object, off, err)
	}
	return nil
}

// copyTo passes n bytes at off to w.
func (s source) copyTo(w io.Writer, object string, off, n int64) error {
	if !s.holds(off, n) {
		return malformed(object, "%d bytes at 0x%x run over the end at 0x%x", n, off, s.size)
	}
	buf := make([]byte, min(n, chunk))
	for n > 0 {
		b := buf[:min(n, int64(len(buf)))]
		if err := s.fill(object, off, b); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		off, n = off+int64(len(b)), n-int64(len(b))
	}
	return nil
}

func u16(b []byte, off int) uint16 { return binary.BigEndian.Uint16(b[off:]) }
func u32(b []byte, off int) uint32 { return binary.BigEndian.Uint32(b[off:]) }
func u64(b []byte, off int) uint64 { return binary.BigEndian.Uint64(b[off:]) }
