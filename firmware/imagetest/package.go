package imagetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
)

// Package says which MFA2 package is wanted.
type Package struct {
	Images  [][]byte
	PSIDs   []string // one for each image
	Archive []byte   // in place of the images, packed
	// Unpacked is the size that the package says, if it is not that of the images.
	Unpacked uint64
	// Offset moves the image that the last component names.
	Offset uint64
	// Size is that of the last component, if it is not that of its image.
	Size uint32
}

const componentMagic = "#BIN.COMPONENT!#"

// Build makes the package, with right digests.
func (p *Package) Build() []byte {
	block := []byte{}
	components := [][]byte{}
	for i, image := range p.Images {
		d := make([]byte, 16)
		offset, size := uint64(len(block)), uint32(len(image))
		if i == len(p.Images)-1 {
			offset += p.Offset
			if p.Size != 0 {
				size = p.Size
			}
		}
		be.PutUint64(d[4:], offset)
		be.PutUint32(d[12:], size)
		components = append(components, group(tlv(0x04, d), tlv(0x21, make([]byte, 12))))
		block = append(append(block, componentMagic...), image...)
	}
	devices := [][]byte{}
	for i, psid := range p.PSIDs {
		devices = append(devices, group(tlv(0x03, nil), tlv(0x2A, []byte(psid)), tlv(0x22, []byte{0, 1, 0, byte(i), 0, 0, 0, 0})))
	}
	archive := p.Archive
	if archive == nil {
		archive = XZ(block, 1<<20)
	}
	unpacked := p.Unpacked
	if unpacked == 0 {
		unpacked = uint64(len(block))
	}
	return seal(archive, unpacked, devices, components)
}

// digestsAt are where the two digests are in a package of Build: of the whole file, and of the part before the archive.
const (
	wholeAt = 16 + 4 + 4 + 32 + 16 + 4
	partAt  = wholeAt + 32 + 4
)

// Reseal makes both digests right again after a package was changed. If there is no room for them, it does nothing.
func Reseal(b []byte) {
	if len(b) < partAt+32 {
		return
	}
	clear(b[wholeAt : wholeAt+32])
	clear(b[partAt : partAt+32])
	head := min(uint64(be.Uint32(b[16+4+4+4+4:])), uint64(len(b)))
	part, whole := sha256.Sum256(b[:head]), sha256.Sum256(b)
	copy(b[wholeAt:], whole[:])
	copy(b[partAt:], part[:])
}

// seal puts the parts of a package together and fills in its digests.
func seal(archive []byte, unpacked uint64, devices, components [][]byte) []byte {
	descriptor := make([]byte, 28)
	head := bytes.Join([][]byte{
		[]byte("MLNX.MFA2.XZ.00!"),
		group(tlv(0x02, descriptor), tlv(0x21, make([]byte, 12)), tlv(0x27, make([]byte, 32)), tlv(0x27, make([]byte, 32))),
		bytes.Join(devices, nil), bytes.Join(components, nil),
	}, nil)
	d := head[16+4+4+4:]
	be.PutUint16(d, uint16(len(components)))
	be.PutUint16(d[2:], uint16(len(devices)))
	be.PutUint32(d[4:], uint32(len(head)))
	be.PutUint32(d[8:], uint32(len(archive)))
	be.PutUint64(d[12:], unpacked)
	d[20] = 1
	b := append(head, archive...)
	Reseal(b)
	return b
}

func tlv(kind byte, body []byte) []byte {
	b := []byte{0, kind, byte(len(body) >> 8), byte(len(body))}
	return append(b, body...)
}

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

// group is a multi-part TLV. Its size counts the parts without padding, as in
// packages of the vendor.
func group(descriptor []byte, extensions ...[]byte) []byte {
	total, body := len(descriptor), pad(descriptor)
	for _, e := range extensions {
		total += len(e)
		body = append(body, pad(e)...)
	}
	head := tlv(0x01, []byte{0, byte(len(extensions)), byte(total >> 8), byte(total)})
	return append(head, body...)
}

// XZ packs b without compressing it. It claims that unpacking needs a dictionary of that size: a power of two, or 4 GiB -
// 1.
func XZ(b []byte, dictionary uint64) []byte {
	property := byte(40)
	if dictionary < 1<<32-1 {
		for property = 0; 2<<(property/2+11) < dictionary; property += 2 {
			continue
		}
	}
	chunks := []byte{}
	first := true
	for rest := b; len(rest) > 0; {
		n := min(len(rest), 1<<16)
		control := byte(2) // stored; 1 also forgets the dictionary
		if first {
			control, first = 1, false
		}
		chunks = append(append(chunks, control, byte((n-1)>>8), byte(n-1)), rest[:n]...)
		rest = rest[n:]
	}
	chunks = append(chunks, 0)
	return stream(chunks, property, uint64(len(b)), crc32.ChecksumIEEE(b))
}

// le32 is a number as XZ has it.
func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// stream puts LZMA2 chunks into one block of an XZ stream with CRC-32.
func stream(chunks []byte, property byte, size uint64, sum uint32) []byte {
	const flags = "\x00\x01" // CRC-32
	summed := func(b []byte) []byte { return append(b, le32(crc32.ChecksumIEEE(b))...) }
	header := summed([]byte{2, 0, 0x21, 1, property, 0, 0, 0})
	unpadded := uint64(len(header) + len(chunks) + 4)
	index := summed(pad(append(append([]byte{0, 1}, number(unpadded)...), number(size)...)))
	footer := append(le32(uint32(len(index)/4-1)), flags...)
	return bytes.Join([][]byte{
		[]byte("\xFD7zXZ\x00" + flags), le32(crc32.ChecksumIEEE([]byte(flags))),
		header, pad(chunks), le32(sum), index,
		le32(crc32.ChecksumIEEE(footer)), footer, []byte("YZ"),
	}, nil)
}

// number is an integer of variable length.
func number(v uint64) (b []byte) {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}
