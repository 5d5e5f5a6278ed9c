package image

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxSize is that of the largest file that is opened, in bytes: flashes and
// components are below it.
const MaxSize = 64 << 20

// Image is a firmware image that was opened.
type Image struct {
	Format    Format
	Start     int64 // of the image in the file, in bytes
	Component bool  // an update component: no magic, no data of a device
	// Opaque says why nothing can be verified here, whatever is signed: the
	// image is encrypted, or its layout is not known well enough. Empty: it can.
	Opaque string
	// SecurityVersion is what anti-rollback compares. FS5 and FS3 have none that
	// is known.
	SecurityVersion uint32
	Sections        []Section   // of image and device, in the order of the tables
	End             int64       // in the file: up to here a signature covers the image
	Info            *Info       // nil: opaque, and not readable
	Device          *DeviceData // nil: none there
	Signatures      []Signature // in the order of their algorithms
	Keys            []PublicKey

	file     source // the whole file
	src      source // from Start on
	pointers pointers
	tables   []*table
	boot2    int64 // in src
	tools    int64 // in src; 0 is none
}

// Open reads the structure of an image of size bytes. ErrUnknown says that it
// is none; a LayoutError, that it contradicts itself; other errors are those of r.
func Open(r io.ReaderAt, size int64) (*Image, error) {
	if size > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrUnknown, size, MaxSize)
	}
	m := &Image{file: source{r: r, size: size}}
	var err error
	if m.Start, m.Format, m.Component, err = locate(m.file); err != nil {
		return nil, err
	}
	m.src = source{r: r, base: m.Start, size: size - m.Start}
	switch m.Format {
	case FS3:
		err = m.openFS3()
	case FS4:
		err = m.openFS4()
	case FS5:
		err = m.openFS5()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Behind returns how many bytes of the file follow the signed part: data of the device, and any other data there.
func (m *Image) Behind() int64 { return max(0, m.file.size-m.End) }

func (m *Image) openFS3() error {
	m.boot2 = bootFS3
	n, err := m.boot2Size()
	if err != nil {
		return err
	}
	for at := roundUp(m.boot2 + n); m.src.holds(at, tocHeaderSize); at += tocSector {
		ok, err := hasTable(m.src, at, magicITOC)
		if err != nil {
			return err
		}
		if ok {
			return m.readTables(at, entryFS3)
		}
	}
	return malformed("image", "it has no table of contents")
}

func (m *Image) openFS4() error {
	if err := m.readPointers(); err != nil {
		return err
	}
	m.SecurityVersion = uint32(m.pointers.at(PointerSecurityVersion))
	toc := m.pointers.at(PointerTOC)
	if toc == 0 {
		return malformed("hardware pointer 2", "it names no table of contents")
	}
	at, err := findITOC(m.src, toc, toc+tocSector)
	if err != nil {
		return err
	}
	if at == 0 {
		return m.sealed("its table of contents cannot be read: it is encrypted or damaged")
	}
	m.tools, m.boot2 = m.pointers.at(PointerTools), m.pointers.at(PointerBOOT2)
	if m.tools == 0 || m.boot2 == 0 {
		return malformed("hardware pointers", "tools area or BOOT2 is missing")
	}
	return m.readTables(at, entryFS4)
}

func (m *Image) openFS5() error {
	if err := m.readPointers(); err != nil {
		return err
	}
	return m.sealed("how FS5 images are signed is not known")
}

// sealed takes the identity of an image of which nothing else can be read, if
// it has one in the clear.
func (m *Image) sealed(why string) error {
	m.Opaque = why
	at := m.pointers.at(PointerImageInfo)
	if at == 0 || !m.src.holds(at, infoSize) {
		return nil
	}
	b, err := m.src.block("IMAGE_INFO", at, infoSize)
	if err != nil {
		return err
	}
	// Bytes that do not look like an info section are ignored without an error: they may be encrypted, too.
	if info, err := parseInfo(b); err == nil {
		if _, err := ParsePSID(string(info.PSID)); err == nil {
			m.Info = info
		}
	}
	return nil
}

func (m *Image) readPointers() (err error) {
	m.pointers, err = readPointers(m.src)
	return err
}

// readTables reads the tables and the sections that they name.
func (m *Image) readTables(at int64, parse func([]byte, int64) Section) error {
	// The table's entries are read at addresses of the file, so that image and
	// device share one space.
	t, err := readTable(m.file, "ITOC", m.Start+at, m.Start, parse)
	if err != nil {
		return err
	}
	m.tables = []*table{t}
	m.Sections = slices.Clone(t.sections)
	if err := m.readInfo(); err != nil {
		return err
	}
	if err := m.readDTOC(); err != nil {
		return err
	}
	if err := m.place(); err != nil {
		return err
	}
	if err := m.readAuthentication(); err != nil {
		return err
	}
	m.Device, err = readDevice(m.file, m.Format, m.Sections)
	if err != nil {
		return err
	}
	if m.Device == nil && !m.Component {
		return malformed("image", "it begins like a whole image, but has no device data: it is truncated")
	}
	m.judgeOpacity()
	return nil
}

// find returns the section of a type that may be there once.
func (m *Image) find(t SectionType) (Section, bool) {
	i := slices.IndexFunc(m.Sections, func(e Section) bool { return e.Type == t })
	if i < 0 {
		return Section{}, false
	}
	return m.Sections[i], true
}

func (m *Image) readInfo() error {
	e, ok := m.find(SectionImageInfo)
	if !ok {
		return malformed("image", "it has no IMAGE_INFO")
	}
	if at := m.pointers.at(PointerImageInfo); at != 0 && m.Start+at != e.Offset {
		return malformed("IMAGE_INFO", "hardware pointer 10 and the table name different sections")
	}
	b, err := sectionBlock(m.file, e, infoSize)
	if err != nil {
		return err
	}
	m.Info, err = parseInfo(b)
	return err
}

// readDTOC reads the table of the device's data, which is in the last sector of
// the slot. Update components have none.
func (m *Image) readDTOC() error {
	if m.Format != FS4 || m.Component {
		return nil
	}
	slot := m.file.size
	if n := int64(m.Info.dtocOffset); n != 0 {
		slot /= 2 * n
	}
	ok, err := hasTable(m.file, slot-tocSector, magicDTOC)
	if err != nil || !ok {
		return err
	}
	t, err := readTable(m.file, "DTOC", slot-tocSector, 0, entryFS4)
	if err != nil {
		return err
	}
	for i := range t.sections {
		t.sections[i].Device = true
	}
	m.tables = append(m.tables, t)
	m.Sections = append(m.Sections, t.sections...)
	return nil
}

// span is a part of the file that something stands in.
type span struct {
	from, to int64
	what     string
}

// place checks that every section lies inside the file, beside every other one
// and beside the fixed parts, and that none is there twice that must not be.
func (m *Image) place() error {
	spans := m.fixed()
	seen := map[SectionType]bool{}
	for i := range m.Sections {
		e := &m.Sections[i]
		if once[e.Type] && seen[e.Type] {
			return malformed(e.Type.String(), "it occurs twice")
		}
		seen[e.Type] = true
		if e.Device && once[e.Type] && e.Type != SectionManufacturing {
			return malformed(e.Type.String(), "it is among the device data, which no signature covers")
		}
		if e.astray {
			// Tools use the address, not the mark, to decide whether a signature covers it. If the two differ, an attacker
			// wants it read in two ways.
			return malformed(e.Type.String(), "mark and address disagree whether it belongs to the device")
		}
		if !m.file.holds(e.Offset, e.Size) {
			if m.Component && e.Device {
				e.outside = true
				continue
			}
			return malformed(e.Type.String(), "%d bytes at 0x%x run over the end at 0x%x", e.Size, e.Offset, m.file.size)
		}
		spans = append(spans, span{e.Offset, e.end(), e.Type.String()})
		if !e.Device {
			m.End = max(m.End, e.end())
		}
	}
	n, err := m.boot2Size()
	if err != nil {
		return err
	}
	spans = append(spans, span{m.Start + m.boot2, m.Start + m.boot2 + n, "BOOT2"})
	return apart(spans)
}

// fixed are the parts that no table names.
func (m *Image) fixed() []span {
	head := int64(pointersAt)
	if m.Format == FS4 {
		head = pointersAt + numPointers*pointerSize
	}
	spans := []span{{m.Start, m.Start + head, "header"}}
	if m.tools != 0 {
		spans = append(spans, span{m.Start + m.tools, m.Start + m.tools + toolsSize, "tools area"})
	}
	for _, t := range m.tables {
		spans = append(spans, span{t.at, t.end, t.name})
	}
	return spans
}

// apart checks that no two spans share a byte.
func apart(spans []span) error {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var last span
	for _, s := range spans {
		if s.from == s.to {
			continue
		}
		if s.from < last.to {
			return malformed(s.what, "at 0x%x it overlaps %s, which ends at 0x%x", s.from, last.what, last.to)
		}
		last = s
	}
	return nil
}

func (m *Image) readAuthentication() error {
	for _, t := range []SectionType{SectionSignature256, SectionSignature512} {
		if e, ok := m.find(t); ok {
			s, err := readSignature(m.file, e)
			if err != nil {
				return err
			}
			m.Signatures = append(m.Signatures, *s)
		}
	}
	for _, t := range []SectionType{SectionKeys2048, SectionKeys4096, SectionBootKeys} {
		if e, ok := m.find(t); ok {
			keys, err := readKeys(m.file, e)
			if err != nil {
				return err
			}
			m.Keys = append(m.Keys, keys...)
		}
	}
	return nil
}

// judgeOpacity says of an image that was read whole whether its signature can be
// judged.
func (m *Image) judgeOpacity() {
	hidden := slices.ContainsFunc(m.Sections, func(e Section) bool { return e.Encrypted && !e.Device })
	switch {
	case hidden || m.Info.Flags&flagEncrypted != 0:
		m.Opaque = "parts of it are encrypted"
	case m.hashed() && !m.hashesKnown():
		m.Opaque = "how images of this chip with a table of hashes are signed is not known"
	}
}

// TOC is where the table of contents is in the file, in bytes; 0 is none that can
// be read.
func (m *Image) TOC() int64 {
	if len(m.tables) == 0 {
		return 0
	}
	return m.tables[0].at
}

// IsLayout reports whether an image contradicts itself.
func IsLayout(err error) bool {
	_, ok := errors.AsType[*LayoutError](err)
	return ok
}
