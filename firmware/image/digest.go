package image

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"io"
	"slices"
)

// ErrOpaque says that it is unknown which bytes a signature would cover.
var ErrOpaque = errors.New("what a signature covers is not known")

const (
	lineSize = 68 // of a section with a checksum in each line
	lineData = 64
)

// bootRecords are the sizes of the boot record without the checksum behind it,
// which is masked; ConnectX-7's is not.
var bootRecords = map[HardwareID]int64{0x21C: 0x4D0, 0x254: 0x660}

const connectX7 = HardwareID(0x218)

// hashed reports whether the image has a table of hashes, as those of ConnectX-7
// and later may have.
func (m *Image) hashed() bool { return m.Format == FS4 && m.pointers.at(PointerHashes) != 0 }

func (m *Image) hashesKnown() bool {
	if len(m.Info.Hardware) == 0 {
		return false
	}
	chip := m.Info.Hardware[0]
	return chip == connectX7 || bootRecords[chip] != 0
}

// Digest256 is the SHA-256 over what a signature in IMAGE_SIGNATURE_256 covers.
// It names the image: it is the digest of update and verification.
func (m *Image) Digest256() (d [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := m.masked(h, SectionSignature256); err != nil {
		return d, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Digest512 is the SHA-512 over what a signature in IMAGE_SIGNATURE_512 covers.
func (m *Image) Digest512() (d [sha512.Size]byte, err error) {
	h := sha512.New()
	if err := m.masked(h, SectionSignature256, SectionSignature512); err != nil {
		return d, err
	}
	return [sha512.Size]byte(h.Sum(nil)), nil
}

// masked passes to w what a signature covers: the image from its start to the
// end of its last section, with magic, the named sections and their entries as 0xFF.
// Data of the device is not covered.
func (m *Image) masked(w io.Writer, types ...SectionType) error {
	if m.Opaque != "" {
		return ErrOpaque
	}
	spans := []span{{m.Start, m.Start + magicSize, "magic"}}
	for _, e := range m.Sections {
		switch {
		case m.Format == FS3 && e.Device:
			spans = append(spans, span{e.entry, e.entry + tocEntrySize, "entry"})
		case !e.Device && slices.Contains(types, e.Type):
			spans = append(spans, span{e.entry, e.entry + tocEntrySize, "entry"}, span{e.Offset, e.end(), "signature"})
		}
	}
	lines, err := m.maskBoot(&spans)
	if err != nil {
		return err
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := m.Start
	for _, s := range spans {
		if err := m.plain(w, at, s.from, lines); err != nil {
			return err
		}
		if err := blanks(w, s.to-s.from); err != nil {
			return err
		}
		at = s.to
	}
	return m.plain(w, at, m.End, lines)
}

// maskBoot adds what a table of hashes changes: the checksum after the boot
// record is masked, and those in the lines of one section are left out.
func (m *Image) maskBoot(spans *[]span) (lines span, err error) {
	if !m.hashed() {
		return lines, nil
	}
	if i := slices.IndexFunc(m.Sections, func(e Section) bool { return e.cacheLines && !e.Device }); i >= 0 {
		lines = span{m.Sections[i].Offset, m.Sections[i].end(), "lines"}
	}
	if m.Info.Hardware[0] == connectX7 {
		return lines, nil
	}
	at := m.Start + m.pointers.at(PointerBootRecord) + bootRecords[m.Info.Hardware[0]]
	mask := span{at, at + 4, "boot record"}
	if err := apart(append(m.fixed(), mask)); err != nil {
		return lines, err
	}
	for _, e := range m.Sections {
		if mask.from < e.end() && e.Offset < mask.to {
			return lines, malformed("boot record", "it overlaps %v", e.Type)
		}
	}
	*spans = append(*spans, mask)
	return lines, nil
}

// plain passes a part of the file on. The section in lines is wholly inside or outside the part. Each whole line of it is
// passed on without its checksum.
func (m *Image) plain(w io.Writer, from, to int64, lines span) error {
	if lines.from >= from && lines.to <= to && lines.from < lines.to {
		if err := m.file.copyTo(w, "image", from, lines.from-from); err != nil {
			return err
		}
		l := &lineWriter{w: w}
		if err := m.file.copyTo(l, "image", lines.from, lines.to-lines.from); err != nil {
			return err
		}
		if err := l.flush(); err != nil {
			return err
		}
		from = lines.to
	}
	return m.file.copyTo(w, "image", from, to-from)
}

// lineWriter leaves out the last 4 bytes of each whole line of 68. The rest at the end has no checksum and is passed on as
// it is.
type lineWriter struct {
	w    io.Writer
	line []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(lineSize-len(l.line), len(p))
		l.line = append(l.line, p[:take]...)
		p = p[take:]
		if len(l.line) == lineSize {
			if _, err := l.w.Write(l.line[:lineData]); err != nil {
				return 0, err
			}
			l.line = l.line[:0]
		}
	}
	return n, nil
}

// flush passes on a last line that is not whole.
func (l *lineWriter) flush() error {
	_, err := l.w.Write(l.line)
	return err
}

var blankChunk = bytes.Repeat([]byte{0xFF}, 4096)

func blanks(w io.Writer, n int64) error {
	for n > 0 {
		part := blankChunk[:min(n, int64(len(blankChunk)))]
		if _, err := w.Write(part); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}
