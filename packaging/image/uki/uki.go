// Package uki assembles a unified kernel image: a kernel, its initrd, its command line and an os-release as sections behind
// a UEFI stub, in one PE file that firmware starts. The signature of the file covers all of it. The same parts result in
// the same bytes.
package uki

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Parts are what an image is made of. All are required but Cmdline.
type Parts struct {
	Stub      []byte // systemd's, linuxx64.efi.stub
	Kernel    []byte // a bzImage with an EFI stub of its own
	Initrd    []byte
	Cmdline   string // of the kernel, without line feed
	OSRelease string // os-release(5)
}

// Bounds. The sizes in PE headers have 32 bits, and firmware loads the image as a
// whole below 4 GiB.
const (
	maxStub  = 4 << 20
	maxImage = 2 << 30
)

// align is the pages on which added sections start in memory.
const align = 0x1000

// Flags of a section that is read and never run or written.
const initialisedReadOnly = 0x0000_0040 | 0x4000_0000

// Build writes the image of parts.
func Build(out io.Writer, parts Parts) error {
	p, err := readStub(parts.Stub)
	if err != nil {
		return fmt.Errorf("UKI: stub: %w", err)
	}
	if err := parts.check(); err != nil {
		return fmt.Errorf("UKI: %w", err)
	}
	added := []section{
		{name: ".osrel", content: []byte(parts.OSRelease)},
		{name: ".cmdline", content: []byte(parts.Cmdline)},
		{name: ".initrd", content: parts.Initrd},
		{name: ".linux", content: parts.Kernel},
	}
	if parts.Cmdline == "" {
		added = append(added[:1], added[2:]...)
	}
	return p.write(out, added)
}

func (p *Parts) check() error {
	switch {
	case len(p.Kernel) == 0 || len(p.Initrd) == 0 || p.OSRelease == "":
		return errors.New("kernel, initrd and os-release must not be empty")
	case int64(len(p.Kernel))+int64(len(p.Initrd)) > maxImage:
		return fmt.Errorf("kernel and initrd have %d bytes, at most %d", len(p.Kernel)+len(p.Initrd), maxImage)
	case bytes.ContainsAny([]byte(p.Cmdline), "\x00\n") || len(p.Cmdline) > 2048 || !ascii(p.Cmdline):
		return errors.New("command line: want at most 2048 characters of ASCII, in one line")
	case !bytes.HasPrefix(p.Kernel, []byte("MZ")):
		return errors.New("kernel: no PE file: want a bzImage that has an EFI stub")
	}
	return nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// section is one that is added.
type section struct {
	name    string
	content []byte
}

// Offsets in PE headers ("PE Format", Microsoft), those of the optional header
// from its start.
const (
	peOffsetAt     = 0x3c
	coffSize       = 4 + 20 // with the signature
	numSectionsAt  = 4 + 2
	symbolsAt      = 4 + 8 // pointer to the symbol table, and number of symbols
	optionalSizeAt = 4 + 16

	magicPlus          = 0x020b // PE32+
	initialisedAt      = 8
	sectionAlignmentAt = 32
	fileAlignmentAt    = 36
	sizeOfImageAt      = 56
	sizeOfHeadersAt    = 60
	checksumAt         = 64
	numDirectoriesAt   = 108
	directoriesAt      = 112
	securityAt         = directoriesAt + 4*8

	sectionHeader = 40
)

// stub is a PE file as far as adding sections to it needs.
type stub struct {
	headers  []byte // up to the end of the section table
	pe       int    // offset of the signature
	optional int    // offset of the optional header
	sections int    // how many
	body     []byte // from SizeOfHeaders to the end of the last section's data
	top      uint32 // end of the highest section in memory
	file     uint32 // alignment in the file
}

var le = binary.LittleEndian

// readStub takes a PE32+ file without signature and without symbols that matter.
func readStub(b []byte) (*stub, error) {
	if len(b) < peOffsetAt+4 || len(b) > maxStub || string(b[:2]) != "MZ" {
		return nil, fmt.Errorf("no PE file of %d to %d bytes", peOffsetAt+4, maxStub)
	}
	p := &stub{pe: int(le.Uint32(b[peOffsetAt:]))}
	p.optional = p.pe + coffSize
	if p.pe < peOffsetAt+4 || p.optional+securityAt+8 > len(b) || string(b[p.pe:p.pe+4]) != "PE\x00\x00" {
		return nil, errors.New("no PE header")
	}
	o := b[p.optional:]
	table := p.optional + int(le.Uint16(b[p.pe+optionalSizeAt:]))
	p.sections = int(le.Uint16(b[p.pe+numSectionsAt:]))
	end, start := table+p.sections*sectionHeader, int(le.Uint32(o[sizeOfHeadersAt:]))
	p.file = le.Uint32(o[fileAlignmentAt:])
	switch {
	case le.Uint16(o) != magicPlus || le.Uint32(o[numDirectoriesAt:]) < 5 || table < p.optional+securityAt+8:
		return nil, errors.New("not of 64 bits (PE32+) with a directory of signatures")
	case le.Uint64(o[securityAt:]) != 0:
		return nil, errors.New("is signed: want it as it was built")
	case p.sections == 0 || p.sections > 64 || end > start || start > len(b):
		return nil, errors.New("section table lies outside its headers")
	case p.file < 512 || p.file > 1<<16 || p.file&(p.file-1) != 0 || start%int(p.file) != 0:
		return nil, fmt.Errorf("file alignment %d", p.file)
	case le.Uint32(o[sectionAlignmentAt:]) > align:
		return nil, fmt.Errorf("section alignment %d, at most %d", le.Uint32(o[sectionAlignmentAt:]), align)
	}
	p.headers = bytes.Clone(b[:end])
	last := start
	for i := range p.sections {
		h := b[table+i*sectionHeader:]
		size, address, rawSize, raw := le.Uint32(h[8:]), le.Uint32(h[12:]), le.Uint32(h[16:]), le.Uint32(h[20:])
		memory, rawEnd := uint64(address)+uint64(max(size, rawSize)), uint64(raw)+uint64(rawSize)
		if memory > maxStub || rawSize > 0 && (int(raw) < start || rawEnd > uint64(len(b))) {
			return nil, fmt.Errorf("section %d lies outside the file", i+1)
		}
		p.top, last = max(p.top, uint32(memory)), max(last, int(rawEnd))
	}
	p.body = b[start:last] // without a symbol table behind it
	return p, nil
}

// write writes the stub with sections behind its own.
func (p *stub) write(out io.Writer, added []section) error {
	was := le.Uint32(p.headers[p.optional+sizeOfHeadersAt:])
	headers := max(was, up(uint32(len(p.headers)+len(added)*sectionHeader), p.file))
	p.shift(headers - was)
	raw, address, total := up(headers+uint32(len(p.body)), p.file), up(p.top, align), uint32(0)
	fill := int64(raw) - int64(headers) - int64(len(p.body))
	for _, s := range added {
		size := uint32(len(s.content))
		h := make([]byte, sectionHeader)
		copy(h, s.name)
		le.PutUint32(h[8:], size)
		le.PutUint32(h[12:], address)
		le.PutUint32(h[16:], up(size, p.file))
		le.PutUint32(h[20:], raw)
		le.PutUint32(h[36:], initialisedReadOnly)
		p.headers = append(p.headers, h...)
		raw, total = raw+up(size, p.file), total+up(size, p.file)
		address = up(address+size, align)
	}
	o := p.headers[p.optional:]
	le.PutUint16(p.headers[p.pe+numSectionsAt:], uint16(p.sections+len(added)))
	le.PutUint64(p.headers[p.pe+symbolsAt:], 0)
	le.PutUint32(o[initialisedAt:], le.Uint32(o[initialisedAt:])+total)
	le.PutUint32(o[sizeOfImageAt:], address)
	le.PutUint32(o[sizeOfHeadersAt:], headers)
	le.PutUint32(o[checksumAt:], 0) // firmware does not look at it

	w := writer{out: out}
	w.bytes(p.headers)
	w.zeros(int64(headers) - int64(len(p.headers)))
	w.bytes(p.body)
	w.zeros(fill)
	for _, s := range added {
		w.bytes(s.content)
		w.zeros(int64(up(uint32(len(s.content)), p.file)) - int64(len(s.content)))
	}
	return w.err
}

// shift moves the data of the stub's own sections, for headers that grow.
func (p *stub) shift(by uint32) {
	table := len(p.headers) - p.sections*sectionHeader
	for i := range p.sections {
		at := p.headers[table+i*sectionHeader+20:]
		if raw := le.Uint32(at); raw != 0 {
			le.PutUint32(at, raw+by)
		}
	}
}

func up(n, to uint32) uint32 { return (n + to - 1) &^ (to - 1) }

// writer keeps the first error.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) bytes(b []byte) {
	if w.err == nil {
		if _, err := w.out.Write(b); err != nil {
			w.err = fmt.Errorf("UKI: write the image: %w", err)
		}
	}
}

func (w *writer) zeros(n int64) { w.bytes(make([]byte, n)) }
