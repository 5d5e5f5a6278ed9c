package mfa2

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits for reading. Real packages are far below them.
const (
	MaxSize      = 64 << 20 // of the file
	MaxHead      = 1 << 20  // of the descriptors
	MaxUnpacked  = 1 << 30  // of the archive
	MaxComponent = 64 << 20 // of one image
)

const (
	magicSize       = 16
	packageSize     = 28
	componentSize   = 16
	pointerSize     = 8
	compressionXZ   = 1
	storageArchive  = 1
	componentMagic  = "#BIN.COMPONENT!#"
	maxPSIDLength   = 32
	componentPrefix = int64(len(componentMagic))
)

var magic = []byte("MLNX.MFA2.XZ.00!")

// ErrNotPackage says that a file does not begin as a package does.
var ErrNotPackage = errors.New("not an MFA2 package")

// Component is one image of a package.
type Component struct {
	Index  int
	PSIDs  []string // of the boards that it is for, as the package says; printable
	Size   int64    // of the image
	offset int64    // of the magic before it, in the unpacked archive
}

// Package is a package whose descriptors were read and whose digests are right.
type Package struct {
	Components []Component // by index

	r        io.ReaderAt
	archive  int64 // where it begins
	packed   int64 // bytes of it
	unpacked int64
}

// IsPackage reports whether a file begins as a package does.
func IsPackage(r io.ReaderAt, size int64) bool {
	var b [magicSize]byte
	if size < magicSize {
		return false
	}
	n, _ := r.ReadAt(b[:], 0)
	return n == len(b) && string(b[:]) == string(magic)
}

// Open reads the descriptors of a package of size bytes and compares its digests.
func Open(r io.ReaderAt, size int64) (*Package, error) {
	if !IsPackage(r, size) {
		return nil, ErrNotPackage
	}
	if size > MaxSize {
		return nil, malformed("package: it has %d bytes, the limit is %d", size, int64(MaxSize))
	}
	head, err := readHead(r, size)
	if err != nil {
		return nil, err
	}
	p := &Package{r: r, archive: int64(len(head))}
	d := &reader{b: head, at: magicSize}
	g, err := d.group(tlvPackage)
	if err != nil {
		return nil, err
	}
	components, devices, err := p.describe(g.descriptor, size)
	if err != nil {
		return nil, err
	}
	if err := compareDigests(r, size, head, g); err != nil {
		return nil, err
	}
	boards, err := readBoards(d, devices, components)
	if err != nil {
		return nil, err
	}
	return p, p.readComponents(d, components, boards)
}

// readHead reads what stands before the archive. The first descriptor says where
// that begins.
func readHead(r io.ReaderAt, size int64) ([]byte, error) {
	const offsetAt = magicSize + 2*tlvHead + 4 + 4 // the offset in the first descriptor
	var b [4]byte
	if size < offsetAt+4 {
		return nil, malformed("package: it is truncated in its first descriptor")
	}
	if err := readFull(r, b[:], offsetAt); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(b[:]))
	if n < offsetAt+4 || n > MaxHead || n > size {
		return nil, malformed("package: its archive would begin at 0x%x", n)
	}
	head := make([]byte, n)
	return head, readFull(r, head, 0)
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read package at 0x%x: %w", off, err)
	}
	return nil
}

// describe reads the package descriptor.
func (p *Package) describe(t tlv, size int64) (components, devices int, err error) {
	b, err := t.sized(packageSize)
	if err != nil {
		return 0, 0, err
	}
	components, devices = int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
	p.packed = int64(binary.BigEndian.Uint32(b[8:]))
	unpacked := binary.BigEndian.Uint64(b[12:])
	switch {
	case p.packed > size-p.archive:
		return 0, 0, malformed("package: its archive of %d bytes at 0x%x runs over the end at 0x%x", p.packed, p.archive, size)
	case unpacked > MaxUnpacked:
		return 0, 0, malformed("package: it unpacks to %d bytes, the limit is %d", unpacked, int64(MaxUnpacked))
	case b[20] != compressionXZ:
		return 0, 0, malformed("package: compression %d is not known, only XZ (1)", b[20])
	}
	p.unpacked = int64(unpacked)
	return components, devices, nil
}

// readBoards reads the device descriptors: the PSIDs by index of the component
// that each names.
func readBoards(d *reader, devices, components int) ([][]string, error) {
	boards := make([][]string, components)
	for range devices {
		at := d.at
		g, err := d.group(tlvDevice)
		if err != nil {
			return nil, err
		}
		psid, targets := "", []int{}
		for _, e := range g.extensions {
			switch e.kind {
			case tlvPSID:
				if psid != "" || len(e.body) > maxPSIDLength {
					return nil, malformed("device at 0x%x: its PSID occurs twice or is too long", at)
				}
				psid = printable(e.body)
			case tlvPointer:
				b, err := e.sized(pointerSize)
				if err != nil {
					return nil, err
				}
				index := int(binary.BigEndian.Uint16(b[2:]))
				if binary.BigEndian.Uint16(b) != storageArchive || index >= components {
					return nil, malformed("device at 0x%x: it names component %d, but there are %d", at, index, components)
				}
				targets = append(targets, index)
			}
		}
		for _, i := range targets {
			boards[i] = append(boards[i], psid)
		}
	}
	return boards, nil
}

// printable writes what is not printable ASCII, and the backslash, as \xNN.
func printable(b []byte) string {
	s := ""
	for _, c := range b {
		if c < ' ' || c > '~' || c == '\\' {
			s += fmt.Sprintf(`\x%02x`, c)
		} else {
			s += string(rune(c))
		}
	}
	return s
}

// readComponents reads the component descriptors, which must lie apart in the
// archive.
func (p *Package) readComponents(d *reader, components int, boards [][]string) error {
	for i := range components {
		g, err := d.group(tlvComponent)
		if err != nil {
			return err
		}
		b, err := g.descriptor.sized(componentSize)
		if err != nil {
			return err
		}
		offset, size := binary.BigEndian.Uint64(b[4:]), int64(binary.BigEndian.Uint32(b[12:]))
		if size > MaxComponent {
			return malformed("component %d: it has %d bytes, the limit is %d", i, size, int64(MaxComponent))
		}
		if offset > uint64(p.unpacked) || componentPrefix+size > p.unpacked-int64(offset) {
			return malformed("component %d: %d bytes at 0x%x run over the archive, which has %d", i, size, offset, p.unpacked)
		}
		p.Components = append(p.Components, Component{Index: i, PSIDs: boards[i], Size: size, offset: int64(offset)})
	}
	last := Component{Index: -1}
	for _, c := range p.inOrder() {
		if last.Index >= 0 && c.offset < last.offset+componentPrefix+last.Size {
			return malformed("component %d: it overlaps component %d", c.Index, last.Index)
		}
		last = c
	}
	return nil
}

// inOrder are the components as they come out of the archive.
func (p *Package) inOrder() []Component {
	return slices.SortedStableFunc(slices.Values(p.Components), func(a, b Component) int { return cmp.Compare(a.offset, b.offset) })
}
