package image

import (
	"bytes"
	"fmt"
)

const (
	tocHeaderSize = 32
	tocEntrySize  = 32
	tocSector     = 0x1000
	maxEntries    = 128
)

var (
	magicITOC = []byte{0x49, 0x54, 0x4F, 0x43, 0x04, 0x08, 0x15, 0x16, 0x23, 0x42, 0xCA, 0xFA, 0xBA, 0xCA, 0xFE, 0x00}
	magicDTOC = []byte{0x44, 0x54, 0x4F, 0x43, 0x04, 0x08, 0x15, 0x16, 0x23, 0x42, 0xCA, 0xFA, 0xBA, 0xCA, 0xFE, 0x00}
)

// table is a table of contents: of the image (ITOC) or of the device's data
// (DTOC).
type table struct {
	name     string
	at, end  int64 // in the file
	headerOK bool
	sections []Section
}

// hasTable reports whether a header with that magic stands at an address.
func hasTable(s source, at int64, magic []byte) (bool, error) {
	if !s.holds(at, tocHeaderSize) {
		return false, nil
	}
	b, err := s.block("table header", at, int64(len(magic)))
	return bytes.Equal(b, magic), err
}

// findITOC looks for the table of an image: at the pointer or one sector later.
// Zero is none.
func findITOC(s source, candidates ...int64) (at int64, err error) {
	for _, c := range candidates {
		ok, err := hasTable(s, c, magicITOC)
		if err != nil {
			return 0, err
		}
		switch {
		case ok && at != 0:
			return 0, malformed(fmt.Sprintf("table of contents at 0x%x", c), "another one is at 0x%x", at)
		case ok:
			at = c
		}
	}
	return at, nil
}

// readTable reads a table until its last entry. origin is where addresses in it
// count from.
func readTable(s source, name string, at, origin int64, parse func(b []byte, origin int64) Section) (*table, error) {
	t := &table{name: name, at: at}
	h, err := s.block(name+" header", at, tocHeaderSize)
	if err != nil {
		return nil, err
	}
	t.headerOK = u32(h, 0x1C) == uint32(softSum(h[:0x1C]))
	var b [tocEntrySize]byte
	for off := at + tocHeaderSize; ; off += tocEntrySize {
		object := fmt.Sprintf("%s entry %d", name, len(t.sections))
		if err := s.fill(object, off, b[:]); err != nil {
			return nil, err
		}
		if SectionType(b[0]) == sectionEnd {
			t.end = off + tocEntrySize
			return t, nil
		}
		if len(t.sections) == maxEntries {
			return nil, malformed(name, "it has more than %d entries", maxEntries)
		}
		e := parse(b[:], origin)
		e.entry, e.entryCRC = off, u32(b[:], 0x1C) == uint32(softSum(b[:0x1C]))
		t.sections = append(t.sections, e)
	}
}

func (t *table) check() (found []Finding) {
	if !t.headerOK {
		found = append(found, Finding{t.name + " header", "its checksum is wrong"})
	}
	for i, e := range t.sections {
		if !e.entryCRC {
			found = append(found, Finding{fmt.Sprintf("%s entry %d (%v)", t.name, i, e.Type), "its checksum is wrong"})
		}
	}
	return found
}

// entryFS4 reads an entry of FS4 and FS5.
func entryFS4(b []byte, origin int64) Section {
	return Section{
		Type:       SectionType(b[0]),
		Size:       int64(u32(b, 0x00) & 0x00FFFFFC),
		Offset:     origin + int64(u32(b, 0x14)&0x7FFFFFFC),
		Encrypted:  u32(b, 0x18)>>31 == 1,
		cacheLines: u32(b, 0x04)>>30&1 == 1,
		mode:       crcMode(u32(b, 0x18) >> 16 & 7),
		crc:        u16(b, 0x1A),
	}
}

// entryFS3 reads an entry of FS3, where sections of the device stand in the
// same table and may have an address that counts from the beginning of the flash.
func entryFS3(b []byte, origin int64) Section {
	e := Section{
		Type:   SectionType(b[0]),
		Size:   int64(u32(b, 0x00) & 0x00FFFFFC),
		Offset: int64(u32(b, 0x14) & 0x7FFFFFFC),
		Device: u32(b, 0x18)>>17&1 == 1,
		mode:   crcMode(u32(b, 0x18) >> 16 & 1),
		crc:    u16(b, 0x1A),
	}
	if relative := u32(b, 0x14)>>31 == 1; relative {
		e.Offset += origin
		e.astray = e.Device
	} else {
		e.astray = !e.Device
	}
	return e
}
