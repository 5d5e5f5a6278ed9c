// Package peimage reads the PE/COFF images that UEFI firmware starts: their sections, the signatures they carry, and their
// Authenticode digest. Firmware measures this digest into PCR 4, and signatures cover it.
//
// Reading is strict: an image whose parts overlap or leave gaps is refused, as tools disagree on the bytes that its digest
// covers.
package peimage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of an image; a larger one is refused.
const (
	MaxSize     = 1 << 31
	maxSections = 96
	maxCerts    = 16
)

// Image is an image that was read. It shares memory with the parsed bytes.
type Image struct {
	Sections []Section // in the order of the table
	// Signatures are the PKCS#7 signatures, in their order, DER.
	Signatures [][]byte

	raw      []byte
	checksum int // offset of the checksum
	security int // offset of the directory's entry for signatures
	headers  int // size
	sections int // end of the last section's data
	certs    int // begin of the signatures; without them the end of the file
}

// Section is one part of an image.
type Section struct {
	Name    string
	Address uint32 // in memory, from the image's base
	Size    uint32 // in memory
	Data    []byte // as loaded: of Size bytes, or fewer if the file has no more
}

// Offsets of the PE format, those of the optional header from its start.
const (
	dosPointer     = 0x3c
	coffSize       = 4 + 20
	sectionsAt     = 4 + 2
	optionalSizeAt = 4 + 16
	magic32Plus    = 0x20b
	sizeOfHeaderAt = 60
	checksumAt     = 64
	directoriesAt  = 108
	securityAt     = 112 + 4*8
	sectionSize    = 40

	certHeader = 8
	certPKCS7  = 0x0002 // WIN_CERT_TYPE_PKCS_SIGNED_DATA
	certV2     = 0x0200
	certAlign  = 8
)

var le = binary.LittleEndian

// Parse reads an image of 64 bits (PE32+).
func Parse(b []byte) (*Image, error) {
	m := &Image{raw: b}
	if err := m.parse(); err != nil {
		return nil, fmt.Errorf("PE image: %w", err)
	}
	return m, nil
}

func (m *Image) parse() error {
	b := m.raw
	if len(b) < dosPointer+4 || len(b) > MaxSize || b[0] != 'M' || b[1] != 'Z' {
		return errors.New(`has no "MZ" at the start, or is too small`)
	}
	at := le.Uint32(b[dosPointer:])
	if at < dosPointer+4 || uint64(at)+coffSize+securityAt+8 > uint64(len(b)) || string(b[at:at+4]) != "PE\x00\x00" {
		return errors.New("has no PE header")
	}
	optional := int(at) + coffSize
	o := b[optional:]
	m.checksum, m.security = optional+checksumAt, optional+securityAt
	table := optional + int(le.Uint16(b[int(at)+optionalSizeAt:]))
	count := int(le.Uint16(b[int(at)+sectionsAt:]))
	m.headers = int(le.Uint32(o[sizeOfHeaderAt:]))
	switch {
	case le.Uint16(o) != magic32Plus || le.Uint32(o[directoriesAt:]) < 5 || table < m.security+8:
		return errors.New("is not of 64 bits (PE32+), or has no place for signatures")
	case count == 0 || count > maxSections:
		return fmt.Errorf("has %d sections, want 1 to %d", count, maxSections)
	case table+count*sectionSize > m.headers || m.headers > len(b):
		return errors.New("has more sections than its headers can describe")
	}
	if err := m.readSections(b[table:], count); err != nil {
		return err
	}
	return m.readCerts()
}

// extent is where data lies in the file.
type extent struct{ begin, end uint64 }

func (m *Image) readSections(table []byte, count int) error {
	var extents []extent
	for i := range count {
		h := table[i*sectionSize:]
		s := Section{Name: string(bytes.TrimRight(h[:8], "\x00")), Size: le.Uint32(h[8:]), Address: le.Uint32(h[12:])}
		size, begin := uint64(le.Uint32(h[16:])), uint64(le.Uint32(h[20:]))
		if strings.ContainsRune(s.Name, 0) {
			return fmt.Errorf("section %d has a zero in its name", i+1)
		}
		if size > 0 {
			if begin < uint64(m.headers) || begin+size > uint64(len(m.raw)) {
				return fmt.Errorf("section %q lies outside the file", s.Name)
			}
			extents = append(extents, extent{begin, begin + size})
			s.Data = m.raw[begin : begin+min(size, uint64(s.Size))]
		}
		m.Sections = append(m.Sections, s)
	}
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.begin, b.begin) })
	end := uint64(m.headers)
	for _, e := range extents {
		if e.begin != end {
			return fmt.Errorf("sections overlap or leave a gap at offset %#x", end)
		}
		end = e.end
	}
	m.sections = int(end)
	return m.inMemory()
}

// inMemory refuses sections that overlap once they are loaded, or share a name.
func (m *Image) inMemory() error {
	sorted := slices.Clone(m.Sections)
	slices.SortFunc(sorted, func(a, b Section) int { return cmp.Compare(a.Address, b.Address) })
	end := uint64(0)
	for _, s := range sorted {
		if uint64(s.Address) < end {
			return fmt.Errorf("section %q overlaps another in memory", s.Name)
		}
		end = uint64(s.Address) + uint64(s.Size)
	}
	slices.SortFunc(sorted, func(a, b Section) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Name == sorted[i-1].Name {
			return fmt.Errorf("section %q occurs twice", sorted[i].Name)
		}
	}
	return nil
}

// readCerts reads the attribute certificate table, which must end the file.
func (m *Image) readCerts() error {
	begin, size := uint64(le.Uint32(m.raw[m.security:])), uint64(le.Uint32(m.raw[m.security+4:]))
	m.certs = len(m.raw)
	if begin == 0 && size == 0 {
		return nil
	}
	if begin < uint64(m.sections) || begin%certAlign != 0 || begin+size != uint64(len(m.raw)) {
		return errors.New("has signatures that are not at the end of the file")
	}
	m.certs = int(begin)
	for b := m.raw[begin:]; len(b) > 0; {
		if len(b) < certHeader || len(m.Signatures) == maxCerts {
			return fmt.Errorf("has more than %d signatures, or a truncated one", maxCerts)
		}
		n := uint64(le.Uint32(b))
		next := (n + certAlign - 1) &^ (certAlign - 1)
		if n < certHeader || next > uint64(len(b)) {
			return errors.New("has a signature of an impossible size")
		}
		if le.Uint16(b[4:]) != certV2 || le.Uint16(b[6:]) != certPKCS7 {
			return errors.New("has a signature that is not PKCS#7")
		}
		m.Signatures = append(m.Signatures, b[certHeader:n:n])
		b = b[next:]
	}
	return nil
}

// Section returns the content of a section as it is in memory, and whether there is one of that name.
func (m *Image) Section(name string) ([]byte, bool) {
	i := slices.IndexFunc(m.Sections, func(s Section) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return m.Sections[i].Data, true
}

// Digest returns the SHA-256 Authenticode digest ("Windows Authenticode Portable
// Executable Signature Format", calculating the PE image hash): of all but checksum,
// the entry for signatures, and these themselves.
func (m *Image) Digest() [sha256.Size]byte {
	h := sha256.New()
	h.Write(m.raw[:m.checksum])
	h.Write(m.raw[m.checksum+4 : m.security])
	h.Write(m.raw[m.security+8 : m.certs])
	return [sha256.Size]byte(h.Sum(nil))
}
